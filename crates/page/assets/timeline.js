// The memory timeline: stacked bands, what is reserved, phases and steps, the card's limit, and what is chosen.

import { byId, fitCanvas, onceAFrame } from "./dom.js";
import { bytesText, countText, fitText, plainWords } from "./format.js";
import { cellsOf, lifeAt, markedBytes, markedCells } from "./bands.js";
import { bandColours, themeColours } from "./colours.js";
import { drawAxes, drawBands, drawLimit, drawReserved, drawSteps, haloText, Scale, visibleCells } from "./curve.js";
import { drawBlocks, drawLife } from "./blocks.js";
import { markedKinds } from "./details.js";

// Phases alternate between two shades.
const LIGHT_PHASES = ["construction", "backward", "after training"];

export class Timeline {
  constructor(state) {
    this.state = state;
    this.canvas = byId("timeline-canvas");
    this.strip = byId("overview-canvas");
    this.draw = onceAFrame(() => this.drawNow());
    this.frames = [];
    this.hovered = -1;
  }

  // Another story; the limit is 0 if there is none.
  show(story, limit) {
    Object.assign(this, { story, limit, marked: null, hovered: -1 });
    this.theme = themeColours();
    this.draw();
  }

  repaint() {
    this.theme = themeColours();
    this.draw();
  }

  // A tick lasts up to the next, and the last one as long as any.
  length() {
    return this.story.ticks + 1;
  }

  // The window in ticks; it never leaves the recording.
  window() {
    const { from, to } = this.state.now;
    const all = this.length();
    if (from === null || to === null || !(from < to)) return [0, all];
    const width = Math.min(all, Math.max(4, to - from));
    const begin = Math.min(Math.max(0, from), all - width);
    return [begin, begin + width];
  }

  top() {
    const peak = Math.max(this.story.reservedAt(this.story.header.reserved_peak_tick), this.peakBytes(), 1);
    const limit = this.limit || 0;
    if (this.state.now.scale === "limit" && limit) return Math.max(peak, limit) * 1.06;
    // A limit that is near belongs into the picture.
    return (limit && limit < peak * 1.5 ? Math.max(limit, peak) : peak) * 1.06;
  }

  peakBytes() {
    this.story.peakBytes ??= this.story.allocatedAt(this.story.header.peak_tick);
    return this.story.peakBytes;
  }

  drawNow() {
    if (!this.story) return;
    const begun = performance.now();
    const { by } = this.state.now;
    const { context, width, height } = fitCanvas(this.canvas, globalThis.innerWidth < 620 ? 300 : 350);
    const [from, to] = this.window();
    const scale = (this.scale = new Scale(width, height, from, to, this.top()));
    this.cells = cellsOf(this.story, by, from, to, scale.plotWidth);
    this.colours = bandColours(by, this.story.dimension(by).groups);
    context.fillStyle = this.theme.paper;
    context.fillRect(0, 0, width, height);
    drawAxes(context, scale, this.theme);
    drawBands(context, scale, this.cells, this.colours);
    this.drawDetail(context);
    drawReserved(context, scale, this.story, this.theme.ink);
    this.drawPhases(context);
    if (this.limit) drawLimit(context, scale, this.limit, this.theme);
    this.drawMark(context);
    this.drawChosen(context);
    this.drawOverview();
    this.note();
    this.frames.push(performance.now() - begun);
    if (this.frames.length > 600) this.frames.shift();
  }

  // What a column stands for, where it is more than one tick.
  note() {
    const { size } = this.cells,
      { changes } = this.story.header;
    const columns = size > 1 ? `; a column shows the highest moment of ${countText(size)}` : "";
    const text = `${countText(changes)} allocations and frees${columns}`;
    const element = byId("event-count");
    if (element.textContent !== text) element.textContent = text;
  }

