// A recording in the browser: every allocation with its times, and questions about moments.

import { placeText, whenText } from "./format.js";

/** @import { DimensionName, Header } from "../types" */
/** @import { Cells } from "./bands.js" */
/** @import { Columns, Numbers } from "./unpack.js" */
/** @typedef {ReturnType<Story["about"]>} About */

// The band of each life, the bytes it adds to it, and the band of what blocks have beyond them (-1: bytes are blocks).
/** @typedef {{ band: Uint8Array, bytes: Numbers, rounding: number, groups: string[] }} Banding */

export const NEVER = 2 ** 31 - 1;

export class Story {
  /** @param {{ header: Header, columns: Columns }} unpacked */
  constructor({ header, columns }) {
    this.header = header;
    this.columns = columns;
    this.ticks = header.ticks;
    this.born = columns.born;
    this.block = columns.block;
    this.address = columns.address;
    this.kind = columns.kind;
    this.count = this.born.length;
    this.freed = new Int32Array(this.count);
    this.returned = new Int32Array(this.count);
    this.asked = new Float64Array(this.count);
    this.addEnds(columns);
    this.change = new Int32Array(this.ticks + 1);
    /** @type {number[]} */
    this.before = [];
    this.addChanges();
    // What is made once, when it is first asked for.
    /** @type {Partial<Record<DimensionName, Banding>>} */
    this.bands = {};
    /** @type {Partial<Record<DimensionName, Cells[]>>} */
    this.levels = {};
    /** @type {Uint8Array | null} */
    this.tall = null;
    /** @type {number | null} */
    this.peak = null;
    // In a "what if": lives that are left out, and the tick at which a replay ended.
    /** @type {Uint8Array | null} */
    this.removed = null;
    /** @type {number | null} */
    this.ends = null;
  }

  // The same recording as if some lives had never been: they have no bytes, and nobody meets them.
  /** @param {Uint8Array} removed */
  without(removed) {
    const columns = { ...this.columns, block: this.columns.block.slice() };
    const less = new Story({ header: { ...this.header }, columns });
    for (let life = 0; life < less.count; life++) if (removed[life]) less.block[life] = less.asked[life] = 0;
    less.removed = removed;
    less.header.peak_tick = less.highestTick();
    return less;
  }

  // The same with what a replay reserves, and where it ended.
  /** @param {{ ticks: number[], bytes: number[] }} reserved @param {number | null} refused @returns {Story} */
  replayed({ ticks, bytes }, refused) {
    const columns = {
      ...this.columns,
      "reserved.tick": Int32Array.from(ticks),
      "reserved.bytes": Float64Array.from(bytes),
    };
    const most = bytes.reduce((best, now, at) => (now > bytes[best] ? at : best), 0);
    const header = { ...this.header, refused_tick: refused, reserved_peak_tick: ticks[most] ?? 0 };
    // All that was made of the lives stays as it is.
    return Object.assign(Object.create(Story.prototype), this, { columns, header, ends: refused });
  }

  // The first tick at which most is allocated.
  highestTick() {
    let now = 0,
      highest = 0;
    for (const life of this.before) if (this.freed[life] > 0) now += this.block[life];
    for (let tick = 1, most = now; tick <= this.ticks; tick++) {
      const change = this.change[tick];
      if (change) now += Math.sign(change) * this.block[Math.abs(change) - 1];
      if (now > most) [most, highest] = [now, tick];
    }
    return highest;
  }

  // Ends are packed as lengths plus one, 0 says never.
  /** @param {Columns} columns */
  addEnds({ span, wait, block, slack }) {
    for (let life = 0; life < this.count; life++) {
      this.freed[life] = span[life] ? this.born[life] + span[life] - 1 : NEVER;
      this.returned[life] = wait[life] ? this.freed[life] + wait[life] - 1 : NEVER;
      this.asked[life] = block[life] - slack[life];
    }
  }

  // At each tick one allocation (its number plus one) or one free (the same, negative). What was there before the
  // first event has no tick of its own.
  addChanges() {
    for (let life = 0; life < this.count; life++) {
      if (this.born[life] === 0) this.before.push(life);
      else this.change[this.born[life]] = life + 1;
      if (this.freed[life] !== NEVER && this.freed[life] > 0) this.change[this.freed[life]] = -(life + 1);
    }
  }

