// crates/report/src/json: what a report says of a recording, and `fathom.explain/1`, a recording without its run.

export interface EvidenceRow {
  name: string;
  bytes: number;
  count: number;
}

export interface Explanation extends Body {
  schema: "fathom.explain/1";
  file: string;
  device: number;
  torch: string;
  events: number;
  complete: boolean;
  peak: ExplainedPeak;
  evidence: EvidenceRow[];
  findings: Finding[];
  not_the_cause: Suspect[];
  answers: Answer[];
  out_of_memory: ExplainedRefusal | null;
  fragments: Fragments | null;
  notes: string[];
}

export interface ExplainedPeak extends Place {
  requested_bytes: number;
  allocated_bytes: number;
  reserved_bytes: number;
  step: number | null;
  phase: string | null;
}

export interface ExplainedRefusal extends Place {
  tried_bytes: number;
  free_bytes: number;
  reason: string | null;
  held: Held;
}

// At the allocated peak, but for `ledger`, which is at the reserved one. Without a recording lists are empty.
export interface Body {
  parameters: Parameters | null;
  categories: Category[];
  modules: Module[];
  lines: Line[];
  operators: Operator[];
  areas?: Area[];
  tensors: Tensor[];
  phases: Phase[];
  born: Born[];
  first_step: Step | null;
  steady_step: Step | null;
  saved: Saved | null;
  growth_bytes_per_step: number | null;
  growth: Growth[];
  ledger: Entry[];
  peak_ledger: Entry[];
}

// Who and where; null where it is not known.
export interface Place {
  module: string | null;
  operator: string | null;
  node: string | null;
  file: string | null;
  line: number | null;
  library_file: string | null;
  library_line: number | null;
}

// What is alive at one moment.
export interface Held {
  allocated_bytes: number;
  reserved_bytes: number;
  categories: Category[];
  modules: Module[];
  lines: Line[];
  tensors: Tensor[];
  ledger: Entry[];
}

export interface Parameters {
  total: number;
  trainable: number;
  frozen: number;
  unused: number;
}

export interface Category {
  name: string;
  bytes: number;
}

export interface Module {
  path: string;
  class: string;
  bytes: number;
  saved_bytes: number;
  own_bytes: number;
}

export interface Line {
  file: string | null;
  line: number | null;
  function: string | null;
  source: string | null;
  bytes: number;
  count: number;
  library: LibraryLine[];
}

export interface LibraryLine {
  library_file: string;
  library_line: number;
  function: string;
  bytes: number;
  count: number;
}

export interface Operator {
  name: string;
  bytes: number;
  count: number;
}

export interface Area {
  name: string;
  bytes: number;
  count: number;
  parts: number;
}

export interface Tensor extends Place {
  bytes: number;
  block_bytes: number;
  shape: number[] | null;
  dtype: string | null;
  category: string;
  name: string | null;
  also: Also[];
  born_step: number | null;
  born_phase: string | null;
}

export interface Also {
  category: string;
  name: string;
}

export interface Phase {
  name: string;
  step: number;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
}

export interface Born {
  phase: string;
  bytes: number;
  count: number;
}

export interface Step {
  step: number;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
}

export interface Saved {
  saved_bytes: number;
  module_outputs_bytes: number;
}

export interface Growth extends Place {
  bytes_per_step: number;
  bytes: number;
  count: number;
  category: string;
  held_by: string | null;
}

export interface Entry {
  name: string;
  bytes: number;
  known: "measured" | "modelled" | "assumed";
}

export interface Finding {
  id: string;
  title: string;
  bytes: number;
  of: string;
  counted: boolean;
  explanation: string;
  note: string | null;
  scales: string;
  evidence: Evidence[];
  remedies: Remedy[];
}

export interface Suspect {
  name: string;
  bytes: number;
  of: string;
}

export interface Evidence {
  bytes: number;
  count: number;
  dtype: string | null;
  shape: number[] | null;
  what: string;
  module: string | null;
  operator: string | null;
  file: string | null;
  line: number | null;
  library_file: string | null;
  library_line: number | null;
}

export interface Remedy {
  id: string;
  label: string;
  change: string;
}

export interface Answer {
  question: string;
  effect: string;
  at_most_bytes: number | null;
  known: string;
  tried: Tried | null;
  label: string | null;
  why: string;
}

export interface Tried {
  before_allocated_bytes: number;
  after_allocated_bytes: number;
  before_reserved_bytes: number;
  after_reserved_bytes: number;
}

export interface Fragments {
  at: "out_of_memory" | "allocated_peak";
  pools: PoolRow[];
  shortage: Shortage | null;
}

export interface PoolRow {
  kind: "large" | "small";
  stream: number;
  pool: number[];
  segments: number;
  reserved_bytes: number;
  allocated_bytes: number;
  waiting_bytes: number;
  free_bytes: number;
  free_blocks: number;
  largest_free_bytes: number;
  releasable_bytes: number;
}

export interface Shortage {
  cause: string;
  reason: string;
  request_bytes: number;
  segment_bytes: number;
  card_free_bytes: number;
  own: PoolRow;
  other_streams_free_bytes: number;
  other_streams_largest_bytes: number;
  other_kind_free_bytes: number;
  other_pools_free_bytes: number;
  missing_bytes: number;
  remedy: string | null;
  trials: Trial[];
}

export interface Trial {
  settings: string;
  met: boolean;
  modelled: boolean;
}
