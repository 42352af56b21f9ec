// What a "what if" says: the card, the verdict, and how it is known.

import { byId, make, refill } from "./dom.js";
import { bytesText } from "./format.js";

/** @import { Replay } from "../types" */
/** @import { AnyReport } from "../types/either" */
/** @import { OneChild } from "./dom.js" */
/** @import { Place } from "./whatif.js" */

export const CACHE_DECIDES = "it depends on PyTorch's cache";
export const UNKNOWN_REST = "the run ended with a failed request, and what it would ask for next is not known";
export const ARITHMETIC =
  "arithmetic, not a replay: the viewer (fathom viewer) and fathom replay have PyTorch's allocator";

/** @param {Place} place */
export function onCardText({ memory, taken, card, isAssumed }) {
  if (!memory) return " without a limit";
  const into = card ? ` on ${card.title}` : "",
    words = `${bytesText(taken)} of it context${isAssumed ? ", assumed" : ""}`;
  return card ? `${into} (${bytesText(memory)}, ${words})` : ` into ${bytesText(memory)} (${words})`;
}

// How an answer is known.
/** @param {Replay} answer @param {AnyReport} report */
export function knownBy(answer, report) {
  const words = [];
  if (answer.known === "replayed" && answer.start === "recorded") words.push("exact: replayed with PyTorch's allocator");
  if (answer.known === "replayed" && answer.start === "modelled")
    words.push("an estimate: what is older than the recording is laid out anew on this card");
  if (answer.known === "arithmetic")
    words.push("an estimate: what was left out is taken off by arithmetic, the rest is replayed");
  if (answer.rescued && report.out_of_memory && !answer.refused)
    words.push(`as far as it was recorded: ${UNKNOWN_REST}`);
  return words;
}

/** @param {"good" | "bad" | "plain"} mood @param {OneChild} words @param {string} verdict @param {Place} place */
export function showVerdict(mood, words, verdict, { memory }) {
  const sign = { good: "✓", bad: "✕", plain: "●" }[mood];
  const line = byId("what-if-verdict");
  // For tests: which answer it is, and to what.
  Object.assign(line.dataset, { verdict, memory: String(memory) });
  refill(line, make("span", { class: "mark " + mood, "aria-hidden": "true" }, sign), words);
}
