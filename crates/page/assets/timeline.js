// The memory timeline: stacked bands, what is reserved, phases and steps, the card's limit, and what is chosen.

import { byId, fitCanvas, onceAFrame } from "./dom.js";
import { bytesText, countText } from "./format.js";
import { cellsOf, lifeAt, markedBytes, markedCells } from "./bands.js";
import { bandColours, themeColours } from "./colours.js";
import { drawAxes, drawBands, drawLimit, drawNeeded, drawReserved, drawSteps, haloText, Scale, visibleCells } from "./curve.js";
import { drawBlocks, drawLife } from "./blocks.js";
import { drawPhases } from "./phases.js";
import { markedKinds } from "./details.js";
import { drawGhost, ghostOf } from "./refusal.js";

/** @import { Cells } from "./bands.js" */
/** @import { Theme } from "./colours.js" */
/** @import { Context } from "./dom.js" */
/** @import { State } from "./state.js" */
/** @import { Story } from "./story.js" */

// What is drawn, on what and with what.
/** @typedef {{ context: Context, scale: Scale, story: Story, cells: Cells, theme: Theme }} Picture */

// The bytes of what is marked: in the whole recording, and in the cells that are drawn.
/**
 * @typedef {object} Marked
 * @property {string} mark
 * @property {Story} story
 * @property {Uint8Array} kinds
 * @property {Float64Array} whole
 * @property {Float64Array} values
 */

export class Timeline {
  /** @param {State} state */
  constructor(state) {
    this.state = state;
    this.canvas = byId("timeline-canvas");
    this.strip = byId("overview-canvas");
    this.draw = onceAFrame(() => this.drawNow());
    this.theme = themeColours();
    // Null until a story is shown, and then drawn for the first time.
    /** @type {Story | null} */
    this.story = null;
    /** @type {Scale | null} */
    this.scale = null;
    /** @type {Scale | null} */
    this.stripScale = null;
    /** @type {Cells | null} */
    this.cells = null;
    /** @type {Marked | null} */
    this.marked = null;
    this.limit = 0;
    // What a run that had no room needs beside its context; 0 if that is not known.
    this.needed = 0;
    // The picture reaches at least so high; and what other settings would allocate, bucket by bucket.
    this.least = 0;
    /** @type {number[] | null} */
    this.heights = null;
    // The request that failed; null if none did.
    /** @type {import("./refusal.js").Ghost | null} */
    this.ghost = null;
    this.hovered = -1;
    this.isMoving = false;
    this.resting = 0;
    /** @type {number[]} */
    this.frames = [];
  }

  // Another story; the limit is 0 if there is none.
  /** @param {Story} story @param {number} limit @param {number} tried @param {number} needed */
  show(story, limit, tried, needed) {
    this.story = story;
    this.limit = limit;
    this.needed = needed;
    this.least = 0;
    this.heights = null;
    this.ghost = ghostOf(story, tried);
    this.marked = null;
    this.hovered = -1;
    this.repaint();
  }

  // The same recording as it would be: its picture stays as high as that of the recorded one.
  /** @param {Story} recorded @param {import("./whatif.js").Pictured} pictured */
  showWhatIf(recorded, { story, limit, tried, heights }) {
    this.show(story, limit, tried, 0);
    this.least = Math.max(recorded.reservedAt(recorded.header.reserved_peak_tick), recorded.peakBytes());
    this.heights = heights;
  }

  repaint() {
    this.theme = themeColours();
    this.draw();
  }

