// A recording in the browser: every allocation with its times, and questions about moments.

import { placeText, whenText } from "./format.js";

export const NEVER = 2 ** 31 - 1;

export class Story {
  constructor({ header, columns }) {
    Object.assign(this, { header, columns });
    this.ticks = header.ticks;
    this.born = columns.born;
    this.block = columns.block;
    this.address = columns.address;
    this.kind = columns.kind;
    this.count = this.born.length;
    this.addEnds(columns);
    this.addChanges();
    this.bands = {};
  }

  // Ends are packed as lengths plus one, 0 says never.
  addEnds({ span, wait, block, slack }) {
    this.freed = new Int32Array(this.count);
    this.returned = new Int32Array(this.count);
    this.asked = new Float64Array(this.count);
    for (let life = 0; life < this.count; life++) {
      this.freed[life] = span[life] ? this.born[life] + span[life] - 1 : NEVER;
      this.returned[life] = wait[life] ? this.freed[life] + wait[life] - 1 : NEVER;
      this.asked[life] = block[life] - slack[life];
    }
  }

  // At each tick one allocation (its number plus one) or one free (the same, negative). What was there before the
  // first event has no tick of its own.
  addChanges() {
    this.change = new Int32Array(this.ticks + 1);
    this.before = [];
    for (let life = 0; life < this.count; life++) {
      if (this.born[life] === 0) this.before.push(life);
      else this.change[this.born[life]] = life + 1;
      if (this.freed[life] !== NEVER && this.freed[life] > 0) this.change[this.freed[life]] = -(life + 1);
    }
  }

  text(number) {
    return this.header.texts[number] ?? "";
  }

  // Calls with every life that is allocated at a tick.
  forAlive(tick, action) {
    const { born, freed, count } = this;
    for (let life = 0; life < count && born[life] <= tick; life++) {
      if (tick < freed[life]) action(life);
    }
  }

  allocatedAt(tick) {
    let sum = 0;
    this.forAlive(tick, (life) => (sum += this.block[life]));
    return sum;
  }

  // The row of a sorted column that holds at a tick.
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

  reservedAt(tick) {
    const row = this.rowAt(this.columns["reserved.tick"], tick);
    return row < 0 ? 0 : this.columns["reserved.bytes"][row];
  }

  // Phase and step at a tick, in words.
  whenAt(tick) {
    const row = this.rowAt(this.columns["span.from"], tick);
    if (row < 0) return "";
    return whenText(this.phaseName(row), this.columns["span.step"][row]);
  }

  phaseName(row) {
    const phase = this.columns["span.phase"][row];
    return phase ? this.header.phases[phase - 1] : "";
  }

  place(kind) {
    const row = this.columns["kind.place"][kind] - 1;
    if (row < 0) return null;
    const { "place.file": file, "place.line": line, "place.function": name, "place.caller": caller } = this.columns;
    return {
      row,
      file: this.text(file[row]),
      line: line[row],
      function: this.text(name[row]),
      caller: caller[row] - 1,
    };
  }

  // All that is known of a kind, in words.
  about(kind) {
    const { columns } = this;
    const place = this.place(kind);
    return {
      module: this.text(columns["kind.module"][kind]),
      operator: this.text(columns["kind.operator"][kind]),
      name: this.text(columns["kind.name"][kind]),
      tensor: this.text(columns["kind.tensor"][kind]),
      holder: this.text(columns["kind.holder"][kind]),
      category: this.dimension("category").groups[columns["band.category"][kind]],
      file: place ? place.file : "",
      line: place ? place.line : 0,
      place: place ? placeText(place.file, place.line) : "",
    };
  }

  dimension(name) {
    return this.header.dimensions.find((dimension) => dimension.name === name);
  }

  // For a dimension: the band of each life, and the bytes it adds to it.
  banding(name) {
    this.bands[name] ??= name === "phase" ? this.byPhase() : this.byKind(name);
    return this.bands[name];
  }

  byKind(name) {
    const ofKind = this.columns["band." + name];
    const band = new Uint8Array(this.count);
    for (let life = 0; life < this.count; life++) band[life] = ofKind[this.kind[life]];
    const isCategory = name === "category";
    const rounding = isCategory ? this.dimension(name).groups.indexOf("rounding") : -1;
    return { band, bytes: isCategory ? this.asked : this.block, rounding, groups: this.dimension(name).groups };
  }

  byPhase() {
    const { "span.from": from, "span.phase": phase } = this.columns;
    const band = new Uint8Array(this.count);
    let row = 0;
    for (let life = 0; life < this.count; life++) {
      while (row + 1 < from.length && from[row + 1] <= this.born[life]) row++;
      band[life] = this.born[life] === 0 ? 0 : phase[row];
    }
    return { band, bytes: this.block, rounding: -1, groups: this.dimension("phase").groups };
  }
}
