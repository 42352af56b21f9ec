// Ranks, cards or files side by side: which needs most, and what its memory is.

import { byId, make, refill } from "./dom.js";
import { bytesText, countText, percentText, plainWords, unique } from "./format.js";
import { categoryColour } from "./colours.js";
import { ofItem } from "./state.js";

/** @import { Category, PageContents } from "../types" */
/** @import { AnyReport } from "../types/either" */
/** @import { State } from "./state.js" */

// One of them: what it allocates at its peak, by category; `choose` shows it, where the page has it.
/** @typedef {{ name: string, note: string, bytes: number, categories: Category[], choose: (() => void) | null }} Side */

/** @param {PageContents} contents @param {AnyReport} report @param {State} state */
export function showSides(contents, report, state) {
  const sides = report.ranks && report.ranks.length > 1 ? ofRanks(report) : ofItems(contents, state);
  byId("sides").hidden = sides.length < 2;
  if (sides.length < 2) return;
  const most = Math.max(1, ...sides.map(({ bytes }) => bytes));
  refill(byId("sides-title"), titleOf(sides));
  const names = unique(sides.flatMap(({ categories }) => categories.filter(({ bytes }) => bytes).map(({ name }) => name)));
  refill(
    byId("sides-list"),
    make("div", { class: "scroll" }, make("table", {}, make("tbody", {}, sides.map((side) => sideRow(side, most))))),
    make(
      "ul",
      { class: "legend" },
      names.map((name) =>
        make("li", {}, make("span", { class: "swatch", style: { background: categoryColour(name) } }), plainWords(name)),
      ),
    ),
  );
}

/** @param {AnyReport} report @returns {Side[]} */
function ofRanks(report) {
  return (report.ranks ?? []).map((rank) => ({
    name: `rank ${rank.rank}`,
    note: `${plainWords(rank.verdict)}, ${bytesText(rank.device_bytes)} of the GPU`,
    bytes: rank.peak_allocated_bytes,
    categories: rank.categories,
    choose: null,
  }));
}

// The item that ran out of memory, or whose peak is highest. A run comes before the recordings of its processes, and a
// difference has its own order.
/** @param {PageContents} contents */
export function needsMost({ items, documents }) {
  const isRun = items.some(({ report }) => "verdict" in report);
  if (isRun || documents.length) return 0;
  const needs = items.map(({ report: { out_of_memory: refusal, peak } }) => [
    refusal ? 1 : 0,
    peak?.allocated_bytes ?? 0,
    peak?.reserved_bytes ?? 0,
  ]);
  const isMore = (/** @type {number[]} */ a, /** @type {number[]} */ b) => {
    const at = a.findIndex((part, index) => part !== b[index]);
    return at >= 0 && a[at] > b[at];
  };
  return needs.reduce((most, need, item) => (isMore(need, needs[most]) ? item : most), 0);
}

// A page of a difference has both sides in front already.
/** @param {PageContents} contents @param {State} state @returns {Side[]} */
function ofItems({ items, documents }, state) {
  if (documents.some((document) => document.schema === "fathom.diff/1")) return [];
  return items.flatMap(({ name, report }, item) => {
    const { peak, categories } = /** @type {AnyReport} */ (report);
    if (!peak) return [];
    const note = `${bytesText(peak.reserved_bytes)} reserved at most`;
    const choose = () => state.set(ofItem(item));
    return [{ name, note, bytes: peak.allocated_bytes, categories: categories ?? [], choose }];
  });
}

/** @param {Side[]} sides */
function titleOf(sides) {
  const sorted = sides.toSorted((a, b) => b.bytes - a.bytes),
    [most] = sorted,
    least = sorted[sorted.length - 1];
  if (most.bytes === least.bytes) return `All ${countText(sides.length)} peak at ${bytesText(most.bytes)}`;
  const ratio = most.bytes / Math.max(1, least.bytes);
  const more = ratio < 2 ? `${percentText(most.bytes - least.bytes, least.bytes)} more than` : `${Math.round(ratio)} times`;
  return `${most.name} needs most: ${bytesText(most.bytes)}, ${more} ${least.name}`;
}

/** @param {Side} side @param {number} most */
function sideRow({ name, note, bytes, categories, choose }, most) {
  const parts = categories
    .filter((category) => category.bytes > 0)
    .map((category) =>
      make("div", {
        class: "part",
        title: `${plainWords(category.name)}: ${bytesText(category.bytes)}`,
        style: { flexGrow: String(category.bytes), background: categoryColour(category.name) },
      }),
    );
  const bar = make("div", { class: "bar thin", style: { width: `${(100 * bytes) / most}%` } }, parts);
  const title = choose ? make("button", { type: "button", onclick: choose }, name) : name;
  return make(
    "tr",
    {},
    make("td", {}, title),
    make("td", { class: "number", "data-bytes": bytes }, bytesText(bytes)),
    make("td", { class: "side-bar" }, bar),
    make("td", {}, note),
  );
}