  // A tick lasts up to the next, and the last one as long as any.
  length() {
    return (this.story ? this.story.ticks : 0) + 1;
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

  /** @param {Story} story */
  top(story) {
    const refused = this.ghost ? this.ghost.from + this.ghost.bytes : 0;
    const held = Math.max(story.reservedAt(story.header.reserved_peak_tick), story.peakBytes(), refused, this.least, 1);
    const { limit, needed } = this;
    const peak = needed < held * 2 ? Math.max(held, needed) : held;
    if (this.state.now.scale === "limit" && limit) return Math.max(peak, limit) * 1.06;
    // A limit that is near belongs into the picture.
    return (limit && limit < peak * 1.5 ? Math.max(limit, peak) : peak) * 1.06;
  }

  drawNow() {
    const { story, theme } = this;
    if (!story) return;
    const begun = performance.now();
    const { by } = this.state.now;
    const { context, width, height } = fitCanvas(this.canvas, heightOf());
    const [from, to] = this.window();
    const scale = (this.scale = new Scale(width, height, from, to, this.top(story)));
    const cells = (this.cells = cellsOf(story, by, from, to, scale.plotWidth));
    const picture = { context, scale, story, cells, theme };
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, width, height);
    drawAxes(context, scale, theme);
    drawBands(context, scale, cells, bandColours(by, story.groups(by)));
    this.drawDetail(picture);
    drawReserved(context, scale, story, theme.ink);
    drawPhases(picture);
    this.drawOtherBlocks(picture);
    if (story.ends !== null) drawEnd(picture, story.ends);
    if (this.ghost) drawGhost(picture, this.ghost);
    if (this.limit) drawLimit(context, scale, this.limit, theme);
    if (this.needed) drawNeeded(context, scale, this.needed, theme, scale.x(this.state.now.moment ?? story.header.peak_tick));
    this.drawMark(picture);
    this.drawChosen(picture);
    this.drawOverview(story);
    showCount(story, cells);
    this.frames.push(performance.now() - begun);
    if (this.frames.length > 600) this.frames.shift();
  }

  // Edges of single blocks: only when the window rests, so that moving stays smooth.
  /** @param {Picture} picture */
  drawDetail({ context, scale, story, cells, theme }) {
    if (this.isMoving) {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => {
        this.isMoving = false;
        this.draw();
      }, 120);
      return;
    }
    const { by } = this.state.now;
    drawBlocks(context, scale, story, by, cells, theme);
    if (this.hovered >= 0) drawLife(context, scale, story, by, cells, this.hovered, theme);
  }

  // What other settings would allocate: their blocks have other sizes.
  /** @param {Picture} picture */
  drawOtherBlocks({ context, scale, story, cells, theme }) {
    const { heights } = this,
      { bucket } = story.header;
    if (!heights) return;
    const values = Float64Array.from({ length: cells.count }, (_, cell) => {
      const first = Math.floor(((cells.first + cell) * cells.size) / bucket);
      const part = heights.slice(first, Math.max(first + 1, Math.floor(first + cells.size / bucket)));
      return Math.max(0, ...part);
    });
    context.setLineDash([2, 2]);
    drawSteps(context, scale, cells, values, theme.ink, null);
    context.setLineDash([]);
  }

  // What is marked elsewhere, a module or a line, as a curve of its own on the ground.
  /** @param {Picture} picture */
  drawMark({ context, scale, story, cells, theme }) {
    const { mark } = this.state.now;
    if (!mark) return;
    let { marked } = this;
    if (!marked || marked.mark !== mark || marked.story !== story) {
      const kinds = markedKinds(story, mark);
      marked = { mark, story, kinds, whole: markedBytes(story, kinds), values: new Float64Array(0) };
    }
    marked.values = markedCells(story, marked.kinds, marked.whole, cells);
    this.marked = marked;
    drawSteps(context, scale, cells, marked.values, theme.ink, hatch(context, theme.ink));
  }

  // The moment, and the range that was brushed.
  /** @param {Picture} picture */
  drawChosen(picture) {
    const { context, scale, story, theme } = picture;
    const { moment, rangeFrom, rangeTo } = this.state.now;
    context.fillStyle = theme.ink;
    if (rangeFrom !== null && rangeTo !== null) {
      const left = Math.max(scale.left, scale.x(rangeFrom)),
        right = Math.min(scale.right, scale.x(rangeTo));
      context.globalAlpha = 0.12;
      if (right > left) context.fillRect(left, scale.head, right - left, scale.plotHeight);
      context.globalAlpha = 1;
    }
    drawMoment(picture, moment ?? story.header.peak_tick);
  }

  // The whole recording, small, with the window on it.
  /** @param {Story} story */
  drawOverview(story) {
    const { theme } = this;
    const { context, width, height } = fitCanvas(this.strip, 42);
    const scale = new Scale(width, height, 0, this.length(), story.peakBytes() * 1.1).withRoom(2, 2);
    this.stripScale = scale;
    context.fillStyle = theme.wash;
    context.fillRect(0, 0, width, height);
    const cells = cellsOf(story, this.state.now.by, 0, this.length(), scale.plotWidth);
    drawSteps(context, scale, cells, cells.totals, theme.soft, theme.line);
    const [from, to] = this.window();
    context.fillStyle = theme.ink;
    context.globalAlpha = 0.14;
    context.fillRect(scale.x(from), 0, Math.max(2, scale.x(to) - scale.x(from)), height);
    context.globalAlpha = 1;
  }

  // The cell under a place, and the life that is drawn there; null outside of the plot.
  /** @param {number} x @param {number} y */
  under(x, y) {
    const { scale, cells, story } = this;
    if (!scale || !cells || !story) return null;
    const cell = Math.floor(scale.tick(x) / cells.size) - cells.first;
    const [first, last] = visibleCells(cells, scale);
    if (x < scale.left || y < scale.head || cell < first || cell > last) return null;
    const tick = cells.shown[cell];
    let height = scale.bytes(y);
    for (let band = 0; band < cells.bands && height >= 0; band++) {
      const bytes = cells.sums[cell * cells.bands + band];
      if (height < bytes) return { tick, band, life: lifeAt(story, this.state.now.by, tick, band, height) };
      height -= bytes;
    }
    return { tick, band: -1, life: -1 };
  }
}

