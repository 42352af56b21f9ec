// crates/report/src/json: `fathom.report/1`, a run.

import type { Answer, Body, Category, Finding, Held, Place, Suspect } from "./explain";

export interface Report extends Body {
  schema: "fathom.report/1";
  verdict: Verdict;
  judgement: Judgement;
  exit_code: number;
  headline: string;
  gpu: Gpu | null;
  software: Software;
  steps: number;
  stopped: boolean;
  wall_seconds: number;
  peak: Peak | null;
  processes: Process[];
  floor_bytes: number | null;
  need: Need | null;
  beyond?: Beyond;
  findings: Finding[];
  not_the_cause: Suspect[];
  answers: Answer[];
  out_of_memory: OutOfMemory | null;
  budget_bytes: number | null;
  baseline: Against | null;
  failure: string | null;
  unfinished: Unfinished | null;
  unattributed: Unattributed | null;
  decisions: Decided[];
  most?: MostNeeded;
  fits_on: FitsOn[];
  workspaces: Workspace[];
  world?: World;
  ranks?: Rank[];
  deferred_frees?: Deferred;
  whole?: Whole;
  full_after_steps?: number;
  next: string[];
  warnings: string[];
  notes: string[];
}

export type Verdict = "fits" | "fits_if" | "does_not_fit" | "grew" | "script_failed" | "interrupted" | "timed_out";

export type Judgement =
  | "fits"
  | "tight"
  | "needs"
  | "depends"
  | "not_measured"
  | "does_not_fit"
  | "grew"
  | "script_failed"
  | "interrupted"
  | "timed_out";

export interface Need {
  bytes: number;
  known: "run" | "enough" | "replay" | "taken";
  error_bytes: number;
}

export interface Beyond {
  need: Need | null;
  allocated_bytes: number;
  phase: string;
  step: number;
  raised_by: string | null;
  cause: string | null;
  failure: string | null;
}

export interface Whole {
  came: "through" | "ran_out" | "failed" | "not_run";
  why: string | null;
  is_reported: boolean;
  steps: number;
  has_ended: boolean;
  phases: WholePhase[];
  unseen: string[];
  unreached: string[];
  batches: Batches[];
  unseen_bytes: number;
  refused: string[];
  orders?: BatchOrder[];
}

export interface BatchOrder {
  seed: number;
  peak_allocated_bytes: number;
  device_bytes: number;
  peak_step: number;
  largest_batch: number[];
  ran_out: boolean;
}

export interface WholePhase {
  name: string;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  plain_allocated_bytes: number | null;
}

export interface Batches {
  is_evaluation: boolean;
  count: number | null;
  given: number;
  looked_at: number;
  varies: string | null;
  smallest: number[];
  largest: number[];
  was_largest_run: boolean;
  grows_bytes: number;
}

export interface Gpu {
  name: string;
  title: string;
  memory_bytes: number;
  used_bytes: number;
  context_bytes: number;
  context_known: "assumed" | "measured";
  context_range_bytes: number[];
  compute_capability: string;
  has_kernels: boolean | null;
}

export interface Software {
  torch: string;
  cuda: string;
  cudnn: string;
  python: string;
  workspaces: string;
}

export interface Peak extends Place {
  requested_bytes: number;
  allocated_bytes: number;
  reserved_bytes: number;
  device_bytes: number;
  process_bytes: number;
  nccl_bytes: number;
  step: number;
  phase: string;
  reserved_step: number;
  reserved_phase: string;
  reserved_by: Place | null;
}

export interface Process {
  pid: number;
  parent_pid: number;
  command: string;
  bytes: number;
  context_bytes: number;
  peak_bytes: number;
}

export interface OutOfMemory {
  tried_bytes: number;
  free_bytes: number | null;
  step: number;
  phase: string;
  module: string | null;
  operator: string | null;
  file: string | null;
  line: number | null;
  message: string;
  reason: string | null;
  held: Held | null;
}

export interface Against {
  file: string;
  margin: string;
  change: "same" | "grew" | "shrank";
  allocated: BeforeAfter;
  reserved: BeforeAfter;
  device: BeforeAfter;
  need?: BeforeAfter;
  categories: CategoryChange[];
  modules: ModuleChange[];
  remarks: string[];
}

export interface BeforeAfter {
  before_bytes: number;
  after_bytes: number;
}

export interface CategoryChange extends BeforeAfter {
  name: string;
}

export interface ModuleChange {
  path: string;
  class: string;
  before_bytes: number | null;
  after_bytes: number;
}

export interface Unfinished {
  reason: string;
  signal: string | null;
  after_seconds: number;
}

export interface Unattributed {
  bytes: number;
  why: string;
}

export interface Decided {
  operator: string;
  file: string | null;
  line: number | null;
  library_file: string | null;
  library_line: number | null;
  why: string;
  assumed: string;
  count: number;
}

export interface MostNeeded {
  device_bytes: number | null;
  fits: boolean;
  is_same: boolean;
  failure: string | null;
}

export interface FitsOn {
  name: string;
  memory_bytes: number;
  known: "run" | "measured" | "replayed" | "likely";
  is_tight: boolean;
}

export interface Workspace {
  kind: string;
  known: string;
  calls: number | null;
  largest_bytes: number | null;
  peak_bytes: number | null;
}

export interface World {
  size: number;
  gpus_per_node: number;
  nodes: number;
  worst_rank: number;
}

export interface Rank {
  rank: number;
  asked: boolean;
  verdict: string;
  steps: number;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  device_bytes: number;
  phase: string;
  step: number;
  categories: Category[];
  wall_seconds: number;
}

export interface Deferred {
  count: number;
  at_once: Streams;
  late: Streams;
  most_waiting_bytes: number;
  late_fits: boolean;
}

export interface Streams {
  reserved_bytes: number;
  active_bytes: number;
  known: "measured" | "modelled";
}
