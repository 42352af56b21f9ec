// The stacked curves of a window, cell by cell. A cell is a power of two of ticks and begins at a multiple of it, so
// that nothing flickers while the window moves; it is shown by the tick of it at which most is allocated.

/** @import { DimensionName } from "../types" */
/** @import { Banding, Story } from "./story.js" */
/** @typedef {ReturnType<typeof emptyCells>} Cells */

// Running sums of the bands, from a tick on.
class Sums {
  /** @param {Story} story @param {Banding} banding */
  constructor(story, banding) {
    this.story = story;
    this.banding = banding;
    this.now = new Float64Array(banding.groups.length);
    this.total = 0;
  }

  /** @param {number} life @param {1 | -1} sign */
  add(life, sign) {
    const { band, bytes, rounding } = this.banding;
    this.now[band[life]] += sign * bytes[life];
    if (rounding >= 0) this.now[rounding] += sign * (this.story.block[life] - bytes[life]);
    this.total += sign * this.story.block[life];
  }

  // One tick further.
  /** @param {number} tick */
  step(tick) {
    const change = this.story.change[tick];
    if (change > 0) this.add(change - 1, 1);
    else if (change < 0) this.add(-change - 1, -1);
  }
}

// Cells one after the other: `sums` has the bands of the first cell, then those of the second.
/** @param {number} size @param {number} first @param {number} count @param {number} bands */
function emptyCells(size, first, count, bands) {
  return {
    size,
    first,
    count,
    bands,
    shown: new Int32Array(count),
    sums: new Float64Array(count * bands),
    totals: new Float64Array(count),
  };
}

/** @param {Story} story @param {DimensionName} name */
function bucketCells(story, name) {
  if (story.removed) return countedCells(story, name);
  const shown = story.columns["bucket.shown"],
    bytes = story.columns[/** @type {const} */ (`bucket.${name}`)];
  const bands = story.groups(name).length,
    count = shown.length;
  const cells = emptyCells(story.header.bucket, 0, count, bands);
  cells.shown.set(shown);
  for (let band = 0; band < bands; band++) {
    for (let cell = 0; cell < count; cell++) {
      cells.sums[cell * bands + band] = bytes[band * count + cell];
      cells.totals[cell] += bytes[band * count + cell];
    }
  }
  return cells;
}

// The same counted from the lives, where some are left out.
/** @param {Story} story @param {DimensionName} name */
function countedCells(story, name) {
  const banding = story.banding(name),
    { bucket } = story.header;
  const cells = emptyCells(bucket, 0, Math.floor(story.ticks / bucket) + 1, banding.groups.length);
  const sums = sumsAtStart(story, banding);
  fillCells(cells, sums, 0, story.ticks);
  return cells;
}

// Cells of sums that are those of the first tick of the first cell.
/** @param {Cells} cells @param {Sums} sums @param {number} begin @param {number} ticks */
function fillCells(cells, sums, begin, ticks) {
  for (let cell = 0, tick = begin; cell < cells.count; cell++) {
    const end = Math.min(tick + cells.size, ticks + 1);
    let most = -1;
    for (; tick < end; tick++) {
      if (tick > begin) sums.step(tick);
      if (sums.total <= most) continue;
      most = sums.total;
      cells.shown[cell] = tick;
      cells.totals[cell] = most;
      cells.sums.set(sums.now, cell * cells.bands);
    }
  }
}

// What was there before the first event.
/** @param {Story} story @param {Banding} banding */
function sumsAtStart(story, banding) {
  const sums = new Sums(story, banding);
  for (const life of story.before) if (story.freed[life] > 0) sums.add(life, 1);
  return sums;
}

// Two cells become one: the higher is shown.
/** @param {Cells} fine */
function halve(fine) {
  const count = (fine.count + 1) >> 1,
    { bands } = fine;
  const cells = emptyCells(fine.size * 2, 0, count, bands);
  for (let cell = 0; cell < count; cell++) {
    const left = cell * 2,
      right = left + 1;
    const best = right < fine.count && fine.totals[right] > fine.totals[left] ? right : left;
    cells.shown[cell] = fine.shown[best];
    cells.totals[cell] = fine.totals[best];
    for (let band = 0; band < bands; band++) cells.sums[cell * bands + band] = fine.sums[best * bands + band];
  }
  return cells;
}

// From the story itself, for windows that are narrower than its buckets.
/** @param {Story} story @param {DimensionName} name @param {number} from @param {number} to @param {number} size */
function exactCells(story, name, from, to, size) {
  const banding = story.banding(name),
    bands = banding.groups.length;
  const first = Math.floor(Math.max(0, from) / size);
  const last = Math.floor(Math.min(story.ticks, to) / size);
  const cells = emptyCells(size, first, Math.max(0, last - first + 1), bands);
  const sums = new Sums(story, banding);
  const begin = first * size;
  sumsBefore(story, name, sums, begin);
  fillCells(cells, sums, begin, story.ticks);
  return cells;
}

// The sums at a tick: those of the bucket before it, and the ticks since.
/** @param {Story} story @param {DimensionName} name @param {Sums} sums @param {number} tick */
function sumsBefore(story, name, sums, tick) {
  const buckets = coarse(story, name, 0);
  const row = story.rowAt(buckets.shown, tick);
  if (row < 0) {
    const start = sumsAtStart(story, sums.banding);
    sums.now.set(start.now);
    sums.total = start.total;
    for (let at = 1; at <= tick; at++) sums.step(at);
    return;
  }
  sums.now.set(buckets.sums.subarray(row * buckets.bands, (row + 1) * buckets.bands));
  sums.total = buckets.totals[row];
  for (let at = buckets.shown[row] + 1; at <= tick; at++) sums.step(at);
}

