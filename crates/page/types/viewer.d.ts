// What the viewer's page and its worker say to each other.

import type { ReplayFacts } from "./replays";

/** Files to be explained, each for itself, or two to be compared. */
export interface Question {
  wasm: Uint8Array<ArrayBuffer>;
  files: File[];
  compare: boolean;
}

/** What went wrong, and the cure. */
export interface Problem {
  message: string;
  hint: string | null;
}

/** `crates/viewer/src/answers.rs` writes it. */
export interface AnswerOf {
  text?: string;
  json?: string;
  page?: string | null;
  what_if?: (ReplayFacts | null)[];
  error?: Problem | null;
}
