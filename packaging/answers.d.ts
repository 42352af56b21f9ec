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

// crates/gate/src/file.rs
export interface BaselineFile {
  schema: "fathom.baseline/1";
  gpu: BaselineGpu | null;
  torch: string;
  cudnn: string;
  workspaces: string;
  steps: number;
  peak: BaselinePeak;
  categories: BaselineCategory[];
  modules: BaselineModule[];
  unlisted_modules_bytes: number;
}

export interface BaselineGpu {
  name: string;
  memory_bytes: number;
}

export interface BaselinePeak {
  allocated_bytes: number;
  reserved_bytes: number;
  device_bytes: number;
  need_bytes?: number;
}

export interface BaselineCategory {
  name: string;
  bytes: number;
}

export interface BaselineModule {
  path: string;
  class: string;
  bytes: number;
}

// crates/report/src/oom/json.rs
export interface OomAnswer {
  schema: "fathom.oom/1";
  verdict: string | null;
  family: string | null;
  memory: OomMemory | null;
  sure: boolean | null;
  asked_at: OomFrame | null;
  cause: OomCause | null;
  tried_bytes: number | null;
  capacity_bytes: number | null;
  free_bytes: number | null;
  allocated_bytes: number | null;
  reserved_bytes: number | null;
  reserved_unallocated_bytes: number | null;
  this_process_bytes: number | null;
  other_processes_bytes: number | null;
  candidates: OomCandidate[];
  guessed: boolean;
  solved: boolean;
  refuted: OomRefuted[];
  advice: OomAdvice[];
  ledger: OomRow[];
  reconciliation: OomReconciliation | null;
  found: OomFound | null;
  accounts: OomAccount[];
  next: OomNext[];
}

export type OomMemory = "device" | "host" | "shared_memory" | "unified" | "on_chip" | "not_told";

export type OomCause =
  | "larger_than_card"
  | "request_too_large"
  | "limit"
  | "fragmentation"
  | "other_processes"
  | "full"
  | "room_was_left"
  | "not_told"
  | "kv_cache"
  | "host_memory"
  | "shared_memory"
  | "on_chip_memory"
  | "not_memory"
  | "warning"
  | "nothing_refused";

export interface OomAmount {
  bytes: number;
  low: number;
  high: number;
}

export interface OomFrame {
  file: string;
  line: number;
  function: string;
  source: string;
}

export interface OomCandidate {
  shape: number[];
  dtype: string;
  expression: string;
  bytes: number;
}

export interface OomRefuted {
  shape: number[];
  fits: string | null;
  bytes: OomSize[];
  multiple: number | null;
}

export interface OomSize {
  dtype: string;
  bytes: number;
}

export interface OomAdvice {
  id: string;
  in_message: boolean;
  helps: string;
  reach: OomAmount | null;
  gap: OomAmount | null;
  known: string;
  text: string;
}

export interface OomRow {
  name: string;
  bytes: number;
  low: number;
  high: number;
  known: string;
  depth: number;
}

export interface OomReconciliation {
  ledger: OomRow[];
  contradictions: OomContradiction[];
}

export interface OomContradiction {
  larger: string;
  smaller: string;
  by_bytes: number;
}

export interface OomFound {
  memory_bytes: number | null;
  torch: string | null;
  steps: number;
  refused: OomRefused | null;
  matches: OomAllocation[];
  nearest: OomAllocation[];
}

export interface OomRefused {
  bytes: number;
  origin: OomOrigin;
}

export interface OomAllocation {
  count: number;
  bytes: number;
  shape: number[] | null;
  dtype: string | null;
  step: number;
  phase: string | null;
  origin: OomOrigin;
}

export interface OomOrigin {
  module: string;
  operator: string;
  file: string;
  line: number;
}

export interface OomAccount {
  file: string;
  line: number;
  times: number;
  family: string;
  kind: string;
  memory: OomMemory;
  sure: boolean;
  other_error: string | null;
  rank: number | null;
  means: string;
  why: string[];
  facts: OomFact[];
  asked_at: OomFrame | null;
  through: OomFrame | null;
  counts: Record<string, number>;
  device: number | null;
  card: string | null;
  cause: OomCause;
  tried: OomAmount | null;
  capacity: OomAmount | null;
  free: OomAmount | null;
  allocated: OomAmount | null;
  reserved: OomAmount | null;
  reserved_unallocated: OomAmount | null;
  private_pools: OomAmount | null;
  this_process: OomAmount | null;
  limit: OomAmount | null;
  planned: OomAmount | null;
  used: OomAmount | null;
  peak_allocated: OomAmount | null;
  peak_reserved: OomAmount | null;
  processes: OomProcess[];
  tensor: OomTensor | null;
}

export interface OomFact {
  says: string;
  source: string;
}

export interface OomProcess {
  pid: number;
  name: string;
  memory: OomAmount;
}

export interface OomTensor {
  shape: number[];
  dtype: string | null;
  bytes: number | null;
}

export interface OomNext {
  why: string;
  command: string;
}

