// What can be said of another card without a replay. Two bounds are certain: tensors that live at the same time need
// room at once, and a run that never reserved more than a card has goes through on it. In between it depends on how
// PyTorch's cache packs them.

/** @import { Story } from "./story.js" */

// The most that was asked for at once, and the most that was reserved.
/** @typedef {{ asked: number, reserved: number }} Bounds */
/** @typedef {"fits" | "does_not_fit" | "open"} Judged */

/** @param {Story} story @returns {Bounds} */
export function boundsOf(story) {
  let now = 0,
    asked = 0;
  for (const life of story.before) if (story.freed[life] > 0) now += story.asked[life];
  asked = now;
  for (let tick = 1; tick <= story.ticks; tick++) {
    const change = story.change[tick],
      life = Math.abs(change) - 1;
    if (change) now += Math.sign(change) * story.asked[life];
    if (now > asked) asked = now;
  }
  return { asked, reserved: story.reservedAt(story.header.reserved_peak_tick) };
}

// On a card with this much for PyTorch. With tensors left out, what is reserved is not known any more; a run that ended
// with a failed request says nothing of what it would have asked for next.
/** @param {Bounds} bounds @param {number} room @param {{ isLess: boolean, isRefused: boolean }} known @returns {Judged} */
export function judge({ asked, reserved }, room, { isLess, isRefused }) {
  if (asked > room) return "does_not_fit";
  return reserved <= room && !isLess && !isRefused ? "fits" : "open";
}
