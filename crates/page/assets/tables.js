// The report's lists as tables: searched, sorted, and each row marks its allocations in the timeline.

import { byId, choices, make, refill } from "./dom.js";
import { bytesText, countText, percentText, placeText, plainWords, whenText } from "./format.js";

const FIRST_ROWS = 60;

// Columns: title, value of a row, and how it is shown. Numbers sort downwards first.
const number = (title, value, text) => ({
  title,
  value,
  text: text ?? ((row) => bytesText(value(row))),
  isNumber: true,
});
const words = (title, value) => ({ title, value, text: value, isNumber: false });
const field = (name) => (row) => row[name] ?? "";
const blocks = number(
  "blocks",
  (row) => row.count,
  (row) => countText(row.count),
);
const share = (report) =>
  number(
    "share",
    (row) => row.bytes,
    (row) => percentText(row.bytes, report.peak ? report.peak.allocated_bytes : 0),
  );

const TABLES = {
  modules: {
    title: "Modules",
    rows: (report) => report.modules,
    mark: (row) => "module:" + row.path,
    columns: (report) => [
      words("module", (row) => row.path || "no module"),
      words("class", field("class")),
      number("bytes", (row) => row.bytes),
      share(report),
      number("own", (row) => row.own_bytes),
      number("kept for backward", (row) => row.saved_bytes),
    ],
  },
  lines: {
    title: "Lines",
    rows: (report) => report.lines,
    mark: (row) => "line:" + placeText(row.file, row.line),
    columns: (report) => [
      words("line", (row) => placeText(row.file, row.line) || "no line"),
      words("function", field("function")),
      words("source", field("source")),
      number("bytes", (row) => row.bytes),
      share(report),
      blocks,
    ],
  },
  tensors: {
    title: "Tensors",
    rows: (report) => report.tensors,
    mark: tensorMark,
    columns: (report) => [
      number("bytes", (row) => row.bytes),
      share(report),
      words("what", (row) => (row.dtype ? `${row.dtype}[${row.shape.join(", ")}]` : "")),
      words("category", (row) => plainWords(row.category)),
      words("name", field("name")),
      words("module", field("module")),
      words("operator", field("operator")),
      words("line", (row) => placeText(row.file, row.line)),
      words("made in", (row) => whenText(row.born_phase, row.born_step)),
    ],
  },
  operators: {
    title: "Operators",
    rows: (report) => report.operators,
    mark: (row) => "operator:" + row.name,
    columns: (report) => [
      words("operator", (row) => row.name || "no operator"),
      number("bytes", (row) => row.bytes),
      share(report),
      blocks,
    ],
  },
  areas: {
    title: "Parallel",
    rows: (report) => report.areas,
    mark: () => "",
    columns: (report) => [
      words("what distributed training holds at the peak", (row) => row.name),
      number("bytes", (row) => row.bytes),
      share(report),
      blocks,
      number(
        "in flight",
        (row) => row.parts,
        (row) => (row.parts ? countText(row.parts) : ""),
      ),
    ],
  },
  phases: {
    title: "Phases",
    rows: (report) => report.phases,
    mark: () => "",
    columns: () => [
      words("phase", (row) => plainWords(row.name)),
      number(
        "step",
        (row) => row.step,
        (row) => (row.step ? String(row.step) : ""),
      ),
      number("allocated at most", (row) => row.peak_allocated_bytes),
      number("reserved at most", (row) => row.peak_reserved_bytes),
    ],
  },
  growth: {
    title: "Growth",
    rows: (report) => report.growth,
    mark: (row) => (row.file ? "line:" + placeText(row.file, row.line) : ""),
    columns: () => [
      number("each step", (row) => row.bytes_per_step),
      number("at the last", (row) => row.bytes),
      blocks,
      words("category", (row) => plainWords(row.category)),
      words("held by", field("held_by")),
      words("module", field("module")),
      words("line", (row) => placeText(row.file, row.line)),
    ],
  },
  ledger: {
    title: "Ledger",
    rows: (report) => report.ledger,
    mark: () => "",
    columns: () => [
      words("part, where most is reserved", (row) => plainWords(row.name)),
      number("bytes", (row) => row.bytes),
      words("how it is known", field("known")),
    ],
  },
};

