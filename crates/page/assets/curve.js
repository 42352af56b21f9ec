// Drawing the stacked curves: numbers in, pixels out.

import { axisSteps, axisText, countText } from "./format.js";

// From ticks and bytes to pixels. The plot leaves room for the axis on the left and for phases on top.
export class Scale {
  constructor(width, height, from, to, top) {
    Object.assign(this, { width, height, from, to, top });
    this.left = width < 520 ? 46 : 64;
    this.head = 34;
    this.foot = 20;
    this.plotWidth = Math.max(1, width - this.left - 8);
    this.plotHeight = height - this.head - this.foot;
  }

  x(tick) {
    return this.left + ((tick - this.from) / (this.to - this.from)) * this.plotWidth;
  }

  y(bytes) {
    return this.head + this.plotHeight * (1 - bytes / this.top);
  }

  tick(x) {
    return this.from + ((x - this.left) / this.plotWidth) * (this.to - this.from);
  }

  bytes(y) {
    return (1 - (y - this.head) / this.plotHeight) * this.top;
  }
}

// The cells that a window shows, first and last.
export function visibleCells(cells, scale) {
  const first = Math.max(0, Math.floor(scale.from / cells.size) - cells.first);
  const last = Math.min(cells.count - 1, Math.floor(scale.to / cells.size) - cells.first);
  return [first, last];
}

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
function trace(context, scale, cells, first, heights, direction) {
  const count = heights.length;
  for (let step = 0; step < count; step++) {
    const cell = direction > 0 ? step : count - 1 - step;
    const begin = (cells.first + first + cell) * cells.size;
    const left = Math.max(scale.left, scale.x(begin)),
      right = Math.min(scale.left + scale.plotWidth, scale.x(begin + cells.size));
    const y = scale.y(heights[cell]);
    context.lineTo(direction > 0 ? left : right, y);
    context.lineTo(direction > 0 ? right : left, y);
  }
}

// A line of one number for each cell, and what is below it if a fill is given.
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

export function drawReserved(context, scale, story, colour) {
  const { "reserved.tick": ticks, "reserved.bytes": bytes } = story.columns;
  const first = Math.max(0, story.rowAt(ticks, scale.from));
  // Flat lines are sharp in the middle of a pixel.
  const sharp = (bytes) => Math.round(scale.y(bytes)) + 0.5;
  context.beginPath();
  let lastX = -Infinity,
    low = 0,
    high = 0;
  for (let row = first; row < ticks.length && (row === first || ticks[row - 1] <= scale.to); row++) {
    const x = Math.max(scale.left, Math.min(scale.x(ticks[row]), scale.left + scale.plotWidth)),
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
  context.lineTo(scale.left + scale.plotWidth, sharp(bytes[row] ?? 0));
  context.strokeStyle = colour;
  context.lineWidth = 1.2;
  context.setLineDash([]);
  context.stroke();
}

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
    context.lineTo(scale.left + scale.plotWidth, y);
    context.stroke();
    context.fillStyle = theme.soft;
    context.fillText(axisText(bytes), scale.left - 6, y);
  }
  context.textBaseline = "alphabetic";
  const y = scale.height - 5;
  context.textAlign = "left";
  context.fillText(countText(Math.max(0, scale.from)), scale.left, y);
  context.textAlign = "right";
  context.fillText(countText(Math.max(scale.from, scale.to - 1)), scale.left + scale.plotWidth, y);
  if (scale.plotWidth > 360) {
    context.textAlign = "center";
    context.fillText("allocations and frees, in order", scale.left + scale.plotWidth / 2, y);
  }
}

// A text that stays readable on lines and bands: paper around its letters.
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
export function drawLimit(context, scale, limit, theme) {
  const y = scale.y(limit);
  context.fillStyle = theme.alarm;
  context.font = "600 12px system-ui, sans-serif";
  context.textAlign = "left";
  const text = `limit ${axisText(limit)}`;
  if (y < scale.head) {
    context.fillText("↑ " + text, scale.left + 6, scale.head + 13);
    return;
  }
  context.strokeStyle = theme.alarm;
  context.lineWidth = 1.5;
  context.setLineDash([6, 4]);
  context.beginPath();
  context.moveTo(scale.left, y);
  context.lineTo(scale.left + scale.plotWidth, y);
  context.stroke();
  context.setLineDash([]);
  haloText(context, text, scale.left + 6, y + 15, theme, theme.alarm);
}