  // Edges of single blocks: only when the window rests, so that moving stays smooth.
  drawDetail(context) {
    if (this.moving) {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => {
        this.moving = false;
        this.draw();
      }, 120);
      return;
    }
    drawBlocks(context, this.scale, this.story, this.state.now.by, this.cells, this.theme);
    if (this.hovered >= 0)
      drawLife(context, this.scale, this.story, this.state.now.by, this.cells, this.hovered, this.theme);
  }

  drawPhases(context) {
    const { "span.from": from, "span.step": steps } = this.story.columns;
    const { scale, theme } = this,
      right = scale.left + scale.plotWidth;
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    let lastLine = -Infinity,
      lastText = -Infinity;
    const first = Math.max(0, this.story.rowAt(from, scale.from));
    if (this.story.rowAt(from, scale.to) - first > scale.plotWidth) return this.drawStepNumbers(context);
    for (let row = first, next; row < from.length && from[row] <= scale.to; row = next) {
      const name = plainWords(this.story.phaseName(row));
      for (
        next = row + 1;
        next < from.length && plainWords(this.story.phaseName(next)) === name && steps[next] === steps[row];
      )
        next++;
      const begin = Math.max(scale.left, scale.x(from[row]));
      const end = Math.min(right, next < from.length ? scale.x(from[next]) : right);
      this.drawPhase(context, name, begin, end);
      // What comes after the last step counts as the next one, but is none.
      if (!steps[row] || name === "after training" || (row > first && steps[row] === steps[row - 1])) continue;
      if (row > 0 && begin - lastLine > 10 && begin > scale.left) this.drawStepLine(context, (lastLine = begin));
      context.font = "600 12px system-ui, sans-serif";
      const text = "step " + steps[row],
        wide = context.measureText(text).width;
      if (begin < lastText || right - begin < wide) continue;
      context.fillStyle = theme.ink;
      context.fillText(text, begin + 2, 12);
      lastText = begin + wide + 14;
    }
  }

  // Phases too short to be seen: now and then the number of the step.
  drawStepNumbers(context) {
    const { "span.from": from, "span.step": steps } = this.story.columns;
    const { scale, theme } = this;
    context.font = "600 12px system-ui, sans-serif";
    context.fillStyle = theme.ink;
    for (let x = scale.left; x < scale.left + scale.plotWidth - 70; x += 110) {
      const step = steps[Math.max(0, this.story.rowAt(from, scale.tick(x)))];
      if (step) context.fillText("step " + step, x + 2, 12);
    }
  }

  drawPhase(context, name, begin, end) {
    context.fillStyle = LIGHT_PHASES.includes(name) ? this.theme.wash : this.theme.line;
    if (name) context.fillRect(begin, 18, Math.max(0, end - begin), 14);
    context.fillStyle = this.theme.soft;
    context.font = "11px system-ui, sans-serif";
    if (end - begin > 34) context.fillText(fitText(context, name, end - begin - 8), begin + 4, 29);
  }

  drawStepLine(context, x) {
    const { scale } = this;
    context.strokeStyle = this.theme.soft;
    context.globalAlpha = 0.35;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, 4);
    context.lineTo(Math.round(x) + 0.5, scale.head + scale.plotHeight);
    context.stroke();
    context.globalAlpha = 1;
  }

  // What is marked elsewhere, a module or a line, as a curve of its own on the ground.
  drawMark(context) {
    const { mark } = this.state.now;
    if (!mark) return;
    const { cells } = this;
    if (!this.marked || this.marked.mark !== mark || this.marked.story !== this.story) {
      const kinds = markedKinds(this.story, mark);
      this.marked = { mark, story: this.story, kinds, whole: markedBytes(this.story, kinds) };
    }
    this.marked.values = markedCells(this.story, this.marked.kinds, this.marked.whole, cells);
    const stripes = hatch(context, this.theme.ink);
    drawSteps(context, this.scale, cells, this.marked.values, this.theme.ink, stripes);
  }

  // The moment, and the range that was brushed.
  drawChosen(context) {
    const { scale, theme } = this;
    const { moment, rangeFrom, rangeTo } = this.state.now;
    const bottom = scale.head + scale.plotHeight,
      right = scale.left + scale.plotWidth;
    if (rangeFrom !== null && rangeTo !== null) {
      const left = Math.max(scale.left, scale.x(rangeFrom)),
        end = Math.min(right, scale.x(rangeTo));
      context.fillStyle = theme.ink;
      context.globalAlpha = 0.12;
      if (end > left) context.fillRect(left, scale.head, end - left, scale.plotHeight);
      context.globalAlpha = 1;
    }
    const x = scale.x(moment ?? this.story.header.peak_tick);
    if (x < scale.left - 1 || x > right + 1) return;
    context.strokeStyle = theme.ink;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, scale.head - 2);
    context.lineTo(Math.round(x) + 0.5, bottom);
    context.stroke();
    context.fillStyle = theme.ink;
    this.label(context, x, moment);
    context.beginPath();
    context.moveTo(x - 4, scale.head - 6);
    context.lineTo(x + 5, scale.head - 6);
    context.lineTo(x + 0.5, scale.head);
    context.fill();
  }

  // How much is allocated at the moment, beside its line.
  label(context, x, moment) {
    const { scale, story } = this;
    const tick = moment ?? story.header.peak_tick,
      isPeak = tick === story.header.peak_tick;
    const text = `${isPeak ? "peak " : ""}${bytesText(isPeak ? this.peakBytes() : story.allocatedAt(tick))}`;
    context.font = "600 12px system-ui, sans-serif";
    context.textBaseline = "alphabetic";
    const width = context.measureText(text).width,
      fits = x + width + 8 < scale.left + scale.plotWidth;
    context.textAlign = fits ? "left" : "right";
    haloText(context, text, fits ? x + 6 : x - 6, scale.head + 13, this.theme, this.theme.ink);
  }

  // The whole recording, small, with the window on it.
  drawOverview() {
    const { context, width, height } = fitCanvas(this.strip, 42);
    const scale = new Scale(width, height, 0, this.length(), this.peakBytes() * 1.1);
    Object.assign(scale, { head: 2, foot: 2, plotHeight: height - 4 });
    this.stripScale = scale;
    context.fillStyle = this.theme.wash;
    context.fillRect(0, 0, width, height);
    const cells = cellsOf(this.story, this.state.now.by, 0, this.length(), scale.plotWidth);
    drawSteps(context, scale, cells, cells.totals, this.theme.soft, this.theme.line);
    const [from, to] = this.window();
    context.fillStyle = this.theme.ink;
    context.globalAlpha = 0.14;
    context.fillRect(scale.x(from), 0, Math.max(2, scale.x(to) - scale.x(from)), height);
    context.globalAlpha = 1;
  }

  // The cell under a place, and the life that is drawn there.
  under(x, y) {
    const { scale, cells } = this;
    const cell = Math.floor(scale.tick(x) / cells.size) - cells.first;
    const [first, last] = visibleCells(cells, scale);
    if (x < scale.left || y < scale.head || cell < first || cell > last) return null;
    const tick = cells.shown[cell];
    let height = scale.bytes(y);
    for (let band = 0; band < cells.bands && height >= 0; band++) {
      const bytes = cells.sums[cell * cells.bands + band];
      if (height < bytes) return { tick, band, life: lifeAt(this.story, this.state.now.by, tick, band, height) };
      height -= bytes;
    }
    return { tick, band: -1, life: -1 };
  }
}

let stripes = null;

// Diagonal lines, for what is marked.
function hatch(context, colour) {
  if (stripes && stripes.colour === colour) return stripes.pattern;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const inner = tile.getContext("2d");
  inner.strokeStyle = colour;
  inner.lineWidth = 1.2;
  inner.beginPath();
  inner.moveTo(-1, 7);
  inner.lineTo(7, -1);
  inner.stroke();
  stripes = { colour, pattern: context.createPattern(tile, "repeat") };
  return stripes.pattern;
}
