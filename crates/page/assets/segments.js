// The allocator at a moment: every segment with its blocks, and the free memory between them.

import { byId, fitCanvas, hideTip, make, refill, roomOf, showTip } from "./dom.js";
import { bytesText, countText } from "./format.js";
import { bandColours, OKABE_ITO, themeColours } from "./colours.js";
import { detailsOf } from "./details.js";

/** @import { Theme } from "./colours.js" */
/** @import { Context, Pointer } from "./dom.js" */
/** @import { State } from "./state.js" */
/** @import { Story } from "./story.js" */

// A block with its life, or free memory: then the life is -1. A block `waits` that is freed, but used by a stream.
/** @typedef {{ address: number, size: number, life: number, waits: boolean }} Block */
/**
 * @typedef {object} SegmentAt
 * @property {number} address
 * @property {number} size
 * @property {number} stream
 * @property {string} pool
 * @property {boolean} expandable
 * @property {Block[]} blocks
 * @property {boolean} isEmpty
 */
/** @typedef {{ segment: SegmentAt, x: number, row: number, width: number }} SegmentBox */

// PyTorch's small pool takes requests up to 1 MiB, from segments of 2 MiB.
const SMALL_SEGMENT = 2 * 1024 * 1024;
const SEGMENT_ROW = 26,
  GAP = 6,
  MOST_ROWS = 60;

// Segments at a tick in order of addresses; neighbouring ranges of an expandable segment are one.
/** @param {Story} story @param {number} tick */
export function segmentsAt(story, tick) {
  /** @type {SegmentAt[]} */
  const joined = [];
  for (const row of rangesAt(story, tick)) {
    const last = joined[joined.length - 1];
    const follows =
      last &&
      last.expandable &&
      row.expandable &&
      last.address + last.size === row.address &&
      last.stream === row.stream &&
      last.pool === row.pool;
    if (follows) last.size += row.size;
    else joined.push(row);
  }
  addBlocks(story, tick, joined);
  return joined;
}

// Segments and ranges of expandable ones, as they were reserved.
/** @param {Story} story @param {number} tick */
function rangesAt({ columns }, tick) {
  const { "segment.born": born, "segment.gone": gone } = columns;
  /** @type {SegmentAt[]} */
  const rows = [];
  for (let row = 0; row < born.length; row++) {
    if (born[row] > tick || (gone[row] && gone[row] - 1 <= tick)) continue;
    rows.push({
      address: columns["segment.address"][row],
      size: columns["segment.size"][row],
      stream: columns["segment.stream"][row],
      pool: `${columns["segment.pool"][row]}.${columns["segment.pool2"][row]}`,
      expandable: columns["segment.expandable"][row] > 0,
      blocks: [],
      isEmpty: true,
    });
  }
  return rows.sort((a, b) => a.address - b.address);
}

// Blocks that are handed out or still used by a stream; what is between them is free.
/** @param {Story} story @param {number} tick @param {SegmentAt[]} segments */
function addBlocks(story, tick, segments) {
  const { born, returned, freed, address, block, count } = story;
  const lives = [];
  for (let life = 0; life < count && born[life] <= tick; life++) if (tick < returned[life]) lives.push(life);
  lives.sort((a, b) => address[a] - address[b]);
  let at = 0;
  for (const segment of segments) {
    const end = segment.address + segment.size;
    while (at < lives.length && address[lives[at]] < segment.address) at++;
    let free = segment.address;
    for (; at < lives.length && address[lives[at]] < end; at++) {
      const life = lives[at];
      if (address[life] > free) segment.blocks.push(hole(free, address[life]));
      segment.blocks.push({ address: address[life], size: block[life], life, waits: freed[life] <= tick });
      segment.isEmpty = false;
      free = address[life] + block[life];
    }
    if (free < end) segment.blocks.push(hole(free, end));
  }
}

/** @param {number} from @param {number} to @returns {Block} */
function hole(from, to) {
  return { address: from, size: to - from, life: -1, waits: false };
}

// Sums over segments: the figures above the picture.
/** @param {SegmentAt[]} segments */
export function totalsOf(segments) {
  const sums = {
    reserved: 0,
    used: 0,
    waiting: 0,
    pieces: 0,
    whole: 0,
    largestFree: 0,
    count: segments.length,
    holes: 0,
  };
  for (const segment of segments) {
    sums.reserved += segment.size;
    for (const part of segment.blocks) {
      if (part.life >= 0 && part.waits) sums.waiting += part.size;
      else if (part.life >= 0) sums.used += part.size;
      else if (segment.isEmpty) sums.whole += part.size;
      else [sums.pieces, sums.holes] = [sums.pieces + part.size, sums.holes + 1];
      if (part.life < 0) sums.largestFree = Math.max(sums.largestFree, part.size);
    }
  }
  return sums;
}

// Segments in rows, largest first, as words in lines: a row has room for the largest, or for a part of them all.
/** @param {SegmentAt[]} segments @param {number} width */
function shelves(segments, width) {
  const sorted = [...segments].sort((a, b) => b.size - a.size || a.address - b.address);
  const total = sorted.reduce((sum, segment) => sum + segment.size, 0);
  const capacity = Math.max(sorted.length ? sorted[0].size : 1, total / 14);
  const perByte = (width - 2) / capacity;
  /** @type {SegmentBox[]} */
  const boxes = [];
  let x = 0,
    row = 0;
  for (const segment of sorted) {
    const wide = Math.max(3, segment.size * perByte);
    if (x > 0 && x + wide > width) [x, row] = [0, row + 1];
    boxes.push({ segment, x, row, width: wide });
    x += wide + 4;
  }
  return { boxes, rows: row + 1 };
}

