// Answers of other commands on a page: `fathom.fit/1`, `fathom.sweep/1`, `fathom.diff/1`.

import type { Unfinished } from "./report";

// crates/report/src/fit/json.rs

export interface FitAnswer {
  schema: "fathom.fit/1";
  gpu: string;
  budget_bytes: number;
  memory_bytes: number;
  used_bytes: number;
  baseline: Baseline;
  plans: Plan[];
  chosen: number | null;
  proposed: number | null;
  tightest_bytes: number | null;
  not_applicable: NotApplicable[];
  causes: Cause[];
  trials: number;
  remembered: number;
  unfinished: Unfinished | null;
  unknown_places: string | null;
  wall_seconds: number;
  notes: string[];
  exit_code: number;
  // On a page that `fathom fit` wrote itself.
  command?: string;
}

export type TrialVerdict = "fits" | "fits_if" | "does_not_fit" | "script_failed" | "not_run";

export interface Baseline {
  fits: boolean;
  verdict: TrialVerdict;
  failure: string | null;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  device_bytes: number;
}

export interface Plan {
  levers: Lever[];
  label: string;
  fits: boolean;
  verdict: TrialVerdict;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  device_bytes: number;
  headroom_bytes: number;
  verified: boolean;
  cost: Cost;
  patch: string;
  is_diff: boolean;
  in_the_way: string[];
  by_retries: boolean;
}

export interface Lever {
  id: string;
  settings?: string;
  modules?: string[];
  parts?: number;
  name?: string;
  value?: string;
  like?: string;
  set?: string;
  gpus?: number;
}

export interface Cost {
  flops_ratio: number;
  known: string;
}

export interface NotApplicable {
  lever: string;
  reason: string;
}

export interface Cause {
  title: string;
  bytes: number;
  remedies: CauseRemedy[];
}

export interface CauseRemedy {
  id: string;
  change: string;
}

// crates/report/src/sweep/json.rs

export interface SweepAnswer {
  schema: "fathom.sweep/1";
  knobs: Knob[];
  gpus: SweepGpu[];
  points: Point[];
  largest: Largest[];
  fewest?: Fewest[];
  scaling: Scaling[];
  trials: Trials;
  unfinished: Unfinished | null;
  unknown_places: string | null;
  wall_seconds: number;
  notes: string[];
  command?: string;
}

export interface Knob {
  name: string;
  values: string[];
}

export interface SweepGpu {
  name: string;
  memory_bytes: number;
  used_bytes: number;
  context_bytes: number;
}

export interface Point {
  values: Record<string, string>;
  gpu: string;
  verdict: TrialVerdict;
  failure: string | null;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  device_bytes: number;
  how: "run" | "implied" | "predicted";
}

export interface Largest {
  gpu: string;
  knob: string;
  value: number | null;
  is_assumed: boolean;
  others: Record<string, string>;
  peak_reserved_bytes: number;
  device_bytes: number;
  at_end_of_range: boolean;
  unfinished: boolean;
  failure: string | null;
}

export interface Fewest {
  gpu: string;
  others: Record<string, string>;
  ranks: number | null;
  is_assumed: boolean;
}

export interface Scaling {
  knob: string;
  exponent: number;
  of: string;
  share_of_peak: number;
  exact: boolean;
}

export interface Trials {
  run: number;
  remembered: number;
}

// crates/report/src/diff/json.rs

export interface Difference {
  schema: "fathom.diff/1";
  answer: string;
  a: Side;
  b: Side;
  peak_delta_bytes: number;
  reserved_delta_bytes: number;
  device_delta_bytes: number | null;
  floor_delta_bytes: number | null;
  categories: NamedChange[];
  modules: ChangedModule[];
  operators: NamedChange[];
  lines: ChangedLine[];
  tensors: ChangedTensor[];
  phases: ChangedPhase[];
  findings: ChangedFinding[];
  renamed: string[];
  notes: string[];
  // The numbers of both sides on the page of a `diff`; a JSON that was given to `fathom page` has none.
  items?: number[];
}

export interface Side {
  name: string;
  torch: string | null;
  gpu: string | null;
  when: string | null;
  allocated_bytes: number;
  requested_bytes: number;
  reserved_bytes: number;
  device_bytes: number | null;
  floor_bytes: number | null;
  out_of_memory: boolean;
}

export interface Change {
  a_bytes: number;
  b_bytes: number;
  delta_bytes: number;
  status: "new" | "gone" | "grown" | "shrunk" | "same";
}

export interface NamedChange extends Change {
  name: string;
}

export interface ChangedModule extends Change {
  path: string;
  class: string;
  was: string | null;
  a_total_bytes: number;
  b_total_bytes: number;
}

export interface SourcePlace {
  file: string | null;
  line: number | null;
  function: string | null;
}

export interface ChangedLine extends Change, SourcePlace {
  source: string | null;
  was: SourcePlace | null;
  a_count: number;
  b_count: number;
}

export interface ChangedTensor extends Change, SourcePlace {
  category: string | null;
  what: string | null;
  was: string | null;
  name: string | null;
  module: string | null;
  operator: string | null;
  source: string | null;
  a_count: number;
  b_count: number;
}

export interface ChangedPhase extends Change {
  name: string;
  a_reserved_bytes: number;
  b_reserved_bytes: number;
}

export interface ChangedFinding extends Change {
  id: string;
  title: string;
}
