// The analysis, beside the page: whatever it does, the page stays alive. One set of files, and what its page asks
// about them afterwards; other files get another worker.

/** @import { Replay, ReplayQuestion } from "../../types" */
/** @import { AnswerOf, Question } from "../../types/viewer" */

// The exports of the analysis, while it is alive.
/** @type {any} */
let analysis = null;

// Where a file is read in pieces, memory does not hold it twice.
/** @param {WebAssembly.Memory} memory @param {number} at @param {File[]} files */
async function readInto(memory, at, files) {
  for (const file of files) {
    const reader = file.stream().getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      new Uint8Array(memory.buffer).set(piece.value, at);
      at += piece.value.length;
    }
  }
}

/** @param {Question} question @returns {Promise<AnswerOf>} */
async function answer({ wasm, files, compare }) {
  const { instance } = await WebAssembly.instantiate(wasm, {});
  analysis = instance.exports;
  const { memory, room, ask, answer_length } = analysis;
  const named = files.map(({ name, size }) => ({ name, size }));
  const head = new TextEncoder().encode(JSON.stringify({ compare, files: named }));
  const sizes = files.reduce((sum, { size }) => sum + size, 0);
  const at = room(4 + head.length + sizes) >>> 0;
  if (!at) return outOfRoom();
  new DataView(memory.buffer).setUint32(at, head.length, true);
  new Uint8Array(memory.buffer).set(head, at + 4);
  await readInto(memory, at + 4 + head.length, files);
  self.postMessage({ doing: "Analysing" });
  try {
    ask();
    return JSON.parse(text());
  } catch (error) {
    // A panic ends the instance. What it said can still be read.
    const said = answer_length() ? text() : String(error);
    analysis = null;
    // Near four gigabytes there is no more: that is all a browser's analysis can address.
    return memory.buffer.byteLength > 3.5 * 2 ** 30 ? outOfRoom() : ended(said);
  }
}

// What the analysis left.
function text() {
  const { memory, answer_at, answer_length } = analysis;
  return new TextDecoder().decode(new Uint8Array(memory.buffer, answer_at() >>> 0, answer_length() >>> 0));
}

// The recording of the last answer on another card; `removed` has a bit for each life.
/** @param {ReplayQuestion} question @param {Uint8Array} removed @returns {Replay} */
function replay(question, removed) {
  const failed = (/** @type {string} */ message) => /** @type {Replay} */ ({ error: { message, hint: null } });
  if (!analysis) return failed("the analysis ended");
  const { memory, room, what_if } = analysis;
  const head = new TextEncoder().encode(JSON.stringify(question));
  const at = room(4 + head.length + removed.length) >>> 0;
  if (!at) return failed("the browser has not enough memory for this replay");
  new DataView(memory.buffer).setUint32(at, head.length, true);
  new Uint8Array(memory.buffer).set(head, at + 4);
  new Uint8Array(memory.buffer).set(removed, at + 4 + head.length);
  try {
    what_if();
    return JSON.parse(text());
  } catch (error) {
    analysis = null;
    return failed(`the analysis ended: ${error}`);
  }
}

/** @param {string} said @returns {AnswerOf} */
function ended(said) {
  const hint = "please report it with this text; `fathom explain FILE` may get further";
  return { error: { message: `the analysis ended: ${said}`, hint } };
}

/** @returns {AnswerOf} */
function outOfRoom() {
  const message = "the browser has not enough memory for this analysis";
  return { error: { message, hint: "install Fathom, and use `fathom page FILE -o page.html`" } };
}

self.addEventListener("message", async ({ data }) => {
  if (data.replay) {
    const { number, question, removed } = data.replay;
    self.postMessage({ replayed: { number, answer: replay(question, removed) } });
    return;
  }
  try {
    self.postMessage({ done: await answer(data) });
  } catch (error) {
    self.postMessage({ done: ended(error instanceof Error ? error.message : String(error)) });
  }
});