// The buckets of a dimension, put together pairwise `level` times; made once.
/** @param {Story} story @param {DimensionName} name @param {number} level */
export function coarse(story, name, level) {
  const levels = (story.levels[name] ??= [bucketCells(story, name)]);
  while (levels.length <= level) levels.push(halve(levels[levels.length - 1]));
  return levels[level];
}

// The cells of a window that is this many pixels wide: each about one pixel, or one tick if those are wider.
/** @param {Story} story @param {DimensionName} name @param {number} from @param {number} to @param {number} pixels */
export function cellsOf(story, name, from, to, pixels) {
  const wanted = Math.max(1, (to - from) / Math.max(1, pixels));
  const { bucket } = story.header;
  const size = 2 ** Math.ceil(Math.log2(wholeSteps(story, wanted)));
  if (size < bucket) return exactCells(story, name, from, to, size);
  return coarse(story, name, Math.round(Math.log2(size / bucket)));
}

// Steps of a few pixels would beat against the cells: then a cell takes two whole steps, and shows their peak.
/** @param {Story} story @param {number} wanted */
function wholeSteps(story, wanted) {
  const { "span.step": steps, "span.from": from } = story.columns;
  const count = steps.length ? steps[steps.length - 1] - steps[0] : 0;
  const length = count > 2 ? (from[from.length - 1] - from[0]) / count : 0;
  return length > wanted / 2 && length < 6 * wanted ? 2 * length : wanted;
}

// The bands at one tick.
/** @param {Story} story @param {DimensionName} name @param {number} tick */
export function bandsAt(story, name, tick) {
  const sums = new Sums(story, story.banding(name));
  sumsBefore(story, name, sums, tick);
  return sums.now;
}

// Bytes of the lives that count, at the shown tick of each cell; from a tick on at which they are known.
/** @param {Story} story @param {(life: number) => unknown} counts @param {Cells} cells @param {number} tick
 *  @param {number} sum */
function sumAtCells(story, counts, cells, tick, sum) {
  const values = new Float64Array(cells.count);
  for (let cell = 0; cell < cells.count; cell++) {
    while (tick < cells.shown[cell]) {
      const change = story.change[++tick];
      const life = Math.abs(change) - 1;
      if (change && counts(life)) sum += Math.sign(change) * story.block[life];
    }
    values[cell] = sum;
  }
  return values;
}

// Bytes of kinds that are marked, over the whole recording; windows begin in the middle of it.
/** @param {Story} story @param {Uint8Array} marked */
export function markedBytes(story, marked) {
  let sum = 0;
  for (const life of story.before) if (marked[story.kind[life]] && story.freed[life] > 0) sum += story.block[life];
  const buckets = coarse(story, "category", 0);
  return sumAtCells(story, (life) => marked[story.kind[life]], buckets, 0, sum);
}

// The same for the cells of a window, from the bucket before it on.
/** @param {Story} story @param {Uint8Array} marked @param {Float64Array} whole @param {Cells} cells */
export function markedCells(story, marked, whole, cells) {
  const buckets = coarse(story, "category", 0);
  if (cells.size >= buckets.size)
    return Float64Array.from(cells.shown, (tick) => whole[Math.floor(tick / buckets.size)]);
  const row = cells.count ? story.rowAt(buckets.shown, cells.shown[0]) : -1;
  if (row < 0) return new Float64Array(cells.count);
  return sumAtCells(story, (life) => marked[story.kind[life]], cells, buckets.shown[row], whole[row]);
}

// Which life lies at a height of a band's part of the stack. High blocks lie at the bottom of their band in the order
// of birth, the others on top of them, so that what is drawn and what is found agree.
/** @param {Story} story @param {DimensionName} name @param {number} tick @param {number} band @param {number} height */
export function lifeAt(story, name, tick, band, height) {
  const { band: bands, bytes } = story.banding(name);
  const tall = tallSet(story),
    { born, freed, count } = story;
  let below = 0;
  for (const life of story.columns.tall) {
    if (born[life] > tick) break;
    if (tick >= freed[life] || bands[life] !== band) continue;
    if (height < (below += bytes[life])) return life;
  }
  for (let life = 0; life < count && born[life] <= tick; life++) {
    if (tick >= freed[life] || bands[life] !== band || tall[life]) continue;
    if (height < (below += bytes[life])) return life;
  }
  return -1;
}

// What lies below a life in its band, in bytes, at the shown tick of each cell from the first on.
/** @param {Story} story @param {DimensionName} name @param {number} life @param {Cells} cells @param {number} first */
export function belowCells(story, name, life, cells, first) {
  const { band, bytes } = story.banding(name),
    tall = tallSet(story);
  const isBelow = (/** @type {number} */ other) =>
    band[other] === band[life] && (tall[other] > tall[life] || (tall[other] === tall[life] && other < life));
  const values = new Float64Array(cells.count);
  let tick = cells.shown[first],
    sum = 0;
  story.forAlive(tick, (other) => isBelow(other) && (sum += bytes[other]));
  for (let cell = first; cell < cells.count && cells.shown[cell] < story.freed[life]; cell++) {
    while (tick < cells.shown[cell]) {
      const change = story.change[++tick],
        other = Math.abs(change) - 1;
      if (change && isBelow(other)) sum += Math.sign(change) * bytes[other];
    }
    values[cell] = sum;
  }
  return values;
}

/** @param {Story} story */
export function tallSet(story) {
  if (!story.tall) {
    story.tall = new Uint8Array(story.count);
    for (const life of story.columns.tall) story.tall[life] = 1;
  }
  return story.tall;
}