// crates/report/src/document
export interface DocumentAnswer {
  schema: "fathom.document/1";
  command: string;
  made_by: string;
  unfinished: string | null;
  answer: DocumentHead;
  anatomy: DocumentAnatomy | null;
  places: DocumentPlace[];
  why: DocumentWhy | null;
  compared: DocumentCompared | null;
  scaling: DocumentScaling | null;
  tried: DocumentTried | null;
  configurations: DocumentConfiguration[];
  change: DocumentChange | null;
  known: DocumentKnown;
  picture: string | null;
}

export interface DocumentHead {
  judgement: Judgement;
  word: string;
  sentence: string;
  cause: string | null;
  cause_bytes: number;
  of_bytes: number;
  when: string;
  is_of_request: boolean;
  refused: DocumentRefused | null;
  gain: DocumentGain | null;
  has_no_change: boolean;
}

export interface DocumentRefused {
  bytes: number;
  free_bytes: number | null;
  when: string;
  file: string;
  line: number;
  source: string;
  tensor: string;
  arithmetic: string;
}

export interface DocumentGain {
  what: string;
  results: string;
  before_bytes: number;
  after_bytes: number;
  fits: boolean | null;
}

export interface DocumentAnatomy {
  components: DocumentComponent[];
  allocated_bytes: number;
  reserved_bytes: number;
  device_bytes: number;
  card_bytes: number | null;
  when: string;
  parameters: DocumentParameters | null;
  hooks_bytes: number | null;
  saved_bytes: number | null;
  is_unlimited: boolean;
}

export interface DocumentComponent {
  name: string;
  title: string;
  bytes: number;
  known: string;
}

export interface DocumentParameters {
  total: number;
  trainable: number;
  frozen: number;
  unused: number;
}

export interface DocumentPlace {
  file: string;
  line: number;
  function: string;
  source: string;
  bytes: number;
  of_bytes: number;
  tensors: DocumentTensor[];
  rest_bytes: number;
  rest_count: number;
}

export interface DocumentTensor {
  count: number;
  bytes: number;
  total_bytes: number;
  dtype: string;
  shape: number[];
  arithmetic: string;
  category: string;
  name: string;
  module: string;
}

export interface DocumentWhy {
  causes: DocumentCause[];
  sizes: DocumentSize[];
  growth: string[][];
  alibis: DocumentAlibi[];
  allocated_bytes: number;
  reserved_bytes: number;
  unlimited: DocumentCause[];
  unlimited_bytes: number;
}

export interface DocumentCause {
  id: string;
  title: string;
  bytes: number;
  of: string;
  counted: boolean;
  explanation: string;
  scales: string;
}

export interface DocumentSize {
  tensor: string;
  at: string;
  size: number;
  made_of: string;
  seen: string[];
}

export interface DocumentAlibi {
  name: string;
  bytes: number;
  of: string;
}

export interface DocumentCompared {
  commands: string[];
  parameters: number[];
  allocated_bytes: number[];
  reserved_bytes: number[];
  device_bytes: number[];
  when: string[];
  components: DocumentPair[];
  causes: DocumentLargest[];
}

// A cause and its bytes, where a side has one.
export type DocumentLargest = DocumentNamed[] | null;

export type DocumentNamed = string | number;

export interface DocumentPair {
  name: string;
  bytes: number[];
}

export interface DocumentScaling {
  knobs: DocumentKnob[];
  idle: string[];
  failed: string[][];
  left_out: string[];
}

export interface DocumentKnob {
  name: string;
  current: string;
  points: DocumentPoint[];
  growth: DocumentGrowth[];
  rest_bytes: number | null;
}

export interface DocumentPoint {
  value: string;
  outcome: string;
  allocated_bytes: number;
  reserved_bytes: number;
  device_bytes: number;
  scratch_bytes: number;
}

export interface DocumentGrowth {
  cause: string | null;
  share: number;
  from_bytes: number;
  to_bytes: number;
  exponent: number | null;
  exact: boolean;
}

export interface DocumentTried {
  allocated_bytes: number;
  reserved_bytes: number;
  context_bytes: number;
  remedies: DocumentRemedy[];
  not_applicable: string[][];
  asked: string[][];
}

export interface DocumentRemedy {
  name: string;
  what: string;
  allocated_bytes: number;
  reserved_bytes: number;
  time: number | null;
  results: string;
  fits: boolean | null;
}

export interface DocumentConfiguration {
  card: string;
  memory_bytes: number;
  as_it_is: string;
  device_bytes: number;
  settings: DocumentSetting[];
}

export interface DocumentSetting {
  what: string;
  results: string;
  allocated_bytes: number;
  device_bytes: number;
  edit: DocumentEdit | null;
}

export interface DocumentEdit {
  language: string;
  text: string;
  folder: string;
  command: string;
}

export interface DocumentChange {
  what: string;
  results: string;
  edit: DocumentEdit;
  in_the_way: string[];
  applied: string;
  before: DocumentSizes;
  after: DocumentSizes;
}

export interface DocumentSizes {
  allocated_bytes: number;
  reserved_bytes: number;
  device_bytes: number;
}

export interface DocumentKnown {
  software: string[][];
  measured: string[];
  modelled: string[];
  assumed: string[];
  not_seen: string[];
  notes: string[];
  commands: string[];
  trials: number;
  remembered: number;
}
