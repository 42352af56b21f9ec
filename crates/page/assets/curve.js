// Drawing the stacked curves: numbers in, pixels out.

import { axisSteps, axisText, bytesText, countText } from "./format.js";

/** @import { Cells } from "./bands.js" */
/** @import { Theme } from "./colours.js" */
/** @import { Context } from "./dom.js" */
/** @import { Story } from "./story.js" */

// Room that the label of a moment takes beside its line.
const MOMENT_WIDTH = 130;

// From ticks and bytes to pixels. The plot leaves room for the axis on the left and for phases on top.
export class Scale {
  /** @param {number} width @param {number} height @param {number} from @param {number} to @param {number} top */
  constructor(width, height, from, to, top) {
    this.width = width;
    this.height = height;
    this.from = from;
    this.to = to;
    this.top = top;
    this.left = width < 520 ? 46 : 64;
    this.plotWidth = Math.max(1, width - this.left - 8);
    this.head = 34;
    this.foot = 20;
    this.plotHeight = height - this.head - this.foot;
  }

  // Other room above and below the plot.
  /** @param {number} head @param {number} foot */
  withRoom(head, foot) {
    this.head = head;
    this.foot = foot;
    this.plotHeight = this.height - head - foot;
    return this;
  }

  get right() {
    return this.left + this.plotWidth;
  }

  get bottom() {
    return this.head + this.plotHeight;
  }

  /** @param {number} tick */
  x(tick) {
    return this.left + ((tick - this.from) / (this.to - this.from)) * this.plotWidth;
  }

  /** @param {number} bytes */
  y(bytes) {
    return this.head + this.plotHeight * (1 - bytes / this.top);
  }

  /** @param {number} x */
  tick(x) {
    return this.from + ((x - this.left) / this.plotWidth) * (this.to - this.from);
  }

  /** @param {number} y */
  bytes(y) {
    return (1 - (y - this.head) / this.plotHeight) * this.top;
  }
}

// The cells that a window shows, first and last.
/** @param {Cells} cells @param {Scale} scale */
export function visibleCells(cells, scale) {
  const first = Math.max(0, Math.floor(scale.from / cells.size) - cells.first);
  const last = Math.min(cells.count - 1, Math.floor(scale.to / cells.size) - cells.first);
  return [first, last];
}

// From where to where a cell goes on the picture, as far as the plot has room.
/** @param {Cells} cells @param {Scale} scale @param {number} cell */
export function edgesOf(cells, scale, cell) {
  const begin = (cells.first + cell) * cells.size;
  return [Math.max(scale.left, scale.x(begin)), Math.min(scale.right, scale.x(begin + cells.size))];
}

/** @param {Context} context @param {Scale} scale @param {Cells} cells @param {string[]} colours */
export function drawBands(context, scale, cells, colours) {
  const [first, last] = visibleCells(cells, scale);
  const width = Math.max(0, last - first + 1),
    { bands, sums } = cells;
  const lower = new Float64Array(width),
    upper = new Float64Array(width);
  for (let band = 0; band < bands; band++) {
    let any = false;
    for (let cell = 0; cell < width; cell++) {
      const bytes = sums[(first + cell) * bands + band];
      upper[cell] = lower[cell] + bytes;
      any ||= bytes > 0;
    }
    if (!any) continue;
    context.fillStyle = colours[band];
    context.beginPath();
    trace(context, scale, cells, first, upper, 1);
    trace(context, scale, cells, first, lower, -1);
    context.fill();
    lower.set(upper);
  }
}

// One edge of a band as steps, forwards or backwards.
/** @param {Context} context @param {Scale} scale @param {Cells} cells @param {number} first
 *  @param {Float64Array} heights @param {1 | -1} direction */
function trace(context, scale, cells, first, heights, direction) {
  const count = heights.length;
  for (let step = 0; step < count; step++) {
    const cell = direction > 0 ? step : count - 1 - step;
    const [left, right] = edgesOf(cells, scale, first + cell);
    const y = scale.y(heights[cell]);
    context.lineTo(direction > 0 ? left : right, y);
    context.lineTo(direction > 0 ? right : left, y);
  }
}

// A line of one number for each cell, and what is below it if a fill is given.
/** @param {Context} context @param {Scale} scale @param {Cells} cells @param {Float64Array} heights
 *  @param {string} stroke @param {string | CanvasPattern | null} fill */
export function drawSteps(context, scale, cells, heights, stroke, fill) {
  const [first, last] = visibleCells(cells, scale);
  if (last < first) return;
  const part = heights.subarray(first, last + 1);
  context.beginPath();
  trace(context, scale, cells, first, part, 1);
  context.strokeStyle = stroke;
  context.lineWidth = 1.5;
  context.stroke();
  if (!fill) return;
  trace(context, scale, cells, first, new Float64Array(part.length), -1);
  context.fillStyle = fill;
  context.fill();
}