  /** @param {number} number */
  text(number) {
    return this.header.texts[number] ?? "";
  }

  // Calls with every life that is allocated at a tick.
  /** @param {number} tick @param {(life: number) => void} action */
  forAlive(tick, action) {
    const { born, freed, count, removed } = this;
    for (let life = 0; life < count && born[life] <= tick; life++) {
      if (tick < freed[life] && !removed?.[life]) action(life);
    }
  }

  /** @param {number} tick */
  allocatedAt(tick) {
    let sum = 0;
    this.forAlive(tick, (life) => (sum += this.block[life]));
    return sum;
  }

  peakBytes() {
    this.peak ??= this.allocatedAt(this.header.peak_tick);
    return this.peak;
  }

  // The row of a sorted column that holds at a tick.
  /** @param {Numbers} column @param {number} tick */
  rowAt(column, tick) {
    let low = 0,
      high = column.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (column[middle] <= tick) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** @param {number} tick */
  reservedAt(tick) {
    const row = this.rowAt(this.columns["reserved.tick"], tick);
    return row < 0 ? 0 : this.columns["reserved.bytes"][row];
  }

  // Phase and step at a tick, in words.
  /** @param {number} tick */
  whenAt(tick) {
    const row = this.rowAt(this.columns["span.from"], tick);
    if (row < 0) return "";
    return whenText(this.phaseName(row), this.columns["span.step"][row]);
  }

  /** @param {number} row */
  phaseName(row) {
    const phase = this.columns["span.phase"][row];
    return phase ? this.header.phases[phase - 1] : "";
  }

  // The rows of the lines that a kind is made in: the innermost first, then who called it.
  /** @param {number} kind */
  placesOf(kind) {
    const { "kind.place": place, "place.caller": caller } = this.columns;
    const rows = [];
    for (let row = place[kind] - 1; row >= 0; row = caller[row] - 1) rows.push(row);
    return rows;
  }

  // `train.py:12`
  /** @param {number} row */
  lineText(row) {
    const { "place.file": file, "place.line": line } = this.columns;
    return placeText(this.text(file[row]), line[row]);
  }

  // All that is known of a kind, in words.
  /** @param {number} kind */
  about(kind) {
    const { columns } = this;
    const row = columns["kind.place"][kind] - 1;
    return {
      module: this.text(columns["kind.module"][kind]),
      operator: this.text(columns["kind.operator"][kind]),
      name: this.text(columns["kind.name"][kind]),
      tensor: this.text(columns["kind.tensor"][kind]),
      holder: this.text(columns["kind.holder"][kind]),
      category: this.groups("category")[columns["band.category"][kind]],
      file: row < 0 ? "" : this.text(columns["place.file"][row]),
      line: row < 0 ? 0 : columns["place.line"][row],
      place: row < 0 ? "" : this.lineText(row),
    };
  }

  // The bands of a dimension, from the ground up.
  /** @param {DimensionName} name */
  groups(name) {
    const found = this.header.dimensions.find((dimension) => dimension.name === name);
    if (!found) throw new Error(`the recording is not divided by ${name}`);
    return found.groups;
  }

  /** @param {DimensionName} name */
  banding(name) {
    this.bands[name] ??= name === "phase" ? this.byPhase() : this.byKind(name);
    return this.bands[name];
  }

  /** @param {DimensionName} name @returns {Banding} */
  byKind(name) {
    const ofKind = this.columns[/** @type {const} */ (`band.${name}`)],
      groups = this.groups(name);
    const band = new Uint8Array(this.count);
    for (let life = 0; life < this.count; life++) band[life] = ofKind[this.kind[life]];
    const isCategory = name === "category";
    const rounding = isCategory ? groups.indexOf("rounding") : -1;
    return { band, bytes: isCategory ? this.asked : this.block, rounding, groups };
  }

  /** @returns {Banding} */
  byPhase() {
    const { "span.from": from, "span.phase": phase } = this.columns;
    const band = new Uint8Array(this.count);
    let row = 0;
    for (let life = 0; life < this.count; life++) {
      while (row + 1 < from.length && from[row + 1] <= this.born[life]) row++;
      band[life] = this.born[life] === 0 ? 0 : phase[row];
    }
    return { band, bytes: this.block, rounding: -1, groups: this.groups("phase") };
  }
}
