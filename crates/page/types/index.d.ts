// What Rust puts into a page, typed once: `fathom.page/1` and the story here, what is in them in the files beside.
//
// tests/test_page_types.py holds pages of real runs against this folder, field by field and both ways. It reads only
// as much of the language as is used: interfaces with a field to a line, unions, lists and `Record`.

import type { Difference, FitAnswer, SweepAnswer } from "./documents";
import type { Explanation } from "./explain";
import type { Report } from "./report";

export * from "./documents";
export * from "./replays";
export * from "./explain";
export * from "./report";

// crates/page/src/html.rs

export interface PageContents {
  schema: "fathom.page/1";
  version: string;
  title: string;
  items: Item[];
  documents: Document[];
  cards: Card[];
  // Where a file does not tell what its context took.
  assumed_context_bytes: number;
}

// For the menu of a "what if".
export interface Card {
  name: string;
  title: string;
  memory_bytes: number;
  context_bytes: number;
}

export interface Item {
  name: string;
  report: Report | Explanation;
  has_story: boolean;
}

export type Document = FitAnswer | SweepAnswer | Difference;

// crates/page/src/story.rs

export interface Header {
  ticks: number;
  changes: number;
  events: number;
  peak_tick: number;
  reserved_peak_tick: number;
  refused_tick: number | null;
  bucket: number;
  phases: string[];
  dimensions: Dimension[];
  texts: string[];
  columns: Column[];
}

export interface Dimension {
  name: DimensionName;
  groups: string[];
}

export type DimensionName = "category" | "module" | "phase" | "line";

export interface Column {
  name: ColumnName;
  form: "plain" | "delta";
  count: number;
  bytes: number;
}

export type ColumnName =
  | LifeColumn
  | KindColumn
  | SegmentColumn
  | "span.from"
  | "span.phase"
  | "span.step"
  | "reserved.tick"
  | "reserved.bytes"
  | "bucket.shown"
  | "bucket.category"
  | "bucket.module"
  | "bucket.phase"
  | "bucket.line";

// A row for each life, but for `tall`: numbers of the lives that are drawn one by one.
export type LifeColumn = "born" | "span" | "wait" | "block" | "slack" | "address" | "kind" | "tall";

// A row for each kind, and for each place that a kind is made in.
export type KindColumn =
  | "kind.module"
  | "kind.operator"
  | "kind.place"
  | "kind.name"
  | "kind.tensor"
  | "kind.holder"
  | "band.category"
  | "band.module"
  | "band.phase"
  | "band.line"
  | "place.caller"
  | "place.file"
  | "place.line"
  | "place.function";

export type SegmentColumn =
  | "segment.address"
  | "segment.size"
  | "segment.stream"
  | "segment.pool"
  | "segment.pool2"
  | "segment.expandable"
  | "segment.born"
  | "segment.gone";
