// What is looked at: one state for all views, kept in the address, so that a link or a reload shows the same.

/** @import { DimensionName } from "../types" */

/**
 * @typedef {object} Values
 * @property {number | null} item
 * @property {DimensionName} by
 * @property {number | null} from
 * @property {number | null} to
 * @property {number | null} moment
 * @property {number | null} rangeFrom
 * @property {number | null} rangeTo
 * @property {"treemap" | "flame"} view
 * @property {"module" | "line"} tree
 * @property {string} root
 * @property {string} table
 * @property {string} query
 * @property {string} sort
 * @property {string} mark
 * @property {"" | "light" | "dark"} theme
 * @property {"fit" | "limit"} scale
 * @property {string} changes
 * @property {"" | "open"} ask
 * @property {number | null} memory
 * @property {string} card
 * @property {string} conf
 * @property {string} without
 */
/** @typedef {keyof Values} Field */

// Names in the address are short; what is as at the beginning is left out. A list has all that is understood.
/** @type {Record<Field, [string, "number" | "text" | string[]]>} */
const FIELDS = {
  item: ["i", "number"],
  by: ["by", ["category", "module", "phase", "line"]],
  from: ["a", "number"],
  to: ["b", "number"],
  moment: ["t", "number"],
  rangeFrom: ["ra", "number"],
  rangeTo: ["rb", "number"],
  view: ["v", ["treemap", "flame"]],
  tree: ["of", ["module", "line"]],
  root: ["in", "text"],
  table: ["tab", "text"],
  query: ["q", "text"],
  sort: ["sort", "text"],
  mark: ["mark", "text"],
  theme: ["theme", ["light", "dark"]],
  scale: ["y", ["fit", "limit"]],
  changes: ["d", "text"],
  ask: ["if", ["open"]],
  memory: ["mib", "number"],
  card: ["gpu", "text"],
  conf: ["conf", "text"],
  without: ["less", "text"],
};

/** @type {Values} */
export const FIRST = {
  item: null,
  by: "category",
  from: null,
  to: null,
  moment: null,
  rangeFrom: null,
  rangeTo: null,
  view: "treemap",
  tree: "module",
  root: "",
  table: "modules",
  query: "",
  sort: "",
  mark: "",
  theme: "",
  scale: "fit",
  changes: "",
  ask: "",
  memory: null,
  card: "",
  conf: "",
  without: "",
};

// Another recording: what was looked at in the last one is no part of it.
/** @param {number} item @returns {Partial<Values>} */
export function ofItem(item) {
  const { from, to, moment, rangeFrom, rangeTo, mark, root, memory, card, conf, without } = FIRST;
  return { item, from, to, moment, rangeFrom, rangeTo, mark, root, memory, card, conf, without };
}

/** @param {Values} values */
export function toHash(values) {
  const words = new URLSearchParams();
  for (const field of fields(FIELDS)) {
    const [name] = FIELDS[field],
      value = values[field];
    if (value === FIRST[field] || value === null) continue;
    words.set(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  return words.toString();
}

// What an address says; what it does not say, or in words that are not known, is as at the beginning.
/** @param {string} hash */
export function fromHash(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {Partial<Record<Field, string | number>>} */
  const said = {};
  for (const field of fields(FIELDS)) {
    const [name, kind] = FIELDS[field],
      word = words.get(name);
    if (word === null) continue;
    if (kind === "number") {
      const number = Number(word);
      if (Number.isFinite(number) && number >= 0) said[field] = number;
    } else if (kind === "text" || kind.includes(word)) said[field] = word;
  }
  return /** @type {Values} */ ({ ...FIRST, ...said });
}

/** @param {object} values */
function fields(values) {
  return /** @type {Field[]} */ (Object.keys(values));
}

// Changes go through `set`; whoever listens is told once a frame which fields are new.
export class State {
  /** @param {string} hash */
  constructor(hash) {
    this.now = fromHash(hash);
    /** @type {{ fields: Field[], action: () => void }[]} */
    this.listeners = [];
    /** @type {Set<Field>} */
    this.changed = new Set();
    this.isAsked = false;
    this.writing = 0;
  }

  /** @param {Field[]} fields @param {() => void} action */
  listen(fields, action) {
    this.listeners.push({ fields, action });
  }

  /** @param {Partial<Values>} changes */
  set(changes) {
    for (const field of fields(changes)) if (this.now[field] !== changes[field]) this.changed.add(field);
    Object.assign(this.now, changes);
    if (this.changed.size && !this.isAsked) {
      this.isAsked = true;
      requestAnimationFrame(() => this.tell());
    }
  }

  tell() {
    this.isAsked = false;
    const { changed } = this;
    this.changed = new Set();
    for (const { fields, action } of this.listeners) if (fields.some((field) => changed.has(field))) action();
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.write(), 150);
  }

  write() {
    const hash = toHash(this.now);
    if (hash === location.hash.replace(/^#/, "")) return;
    // Whole addresses: in a frame of the viewer, relative ones are those of the viewer.
    history.replaceState(null, "", location.href.split("#")[0] + (hash ? "#" + hash : ""));
  }
}
