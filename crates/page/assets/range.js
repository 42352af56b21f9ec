// A brushed range: what was allocated in it and is still alive at its end.

import { byId, make, refill } from "./dom.js";
import { bytesText, countText, percentText } from "./format.js";
import { offer } from "./saving.js";

/** @import { State } from "./state.js" */
/** @import { Story } from "./story.js" */
/** @typedef {{ kind: number, bytes: number, count: number }} KindSum */

// How many rows are listed.
const ROWS = 12;

/** @param {Story} story @param {number} from @param {number} to */
export function retained(story, from, to) {
  /** @type {Map<number, KindSum>} */
  const byKind = new Map();
  let bytes = 0,
    count = 0,
    made = 0,
    madeBytes = 0;
  for (let life = 0; life < story.count && story.born[life] <= to; life++) {
    if (story.born[life] < from || story.born[life] === 0) continue;
    made++;
    madeBytes += story.block[life];
    if (story.freed[life] <= to) continue;
    bytes += story.block[life];
    count++;
    const row = byKind.get(story.kind[life]) ?? { kind: story.kind[life], bytes: 0, count: 0 };
    row.bytes += story.block[life];
    row.count++;
    byKind.set(row.kind, row);
  }
  const rows = [...byKind.values()].sort((a, b) => b.bytes - a.bytes || a.kind - b.kind);
  return { bytes, count, made, madeBytes, rows };
}

/** @param {Story} story @param {State} state */
export function showRange(story, state) {
  const { rangeFrom: from, rangeTo: to } = state.now;
  const panel = byId("range");
  panel.hidden = from === null || to === null;
  if (from === null || to === null) return;
  const { bytes, count, made, madeBytes, rows } = retained(story, from, to);
  const begin = story.whenAt(from),
    end = story.whenAt(to);
  const zoom = make(
    "button",
    { type: "button", onclick: () => state.set({ from, to: Math.max(to, from + 4) }) },
    "zoom to it",
  );
  const clear = make(
    "button",
    { type: "button", onclick: () => state.set({ rangeFrom: null, rangeTo: null }) },
    "clear",
  );
  const save = make(
    "button",
    { type: "button", "data-save": "range.txt", onclick: () => saveText(story, from, to) },
    "save as text",
  );
  refill(
    panel,
    make(
      "h3",
      {},
      `${countText(from)} to ${countText(to)}`,
      begin || end ? make("small", {}, ` ${begin}${end && end !== begin ? " to " + end : ""}`) : "",
    ),
    make(
      "p",
      {},
      make("b", { "data-range": "retained", "data-bytes": bytes }, bytesText(bytes)),
      ` in ${countText(count)} blocks was allocated here and is still alive at its end; `,
      `${bytesText(madeBytes)} in ${countText(made)} blocks was allocated in all. `,
      zoom,
      " ",
      save,
      " ",
      clear,
    ),
    rows.length ? rangeTable(story, rows, bytes, state) : "",
  );
}

// Every row, not only those that are shown; columns are apart by tabs, as tables take them.
/** @param {Story} story @param {number} from @param {number} to */
function saveText(story, from, to) {
  const { bytes, count, rows } = retained(story, from, to);
  const lines = rows.map((row) => {
    const { category, name, tensor, module, operator, place } = story.about(row.kind);
    return [row.bytes, row.count, category, name, tensor, module, operator, place].join("\t");
  });
  const said = `${countText(from)} to ${countText(to)}: ${bytesText(bytes)} in ${countText(count)} blocks allocated and still alive`;
  const heads = "bytes blocks category name tensor module operator line".replaceAll(" ", "\t");
  offer("range.txt", new Blob([[said, heads, ...lines, ""].join("\n")]));
}

/** @param {Story} story @param {KindSum[]} rows @param {number} whole @param {State} state */
function rangeTable(story, rows, whole, state) {
  const body = rows.slice(0, ROWS).map((row) => {
    const about = story.about(row.kind);
    const mark = [
      about.module && "module:" + about.module,
      about.place && "line:" + about.place,
      about.category && "category:" + about.category,
    ]
      .filter(Boolean)
      .join("\n");
    return make(
      "tr",
      { onclick: () => state.set({ mark }) },
      make("td", { class: "number" }, bytesText(row.bytes)),
      make("td", { class: "number" }, percentText(row.bytes, whole)),
      make("td", { class: "number" }, countText(row.count)),
      make("td", {}, about.category),
      make("td", {}, about.name || about.tensor),
      make("td", {}, about.module),
      make("td", {}, about.place),
    );
  });
  const heads = ["bytes", "share", "blocks", "category", "what", "module", "line"].map((name, index) =>
    make("th", { class: index < 3 ? "number" : "" }, name),
  );
  const rest = rows.length - ROWS;
  return make(
    "div",
    { class: "scroll" },
    make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, body)),
    rest > 0 ? make("p", { class: "note" }, `and ${countText(rest)} smaller kinds`) : "",
  );
}
