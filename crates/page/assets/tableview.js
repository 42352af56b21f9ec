// The report's lists as tables: searched, sorted, and each row marks its allocations in the timeline.

import { byId, choices, make, refill } from "./dom.js";
import { foldedRows } from "./folds.js";
import { countText } from "./format.js";
import { chosenRows, TABLES } from "./tables.js";

/** @import { AnyReport } from "../types/either" */
/** @import { State } from "./state.js" */
/** @import { TableColumn } from "./tables.js" */

const FIRST_ROWS = 60;

export class Tables {
  /** @param {State} state */
  constructor(state) {
    this.state = state;
    /** @type {AnyReport | null} */
    this.report = null;
    this.showsAll = false;
    // Modules that were opened or closed by hand.
    /** @type {Map<string, boolean>} */
    this.turned = new Map();
    this.search = byId("table-search");
    this.search.addEventListener("input", () => state.set({ query: this.search.value }));
  }

  /** @param {AnyReport} report */
  show(report) {
    this.report = report;
    this.showsAll = false;
    this.turned.clear();
    this.draw();
  }

  draw() {
    const { report, state } = this;
    if (!report) return;
    const names = Object.keys(TABLES).filter((name) => TABLES[name].rows(report)?.length);
    byId("tables").hidden = !names.length;
    if (!names.length) return;
    const chosen = names.includes(state.now.table) ? state.now.table : names[0];
    refill(byId("table-tabs"), this.tabs(names, chosen));
    if (this.search.value !== state.now.query) this.search.value = state.now.query;
    const { rows, columns, mark } = TABLES[chosen];
    const all = rows(report) ?? [],
      list = columns(report),
      isTree = chosen === "modules" && !state.now.query && !state.now.sort,
      found = isTree ? [] : chosenRows(all, list, state.now.query, state.now.sort),
      shown = this.showsAll ? found : found.slice(0, FIRST_ROWS);
    const heads = list.map((column, index) => this.head(column, index));
    const body = isTree ? this.tree(all, list, mark) : shown.map((row) => this.row(row, list, mark(row)));
    refill(
      byId("table-body"),
      make("table", { "data-table": chosen }, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, body)),
      found.length > shown.length ? this.moreButton(found.length) : "",
      found.length || isTree ? "" : make("p", { class: "note" }, "Nothing has these words."),
    );
    const part = isTree || found.length === all.length ? "" : countText(found.length) + " of ";
    refill(byId("table-note"), `${part}${countText(all.length)} ${all.length === 1 ? "row" : "rows"}`);
  }

  /** @param {string[]} names @param {string} chosen */
  tabs(names, chosen) {
    /** @type {[string, string][]} */
    const options = names.map((name) => [name, TABLES[name].title]);
    return choices("table", options, chosen, (table) => {
      this.showsAll = false;
      this.state.set({ table, sort: "" });
    });
  }

  /** @param {number} count */
  moreButton(count) {
    const onclick = () => {
      this.showsAll = true;
      this.draw();
    };
    return make("button", { type: "button", onclick }, `show all ${countText(count)}`);
  }

  /** @param {TableColumn<any>} column @param {number} index */
  head(column, index) {
    const { state } = this;
    const { sort } = state.now;
    const isSorted = sort && parseInt(sort, 10) === index,
      isDown = sort.endsWith("-");
    const direction = isSorted ? (isDown ? "descending" : "ascending") : "none";
    const next = index + ((isSorted ? isDown : !column.isNumber) ? "+" : "-");
    const arrow = { descending: " ↓", ascending: " ↑", none: "" }[direction];
    return make(
      "th",
      { class: column.isNumber ? "number" : "", "aria-sort": direction, scope: "col" },
      make("button", { type: "button", onclick: () => state.set({ sort: next }) }, column.title + arrow),
    );
  }

  // Modules as a tree: the first cell has the last part of the path, and a button where there is more below.
  /** @param {any[]} rows @param {TableColumn<any>[]} columns @param {(row: any) => string} mark */
  tree(rows, columns, mark) {
    return foldedRows(rows, this.turned).map(({ row, name, depth, isOpen }) => {
      const line = this.row(row, columns, mark(row));
      const turn = (/** @type {Event} */ event) => {
        event.stopPropagation();
        this.turned.set(row.path, !isOpen);
        this.draw();
      };
      const label = `what is in ${row.path}`;
      const button = { type: "button", class: "fold", "aria-label": label, "aria-expanded": String(isOpen), onclick: turn };
      const first = line.cells[0];
      first.style.paddingLeft = `${16 * depth + (isOpen === null ? 20 : 0)}px`;
      first.title = row.path;
      line.dataset.depth = String(depth);
      refill(first, isOpen === null ? null : make("button", button), name || first.textContent);
      return line;
    });
  }

  /** @param {any} row @param {TableColumn<any>[]} columns @param {string} mark */
  row(row, columns, mark) {
    const { state } = this;
    const isMarked = mark && mark === state.now.mark;
    const choose = () => state.set({ mark: isMarked ? "" : mark });
    const cells = columns.map((column) =>
      make(
        "td",
        {
          class: column.isNumber ? "number" : "",
          "data-bytes": column.title === "bytes" ? row.bytes : null,
          title: column.isNumber || column.text(row) === column.value(row) ? null : column.value(row),
        },
        String(column.text(row)),
      ),
    );
    if (!mark) return make("tr", {}, cells);
    const onkeydown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    };
    return make("tr", { class: isMarked ? "marked" : "marks", tabindex: "0", onclick: choose, onkeydown }, cells);
  }
}
