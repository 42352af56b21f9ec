// What a page and the viewer around it say to each other about replays; crates/answer/src/what_if.rs.

export interface ReplayFacts {
  why_not?: string;
  memory_bytes: number | null;
  context_bytes: number;
  context_known: "recorded" | "assumed";
  settings: string;
  others: string[];
}

export interface ReplayQuestion {
  item: number;
  memory_bytes: number | null;
  context_bytes: number | null;
  settings: string | null;
  bucket: number;
}

export interface Replay {
  error?: { message: string; hint: string | null };
  verdict: "fits" | "does_not_fit";
  known: "replayed" | "arithmetic";
  start: "recorded" | "modelled";
  refused: { event: number; tick: number; tried_bytes: number } | null;
  rescued: number;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  fragmentation_bytes: number;
  reserved: { ticks: number[]; bytes: number[] };
  allocated: number[];
}
