// Steps and phases of the training, above the timeline.

import { fitText, plainWords } from "./format.js";

/** @import { Picture } from "./timeline.js" */

// Phases alternate between two shades.
const LIGHT_PHASES = ["construction", "backward", "after training"];
const STEP_FONT = "600 12px system-ui, sans-serif";

/** @param {Picture} picture */
export function drawPhases(picture) {
  const { context, scale, story } = picture;
  const { "span.from": from, "span.step": steps } = story.columns;
  context.textBaseline = "alphabetic";
  context.textAlign = "left";
  let lastLine = -Infinity,
    textEnd = -Infinity;
  const first = Math.max(0, story.rowAt(from, scale.from));
  if (story.rowAt(from, scale.to) - first > scale.plotWidth) return drawStepNumbers(picture);
  for (let row = first, next; row < from.length && from[row] <= scale.to; row = next) {
    next = endOfPhase(picture, row);
    const name = plainWords(story.phaseName(row));
    const begin = Math.max(scale.left, scale.x(from[row]));
    const end = Math.min(scale.right, next < from.length ? scale.x(from[next]) : scale.right);
    drawPhase(picture, name, begin, end);
    // What comes after the last step counts as the next one, but is none.
    if (!steps[row] || name === "after training" || (row > first && steps[row] === steps[row - 1])) continue;
    if (row > 0 && begin - lastLine > 10 && begin > scale.left) drawStepLine(picture, (lastLine = begin));
    textEnd = drawStepNumber(picture, steps[row], begin, textEnd);
  }
}

// The first row after this one that is of another phase or step.
/** @param {Picture} picture @param {number} row */
function endOfPhase({ story }, row) {
  const { "span.phase": phases, "span.step": steps } = story.columns;
  let next = row + 1;
  while (next < phases.length && phases[next] === phases[row] && steps[next] === steps[row]) next++;
  return next;
}

// The number of a step where there is room for it; gives the end of the last number.
/** @param {Picture} picture @param {number} step @param {number} x @param {number} lastEnd */
function drawStepNumber({ context, scale, theme }, step, x, lastEnd) {
  context.font = STEP_FONT;
  const text = "step " + step,
    width = context.measureText(text).width;
  if (x < lastEnd || scale.right - x < width) return lastEnd;
  context.fillStyle = theme.ink;
  context.fillText(text, x + 2, 12);
  return x + width + 14;
}

// Phases too short to be seen: now and then the number of the step.
/** @param {Picture} picture */
function drawStepNumbers({ context, scale, story, theme }) {
  const { "span.from": from, "span.step": steps } = story.columns;
  context.font = STEP_FONT;
  context.fillStyle = theme.ink;
  for (let x = scale.left; x < scale.right - 70; x += 110) {
    const step = steps[Math.max(0, story.rowAt(from, scale.tick(x)))];
    if (step) context.fillText("step " + step, x + 2, 12);
  }
}

/** @param {Picture} picture @param {string} name @param {number} begin @param {number} end */
function drawPhase({ context, theme }, name, begin, end) {
  context.fillStyle = LIGHT_PHASES.includes(name) ? theme.wash : theme.line;
  if (name) context.fillRect(begin, 18, Math.max(0, end - begin), 14);
  context.fillStyle = theme.soft;
  context.font = "11px system-ui, sans-serif";
  if (end - begin > 34) context.fillText(fitText(context, name, end - begin - 8), begin + 4, 29);
}

/** @param {Picture} picture @param {number} x */
function drawStepLine({ context, scale, theme }, x) {
  context.strokeStyle = theme.soft;
  context.globalAlpha = 0.35;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, 4);
  context.lineTo(Math.round(x) + 0.5, scale.bottom);
  context.stroke();
  context.globalAlpha = 1;
}
