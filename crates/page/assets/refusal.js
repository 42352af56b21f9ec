// The request that failed, as a ghost: it stands on what was reserved when it was refused, and breaks through the limit.

import { haloText } from "./curve.js";
import { bytesText } from "./format.js";

/** @import { Picture } from "./timeline.js" */
/** @import { Story } from "./story.js" */

// Where it stands and how high it is.
/** @typedef {{ tick: number, from: number, bytes: number }} Ghost */

// Before it fails a request, PyTorch returns what it can: the rest is what there was no room on top of.
/** @param {Story} story @param {number} tried @returns {Ghost | null} */
export function ghostOf(story, tried) {
  const { refused_tick: tick } = story.header;
  if (tick === null || !(tried > 0)) return null;
  return { tick, from: story.reservedAt(tick), bytes: tried };
}

// Wide enough to be seen, and never beyond the right edge, where most runs end by it.
/** @param {Picture} picture @param {Ghost} ghost */
export function drawGhost({ context, scale, theme }, { tick, from, bytes }) {
  const right = Math.min(scale.right, Math.max(scale.x(tick + 1), scale.x(tick) + 18));
  const left = Math.min(scale.x(tick), right - 18);
  if (right < scale.left + 18 || left > scale.right) return;
  const top = Math.max(scale.head, scale.y(from + bytes));
  const height = scale.y(from) - top;
  context.fillStyle = context.strokeStyle = theme.alarm;
  context.globalAlpha = 0.22;
  context.fillRect(left, top, right - left, height);
  context.globalAlpha = 1;
  context.lineWidth = 1.5;
  context.setLineDash([4, 3]);
  context.strokeRect(left + 0.75, top + 0.75, right - left - 1.5, Math.max(1, height - 1.5));
  context.setLineDash([]);
  context.font = "600 12px system-ui, sans-serif";
  context.textAlign = "right";
  const text = `refused ${bytesText(bytes)}`;
  const x = Math.max(left - 6, scale.left + 12 + context.measureText(text).width);
  haloText(context, text, x, top + 26, theme, theme.alarm);
  context.textAlign = "left";
}