export class SegmentView {
  /** @param {State} state */
  constructor(state) {
    this.state = state;
    /** @type {Story | null} */
    this.story = null;
    /** @type {SegmentBox[]} */
    this.boxes = [];
    this.canvas = byId("segments-canvas");
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
  }

  /** @param {Story} story */
  show(story) {
    this.story = story;
    this.draw();
  }

  draw() {
    const { story } = this;
    if (!story) return;
    const { moment, by } = this.state.now;
    const tick = moment ?? story.header.peak_tick;
    const segments = segmentsAt(story, tick);
    const { boxes, rows } = shelves(segments, roomOf(this.canvas));
    const shown = Math.min(rows, MOST_ROWS);
    const { context, ...size } = fitCanvas(this.canvas, Math.max(1, shown) * (SEGMENT_ROW + GAP));
    const theme = themeColours();
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, size.width, size.height);
    this.boxes = boxes.filter((box) => box.row < MOST_ROWS);
    const banding = story.banding(by),
      colours = bandColours(by, banding.groups);
    for (const box of this.boxes) drawSegment(context, box, theme, (life) => colours[banding.band[life]]);
    showTotals(segments, rows - shown, story.whenAt(tick));
  }

  /** @param {Pointer} event */
  hover(event) {
    const { story } = this;
    const area = this.canvas.getBoundingClientRect();
    const x = event.clientX - area.left,
      row = Math.floor((event.clientY - area.top) / (SEGMENT_ROW + GAP));
    const box = this.boxes.find((one) => one.row === row && one.x <= x && x <= one.x + one.width);
    if (!story || !box) return hideTip();
    const { segment } = box;
    const address = segment.address + ((x - box.x) / box.width) * segment.size;
    const part = segment.blocks.find((block) => block.address <= address && address < block.address + block.size);
    const about = [
      `segment of ${bytesText(segment.size)} at 0x${segment.address.toString(16)}`,
      segment.expandable ? "expandable" : "",
      segment.stream ? `stream ${segment.stream}` : "",
    ]
      .filter(Boolean)
      .join(", ");
    if (part && part.life >= 0) return showTip(event, [...detailsOf(story, part.life), about]);
    showTip(event, [
      `${bytesText(part ? part.size : segment.size)} free`,
      segment.isEmpty ? "the whole segment is free" : "between blocks in use",
      about,
    ]);
  }
}

// The figures above the picture, and what to make of them. `hidden` is how many rows had no room.
/** @param {SegmentAt[]} segments @param {number} hidden @param {string} when */
function showTotals(segments, hidden, when) {
  const sums = totalsOf(segments);
  const small = segments.filter((segment) => segment.size === SMALL_SEGMENT).length;
  refill(
    byId("segments-legend"),
    totalItem("reserved", sums.reserved, "thin", "reserved"),
    totalItem("in use", sums.used, "used", "used"),
    sums.waiting ? totalItem("waiting for a stream", sums.waiting, "waiting", "waiting") : "",
    totalItem(`fragmentation, ${countText(sums.holes)} free ${sums.holes === 1 ? "block" : "blocks"}`, sums.pieces, "hole", "pieces"),
    totalItem("cached segments", sums.whole, "whole", "whole"),
  );
  refill(
    byId("segments-note"),
    `${countText(sums.count)} segments${small ? `, ${countText(small)} of 2 MiB for small requests` : ""}; `,
    `the largest free block is ${bytesText(sums.largestFree)}${when ? `, in ${when}` : ""}. `,
    "Free blocks in used segments can serve smaller requests only; cached segments go back to the card before a request fails.",
    hidden > 0 ? ` ${countText(hidden)} rows of small segments are left out.` : "",
  );
}

/** @param {string} label @param {number} bytes @param {string} kind @param {string} field */
function totalItem(label, bytes, kind, field) {
  return make(
    "li",
    {},
    make("span", { class: "swatch " + kind }),
    `${label} `,
    make("b", { "data-segments": field, "data-bytes": bytes }, bytesText(bytes)),
  );
}

/** @param {Context} context @param {SegmentBox} box @param {Theme} theme @param {(life: number) => string} colourOf */
function drawSegment(context, box, theme, colourOf) {
  const { segment, x, width } = box;
  const y = box.row * (SEGMENT_ROW + GAP),
    perByte = width / segment.size;
  context.fillStyle = theme.wash;
  context.fillRect(x, y, width, SEGMENT_ROW);
  for (const part of segment.blocks) {
    const left = x + (part.address - segment.address) * perByte,
      wide = part.size * perByte;
    if (part.life < 0) {
      if (segment.isEmpty) continue;
      context.fillStyle = OKABE_ITO.purple;
      context.globalAlpha = 0.5;
      context.fillRect(left, y + SEGMENT_ROW - 8, Math.max(0.6, wide), 8);
      context.globalAlpha = 1;
      continue;
    }
    context.fillStyle = colourOf(part.life);
    context.globalAlpha = part.waits ? 0.4 : 1;
    context.fillRect(left, y, Math.max(0.5, wide - (wide > 4 ? 0.7 : 0)), SEGMENT_ROW);
    context.globalAlpha = 1;
  }
  context.strokeStyle = theme.soft;
  context.lineWidth = 0.75;
  context.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), SEGMENT_ROW - 1);
}
