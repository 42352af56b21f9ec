// Answers as JSON that no page holds; the others are in crates/page/types.

export interface ReplayAnswer {
  schema: "fathom.replay/1";
  file: string;
  device: number;
  devices: number[];
  reproduces: boolean;
  first_difference: ReplayDifference | null;
  contradiction: Contradiction | null;
  events: number;
  recorded: Recorded;
  trials: ReplayTrial[];
  floor_bytes: number | null;
  floor: Floor | null;
  ideal_bytes: number | null;
  ideal_packed_bytes: number | null;
  used_bytes: number;
  notes: string[];
  exit_code: number;
}

export interface ReplayDifference {
  event: number;
  recorded: string;
  replayed: string;
}

export interface Contradiction {
  event: number;
  recorded: string;
  at_the_end: string;
}

export interface Recorded {
  torch: string;
  settings: string;
  memory_bytes: number | null;
  context_bytes: number;
  context_known: string;
  start_blocks: number;
  start_bytes: number;
  failed_requests: number;
  died: boolean;
  retries: number;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
}

export interface ReplayTrial {
  settings: string;
  memory_bytes: number | null;
  memory_fraction: number | null;
  verdict: string;
  refused_event: number | null;
  refused_bytes: number | null;
  start: string;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  fragmentation_bytes: number;
  segments_allocated: number;
  segments_freed: number;
}

export interface Floor {
  own_bytes: number | null;
  own_start: string;
  default_bytes: number | null;
  best_bytes: number | null;
  best_settings: string | null;
}

export interface CheckAnswer {
  schema: "fathom.check/1";
  exit_code: number;
  scripts: CheckedScript[];
}

export interface CheckedScript {
  name: string;
  command: string;
  passes: boolean;
  report: Report;
}

export interface CardsAnswer {
  schema: "fathom.cards/1";
  rows: CardRow[];
}

export interface CardRow {
  gpu: string;
  memory_bytes: number;
  verdict: Verdict;
  judgement: Judgement;
  fits: boolean;
  has_kernels: boolean | null;
  need_bytes: number | null;
  error_bytes: number | null;
  device_bytes: number | null;
  allocated_bytes: number | null;
  headline: string;
}