// How many events there are, and what a column stands for where it is more than one of them.
/** @param {Story} story @param {Cells} cells */
function showCount(story, { size }) {
  const columns = size > 1 ? `; each column is the peak of ${countText(size)} events` : "";
  const text = `${countText(story.header.changes)} allocations and frees${columns}`;
  const element = byId("event-count");
  if (element.textContent !== text) element.textContent = text;
}

// A line with an arrow at its top, and beside it how much is allocated then.
/** @param {Picture} picture @param {number} tick */
function drawMoment({ context, scale, story, theme }, tick) {
  const x = scale.x(tick);
  if (x < scale.left - 1 || x > scale.right + 1) return;
  context.strokeStyle = theme.ink;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, scale.head - 2);
  context.lineTo(Math.round(x) + 0.5, scale.bottom);
  context.stroke();
  const isPeak = tick === story.header.peak_tick,
    text = isPeak ? `peak ${bytesText(story.peakBytes())}` : bytesText(story.allocatedAt(tick));
  context.font = "600 12px system-ui, sans-serif";
  context.textBaseline = "alphabetic";
  const fits = x + context.measureText(text).width + 8 < scale.right;
  context.textAlign = fits ? "left" : "right";
  haloText(context, text, fits ? x + 6 : x - 6, scale.head + 13, theme, theme.ink);
  context.beginPath();
  context.moveTo(x - 4, scale.head - 6);
  context.lineTo(x + 5, scale.head - 6);
  context.lineTo(x + 0.5, scale.head);
  context.fill();
}

// Where a replay ended: what was recorded after it would not happen.
/** @param {Picture} picture @param {number} tick */
function drawEnd({ context, scale, theme }, tick) {
  const left = Math.max(scale.left, scale.x(tick));
  if (left >= scale.right) return;
  context.globalAlpha = 0.78;
  context.fillStyle = theme.paper;
  context.fillRect(left, scale.head, scale.right - left, scale.plotHeight);
  context.globalAlpha = 1;
}

/** @type {{ colour: string, pattern: CanvasPattern | null } | null} */
let stripes = null;

// Diagonal lines, for what is marked.
/** @param {Context} context @param {string} colour */
function hatch(context, colour) {
  if (stripes && stripes.colour === colour) return stripes.pattern;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const inner = tile.getContext("2d");
  if (!inner) return null;
  inner.strokeStyle = colour;
  inner.lineWidth = 1.2;
  inner.beginPath();
  inner.moveTo(-1, 7);
  inner.lineTo(7, -1);
  inner.stroke();
  stripes = { colour, pattern: context.createPattern(tile, "repeat") };
  return stripes.pattern;
}

// On a desk the timeline and what stands above it are one screen.
function heightOf() {
  const { innerWidth, innerHeight } = globalThis;
  return innerWidth < 620 ? 300 : Math.min(350, Math.max(220, innerHeight - 540));
}
