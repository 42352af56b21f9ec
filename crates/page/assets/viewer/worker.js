// The analysis, beside the page: whatever it does, the page stays alive. One question, then this worker ends.

/** @import { AnswerOf, Question } from "../../types/viewer" */

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
  const { memory, room, ask, answer_at, answer_length } = /** @type {any} */ (instance.exports);
  const named = files.map(({ name, size }) => ({ name, size }));
  const head = new TextEncoder().encode(JSON.stringify({ compare, files: named }));
  const sizes = files.reduce((sum, { size }) => sum + size, 0);
  const at = room(4 + head.length + sizes) >>> 0;
  if (!at) return outOfRoom();
  new DataView(memory.buffer).setUint32(at, head.length, true);
  new Uint8Array(memory.buffer).set(head, at + 4);
  await readInto(memory, at + 4 + head.length, files);
  self.postMessage({ doing: "Analysing" });
  const text = () => {
    const start = answer_at() >>> 0;
    return new TextDecoder().decode(new Uint8Array(memory.buffer, start, answer_length() >>> 0));
  };
  try {
    ask();
    return JSON.parse(text());
  } catch (error) {
    // A panic ends the instance. What it said can still be read.
    const said = answer_length() ? text() : String(error);
    // Near four gigabytes there is no more: that is all a browser's analysis can address.
    return memory.buffer.byteLength > 3.5 * 2 ** 30 ? outOfRoom() : ended(said);
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

self.addEventListener("message", async (event) => {
  try {
    self.postMessage({ done: await answer(event.data) });
  } catch (error) {
    self.postMessage({ done: ended(error instanceof Error ? error.message : String(error)) });
  }
});
