// The allocator at a moment: every segment with its blocks, and the free memory between them.

import { byId, fitCanvas, hideTip, make, refill, showTip } from "./dom.js";
import { bytesText, countText } from "./format.js";
import { bandColours, OKABE_ITO, themeColours } from "./colours.js";
import { detailsOf } from "./details.js";

// PyTorch's small pool takes requests up to 1 MiB, from segments of 2 MiB.
const SMALL_SEGMENT = 2 * 1024 * 1024;
const SEGMENT_ROW = 26,
  GAP = 6,
  MOST_ROWS = 60;

// Segments at a tick in order of addresses; neighbouring ranges of an expandable segment are one.
export function segmentsAt(story, tick) {
  const { columns } = story;
  const {
    "segment.born": born,
    "segment.gone": gone,
    "segment.address": address,
    "segment.size": size,
    "segment.stream": stream,
  } = columns;
  const { "segment.pool": pool, "segment.pool2": pool2, "segment.expandable": expandable } = columns;
  const rows = [];
  for (let row = 0; row < born.length; row++) {
    if (born[row] > tick || (gone[row] && gone[row] - 1 <= tick)) continue;
    rows.push({
      address: address[row],
      size: size[row],
      stream: stream[row],
      pool: pool[row] + "." + pool2[row],
      expandable: !!expandable[row],
      blocks: [],
    });
  }
  rows.sort((a, b) => a.address - b.address);
  const joined = [];
  for (const row of rows) {
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

// Blocks that are handed out or still used by a stream; what is between them is free.
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
      if (address[life] > free) segment.blocks.push({ address: free, size: address[life] - free, life: -1 });
      segment.blocks.push({ address: address[life], size: block[life], life, waits: freed[life] <= tick });
      free = address[life] + block[life];
    }
    if (free < end) segment.blocks.push({ address: free, size: end - free, life: -1 });
    segment.isEmpty = segment.blocks.every((part) => part.life < 0);
    segment.largestFree = segment.blocks.reduce((most, part) => (part.life < 0 ? Math.max(most, part.size) : most), 0);
  }
}

// Sums over segments: the figures above the picture.
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
function shelves(segments, width) {
  const sorted = [...segments].sort((a, b) => b.size - a.size || a.address - b.address);
  const total = sorted.reduce((sum, segment) => sum + segment.size, 0);
  const capacity = Math.max(sorted.length ? sorted[0].size : 1, total / 14);
  const perByte = (width - 2) / capacity;
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
  constructor(state) {
    this.state = state;
    this.canvas = byId("segments-canvas");
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
  }

  show(story) {
    this.story = story;
    this.draw();
  }

  draw() {
    const { story } = this;
    const { moment, by } = this.state.now;
    const tick = moment ?? story.header.peak_tick;
    const segments = segmentsAt(story, tick);
    const width = this.canvas.parentElement.clientWidth;
    const { boxes, rows } = shelves(segments, width);
    const shown = Math.min(rows, MOST_ROWS);
    const { context, ...size } = fitCanvas(this.canvas, Math.max(1, shown) * (SEGMENT_ROW + GAP));
    const theme = themeColours();
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, size.width, size.height);
    this.boxes = boxes.filter((box) => box.row < MOST_ROWS);
    const banding = story.banding(by),
      colours = bandColours(by, banding.groups);
    for (const box of this.boxes) drawSegment(context, box, theme, (life) => colours[banding.band[life]]);
    this.figures(segments, rows - shown, tick);
  }

  figures(segments, hidden, tick) {
    const sums = totalsOf(segments);
    const small = segments.filter((segment) => segment.size === SMALL_SEGMENT).length;
    const part = (label, bytes, kind, field) =>
      make(
        "li",
        {},
        make("span", { class: "swatch " + kind }),
        `${label} `,
        make("b", { "data-segments": field, "data-bytes": bytes }, bytesText(bytes)),
      );
    refill(
      byId("segments-legend"),
      part("reserved", sums.reserved, "thin", "reserved"),
      part("in use", sums.used, "used", "used"),
      sums.waiting ? part("waiting for a stream", sums.waiting, "waiting", "waiting") : "",
      part(`free in ${countText(sums.holes)} pieces between blocks`, sums.pieces, "hole", "pieces"),
      part("free segments", sums.whole, "whole", "whole"),
    );
    const when = this.story.whenAt(tick);
    refill(
      byId("segments-note"),
      `${countText(sums.count)} segments${small ? `, ${countText(small)} of 2 MiB for small requests` : ""}; `,
      `the largest free block is ${bytesText(sums.largestFree)}${when ? `, in ${when}` : ""}. `,
      "Free pieces can serve smaller requests only; free segments go back to the card before a request fails.",
      hidden > 0 ? ` ${countText(hidden)} rows of small segments are left out.` : "",
    );
  }

  hover(event) {
    const area = this.canvas.getBoundingClientRect();
    const x = event.clientX - area.left,
      row = Math.floor((event.clientY - area.top) / (SEGMENT_ROW + GAP));
    const box = (this.boxes ?? []).find((one) => one.row === row && one.x <= x && x <= one.x + one.width);
    if (!box) return hideTip();
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
    if (part && part.life >= 0) return showTip(event, [...detailsOf(this.story, part.life), about]);
    showTip(event, [
      `${bytesText(part ? part.size : segment.size)} free`,
      segment.isEmpty ? "the whole segment is free" : "between blocks in use",
      about,
    ]);
  }
}

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
