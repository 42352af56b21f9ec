// Replays, where somebody makes them: in the viewer the frame around a page has the analysis, and answers messages.
// On its own, or in anybody else's frame, a page has none.

/** @import { Replay, ReplayFacts, ReplayQuestion } from "../types" */

export class Replayer {
  constructor() {
    // Of each item: what can be asked, or why nothing can.
    /** @type {(ReplayFacts | null)[]} */
    this.items = [];
    this.number = 0;
    /** @type {((answer: Replay) => void) | null} */
    this.waiting = null;
    /** @type {(() => void) | null} */
    this.next = null;
  }

  // Asks the frame around this page, if there is one; `ready` is called when it says that it can replay.
  /** @param {() => void} ready */
  open(ready) {
    if (globalThis.parent === globalThis.window) return;
    globalThis.addEventListener("message", ({ source, data }) => {
      if (source !== globalThis.parent || typeof data !== "object" || !data) return;
      if (data.fathom === "replays" && Array.isArray(data.items)) {
        this.items = data.items;
        ready();
      } else if (data.fathom === "replayed" && data.number === this.number) this.answered(data.answer);
    });
    globalThis.parent.postMessage({ fathom: "can you replay" }, "*");
  }

  // Null if there is nobody who could, or nothing to replay.
  /** @param {number} item */
  facts(item) {
    const facts = this.items[item];
    return facts && !facts.why_not ? facts : null;
  }

  // One question at a time: while one is on its way, only the newest of the others waits.
  /** @param {ReplayQuestion} question @param {Uint8Array} removed @param {(answer: Replay) => void} then */
  ask(question, removed, then) {
    const send = () => {
      this.number++;
      this.waiting = then;
      globalThis.parent.postMessage({ fathom: "replay", number: this.number, question, removed }, "*");
    };
    if (this.waiting) this.next = send;
    else send();
  }

  /** @param {Replay} answer */
  answered(answer) {
    const { waiting, next } = this;
    this.waiting = this.next = null;
    // An answer that is already old is shown all the same: while a slider moves, something has to.
    waiting?.(answer);
    next?.();
  }
}