function tensorMark(row) {
  const words = [
    row.module && "module:" + row.module,
    row.file && "line:" + placeText(row.file, row.line),
    row.category && "category:" + row.category,
    row.name && "name:" + row.name,
  ];
  return words.filter(Boolean).join("\n");
}

// Rows that have all words of a query, in the order of a column: `2-` is the third, downwards.
export function chosenRows(rows, columns, query, sort) {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) => {
    const text = columns
      .map((column) => String(column.text(row)))
      .join(" ")
      .toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  if (!sort) return found;
  const column = columns[parseInt(sort, 10)],
    sign = sort.endsWith("-") ? -1 : 1;
  if (!column) return found;
  const compare = column.isNumber
    ? (a, b) => column.value(a) - column.value(b)
    : (a, b) => String(column.value(a)).localeCompare(String(column.value(b)));
  return [...found].sort((a, b) => sign * compare(a, b));
}

export class Tables {
  constructor(state) {
    this.state = state;
    this.search = byId("table-search");
    this.search.addEventListener("input", () => state.set({ query: this.search.value }));
  }

  show(report) {
    this.report = report;
    this.all = false;
    this.draw();
  }

  draw() {
    const { report, state } = this;
    const names = Object.keys(TABLES).filter((name) => (TABLES[name].rows(report) ?? []).length);
    byId("tables").hidden = !names.length;
    if (!names.length) return;
    const chosen = names.includes(state.now.table) ? state.now.table : names[0];
    refill(
      byId("table-tabs"),
      choices(
        "table",
        names.map((name) => [name, TABLES[name].title]),
        chosen,
        (table) => {
          this.all = false;
          state.set({ table, sort: "" });
        },
      ),
    );
    if (this.search.value !== state.now.query) this.search.value = state.now.query;
    const { rows, columns, mark } = TABLES[chosen],
      list = columns(report);
    const found = chosenRows(rows(report), list, state.now.query, state.now.sort);
    const shown = this.all ? found : found.slice(0, FIRST_ROWS);
    const heads = list.map((column, index) => this.head(column, index));
    const body = shown.map((row) => this.row(row, list, mark(row)));
    const more = make(
      "button",
      {
        type: "button",
        onclick: () => {
          this.all = true;
          this.draw();
        },
      },
      `show all ${countText(found.length)}`,
    );
    refill(
      byId("table-body"),
      make("table", { "data-table": chosen }, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, body)),
      found.length > shown.length ? more : "",
      found.length ? "" : make("p", { class: "note" }, "Nothing has these words."),
    );
    const all = rows(report).length;
    refill(
      byId("table-note"),
      `${found.length === all ? "" : countText(found.length) + " of "}${countText(all)} ${all === 1 ? "row" : "rows"}`,
    );
  }

  head(column, index) {
    const { state } = this;
    const { sort } = state.now;
    const isSorted = sort && parseInt(sort, 10) === index;
    const direction = isSorted ? (sort.endsWith("-") ? "descending" : "ascending") : "none";
    const next = isSorted ? index + (sort.endsWith("-") ? "+" : "-") : index + (column.isNumber ? "-" : "+");
    const arrow = { descending: " ↓", ascending: " ↑", none: "" }[direction];
    return make(
      "th",
      { class: column.isNumber ? "number" : "", "aria-sort": direction, scope: "col" },
      make("button", { type: "button", onclick: () => state.set({ sort: next }) }, column.title + arrow),
    );
  }

  row(row, columns, mark) {
    const { state } = this;
    const isMarked = mark && mark === state.now.mark;
    const choose = () => state.set({ mark: isMarked ? "" : mark });
    const cells = columns.map((column) =>
      make(
        "td",
        { class: column.isNumber ? "number" : "", "data-bytes": column.title === "bytes" ? row.bytes : null },
        String(column.text(row)),
      ),
    );
    if (!mark) return make("tr", {}, cells);
    const onkeydown = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose());
    return make("tr", { class: isMarked ? "marked" : "marks", tabindex: "0", onclick: choose, onkeydown }, cells);
  }
}