/** @param {Context} context @param {Scale} scale @param {Story} story @param {string} colour */
export function drawReserved(context, scale, story, colour) {
  const { "reserved.tick": ticks, "reserved.bytes": bytes } = story.columns;
  const first = Math.max(0, story.rowAt(ticks, scale.from));
  // Flat lines are sharp in the middle of a pixel.
  const sharp = (/** @type {number} */ bytes) => Math.round(scale.y(bytes)) + 0.5;
  context.beginPath();
  let lastX = -Infinity,
    low = 0,
    high = 0;
  for (let row = first; row < ticks.length && (row === first || ticks[row - 1] <= scale.to); row++) {
    const x = Math.max(scale.left, Math.min(scale.x(ticks[row]), scale.right)),
      y = sharp(bytes[row]);
    // Many changes within a pixel are one stroke up and down.
    if (x - lastX < 0.5) {
      if (y < low || y > high) context.lineTo(lastX, y);
      [low, high] = [Math.min(low, y), Math.max(high, y)];
      continue;
    }
    if (row > first) context.lineTo(x, sharp(bytes[row - 1]));
    context.lineTo(x, y);
    [lastX, low, high] = [x, y, y];
  }
  const row = Math.max(0, story.rowAt(ticks, scale.to));
  context.lineTo(scale.right, sharp(bytes[row] ?? 0));
  context.strokeStyle = colour;
  context.lineWidth = 1.2;
  context.setLineDash([]);
  context.stroke();
}

/** @param {Context} context @param {Scale} scale @param {Theme} theme */
export function drawAxes(context, scale, theme) {
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const bytes of axisSteps(scale.top, scale.plotHeight < 200 ? 3 : 6)) {
    const y = Math.round(scale.y(bytes)) + 0.5;
    context.strokeStyle = theme.line;
    context.beginPath();
    context.moveTo(scale.left, y);
    context.lineTo(scale.right, y);
    context.stroke();
    context.fillStyle = theme.soft;
    context.fillText(axisText(bytes, scale.top), scale.left - 6, y);
  }
  context.textBaseline = "alphabetic";
  const y = scale.height - 5;
  context.textAlign = "left";
  context.fillText(countText(Math.max(0, scale.from)), scale.left, y);
  context.textAlign = "right";
  context.fillText(countText(Math.max(scale.from, scale.to - 1)), scale.right, y);
  if (scale.plotWidth > 360) {
    context.textAlign = "center";
    context.fillText("allocations and frees, in order", scale.left + scale.plotWidth / 2, y);
  }
}

// A text that stays readable on lines and bands: paper around its letters.
/** @param {Context} context @param {string} text @param {number} x @param {number} y @param {Theme} theme
 *  @param {string} ink */
export function haloText(context, text, x, y, theme, ink) {
  context.strokeStyle = theme.paper;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.setLineDash([]);
  context.strokeText(text, x, y);
  context.fillStyle = ink;
  context.fillText(text, x, y);
}

// The card's limit, or a note where it is if it lies above the picture. On the left, where runs begin, there is room.
/** @param {Context} context @param {Scale} scale @param {number} limit @param {Theme} theme */
export function drawLimit(context, scale, limit, theme) {
  const text = `limit ${axisText(limit)}`,
    x = scale.left + 6,
    y = drawLevel(context, scale, limit, theme);
  if (y === null) haloText(context, "↑ " + text, x, scale.head + 13, theme, theme.alarm);
  else haloText(context, text, x, y + 15, theme, theme.alarm);
}

// What a run needs that had no room, beside the label of the moment at `x`; above its line, since the limit's is below.
/** @param {Context} context @param {Scale} scale @param {number} needed @param {Theme} theme @param {number} x */
export function drawNeeded(context, scale, needed, theme, x) {
  const y = drawLevel(context, scale, needed, theme),
    text = `${y === null ? "↑ " : ""}needs ${bytesText(needed)} + context`,
    { width } = context.measureText(text),
    left = scale.left + 6 + width < x - MOMENT_WIDTH ? scale.left + 6 : x + MOMENT_WIDTH;
  if (left + width > scale.right) return;
  haloText(context, text, left, y === null ? scale.head + 13 : y - 5, theme, theme.alarm);
}

// A height as a dashed line, and where it is; null if it lies above the picture.
/** @param {Context} context @param {Scale} scale @param {number} bytes @param {Theme} theme */
function drawLevel(context, scale, bytes, theme) {
  const y = scale.y(bytes);
  context.font = "600 12px system-ui, sans-serif";
  context.textAlign = "left";
  if (y < scale.head) return null;
  context.strokeStyle = theme.alarm;
  context.lineWidth = 1.5;
  context.setLineDash([6, 4]);
  context.beginPath();
  context.moveTo(scale.left, y);
  context.lineTo(scale.right, y);
  context.stroke();
  context.setLineDash([]);
  return y;
}
