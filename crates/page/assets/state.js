// What is looked at: one state for all views, kept in the address, so that a link or a reload shows the same.

// Names in the address are short; what is as at the beginning is left out. A list has all that is understood.
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
};

export const FIRST = {
  item: 0,
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
};

export function toHash(state) {
  const words = new URLSearchParams();
  for (const [field, [name, kind]] of Object.entries(FIELDS)) {
    const value = state[field];
    if (value === FIRST[field] || value === null) continue;
    words.set(name, kind === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  return words.toString();
}

export function fromHash(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...FIRST };
  for (const [field, [name, kind]] of Object.entries(FIELDS)) {
    const word = words.get(name);
    if (word === null) continue;
    const number = Number(word),
      isKnown = kind === "text" || kind.includes(word);
    if (kind !== "number" && isKnown) state[field] = word;
    else if (kind === "number" && Number.isFinite(number) && number >= 0) state[field] = number;
  }
  return state;
}

// Changes go through `set`; whoever listens is told once a frame which fields are new.
export class State {
  constructor(hash) {
    this.now = fromHash(hash);
    this.listeners = [];
    this.changed = new Set();
  }

  listen(fields, action) {
    this.listeners.push({ fields, action });
  }

  set(changes) {
    for (const [field, value] of Object.entries(changes)) {
      if (this.now[field] === value) continue;
      this.now[field] = value;
      this.changed.add(field);
    }
    if (this.changed.size && !this.asked) {
      this.asked = true;
      requestAnimationFrame(() => this.tell());
    }
  }

  tell() {
    this.asked = false;
    const { changed } = this;
    this.changed = new Set();
    for (const { fields, action } of this.listeners) if (fields.some((field) => changed.has(field))) action(this.now);
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.write(), 150);
  }

  write() {
    const hash = toHash(this.now);
    if (hash === location.hash.replace(/^#/, "")) return;
    history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  }
}
