// Two runs compared (`fathom.diff/1`): both timelines at one scale, and what grew and shrank beside a common zero.

import { byId, choices, fitCanvas, make, refill } from "./dom.js";
import { bytesText, countText, lastPart, placeText, plainWords } from "./format.js";
import { bandColours, categoryColour, themeColours } from "./colours.js";
import { drawAxes, drawBands, drawReserved, haloText, Scale } from "./curve.js";
import { cellsOf } from "./bands.js";

/** @import { Change, ChangedLine, ChangedTensor, Difference, Document } from "../types" */
/** @import { Theme } from "./colours.js" */
/** @import { Context } from "./dom.js" */
/** @import { State } from "./state.js" */
/** @import { Story } from "./story.js" */

const ROWS_SHOWN = 40;

// A row in words, with a second line where there is more to say.
/** @typedef {{ text: string, more?: (string | null | undefined)[] }} Words */
/** @typedef {Omit<Change, "status">} Bytes */

// Of each list: its title, and its rows in words.
/** @type {{ [Name in ListName]: { title: string, words: (row: Difference[Name][number]) => Words } }} */
const LISTS = {
  categories: { title: "Categories", words: (row) => ({ text: plainWords(row.name) }) },
  findings: { title: "Causes", words: (row) => ({ text: row.title }) },
  modules: {
    title: "Modules",
    words: (row) => ({ text: row.path || "outside of modules", more: [row.class, row.was && `was ${row.was}`] }),
  },
  lines: { title: "Lines", words: (row) => ({ text: lineWords(row), more: [row.source] }) },
  tensors: { title: "Tensors", words: tensorWords },
  operators: { title: "Operators", words: (row) => ({ text: row.name || "no operator known" }) },
  phases: { title: "Phases", words: (row) => ({ text: plainWords(row.name) }) },
};
/** @typedef {"categories" | "findings" | "modules" | "lines" | "tensors" | "operators" | "phases"} ListName */

/** @param {ChangedLine} row */
function lineWords(row) {
  if (!row.file) return "no line known";
  const was = row.was ? ` (was ${placeText(lastPart(row.was.file ?? ""), row.was.line)})` : "";
  return placeText(row.file, row.line) + was + (row.function ? ` in ${row.function}` : "");
}

/** @param {ChangedTensor} row @returns {Words} */
function tensorWords(row) {
  if (!row.category) return { text: "tensors that a report does not list" };
  const count = row.a_count === row.b_count ? row.b_count : [row.a_count, row.b_count].filter(Boolean).join(" → ");
  const what = [row.was && `${row.was} →`, row.what, plainWords(row.category)].filter(Boolean).join(" ");
  const who = [row.name || row.operator, row.module, placeText(lastPart(row.file ?? ""), row.line)];
  return { text: String(count) === "1" ? what : `${count} × ${what}`, more: who };
}

// `+1.10 GiB`, `−3.0 MiB`
/** @param {number} bytes */
export function deltaText(bytes) {
  return (bytes > 0 ? "+" : bytes < 0 ? "−" : "") + bytesText(Math.abs(bytes));
}

// A file may have been written by hand: what is no list is none.
/** @template Row @param {Row[] | undefined} list @returns {Row[]} */
function listOf(list) {
  return Array.isArray(list) ? list : [];
}

// The lists of which something changed.
/** @param {Difference} difference */
function changedLists(difference) {
  const names = /** @type {ListName[]} */ (Object.keys(LISTS));
  return names.filter((name) => changedRows(difference, name).length);
}

// Rows that changed, most first.
/** @param {Difference} difference @param {ListName} name @returns {Change[]} */
function changedRows(difference, name) {
  const rows = listOf(/** @type {Change[]} */ (difference[name])).filter((row) => row.delta_bytes);
  return rows.sort((one, other) => Math.abs(other.delta_bytes) - Math.abs(one.delta_bytes));
}

// A difference, the places on the page that change, and the stories of both sides once they are drawn.
/**
 * @typedef {object} ShownDifference
 * @property {Difference} difference
 * @property {HTMLElement} pictures
 * @property {HTMLElement} lists
 * @property {HTMLElement} body
 * @property {{ story: Story, canvas: HTMLCanvasElement }[]} sides
 */

export class Differences {
  /** @param {Document[]} documents @param {State} state */
  constructor(documents, state) {
    this.state = state;
    /** @type {ShownDifference[]} */
    this.shown = documents
      .filter((document) => document.schema === "fathom.diff/1")
      .map((difference) => ({
        difference,
        pictures: make("div", { class: "pair" }),
        lists: make("div", { class: "controls" }),
        body: make("div", { class: "scroll" }),
        sides: [],
      }));
    byId("differences").hidden = !this.shown.length;
    refill(byId("differences-list"), this.shown.map(differenceArticle));
    this.draw();
  }

  // The list that is chosen, as far as this difference has it.
  draw() {
    const { state } = this;
    for (const { difference, lists, body } of this.shown) {
      const known = changedLists(difference);
      const chosen = known.find((name) => name === state.now.changes) ?? known[0];
      /** @type {[ListName, string][]} */
      const options = known.map((name) => [name, LISTS[name].title]);
      refill(
        lists,
        choices("what changed", options, chosen, (changes) => state.set({ changes })),
      );
      if (!chosen) {
        refill(body, "Nothing grew and nothing shrank.");
        continue;
      }
      const words = /** @type {(row: any) => Words} */ (LISTS[chosen].words);
      refill(body, changesTable(changedRows(difference, chosen), words));
    }
  }

  // Both stories, by category, at one scale; nothing if either was not recorded.
  /** @param {(number: number) => Promise<Story | null>} storyOf */
  async drawPictures(storyOf) {
    for (const shown of this.shown) {
      const { a, b, items } = shown.difference;
      const stories = await Promise.all(listOf(items).map(storyOf));
      const [storyOfA, storyOfB] = stories;
      if (stories.length !== 2 || !storyOfA || !storyOfB) continue;
      const canvases = [a, b].map(({ name }) =>
        make("canvas", { role: "img", "aria-label": `${name}: memory over time, by category` }),
      );
      shown.sides = [
        { story: storyOfA, canvas: canvases[0] },
        { story: storyOfB, canvas: canvases[1] },
      ];
      const figures = [a, b].map(({ name, when }, side) => {
        const caption = `${"AB"[side]}  ${lastPart(name)}` + (when ? `, peak in ${when}` : "");
        return make("figure", {}, make("figcaption", {}, caption), make("div", { class: "canvas" }, canvases[side]));
      });
      refill(shown.pictures, figures, pairLegend([storyOfA, storyOfB]));
    }
    this.repaint();
  }

  repaint() {
    const theme = themeColours();
    for (const { sides } of this.shown) {
      const most = sides.map(({ story }) => story.reservedAt(story.header.reserved_peak_tick));
      const top = Math.max(1, ...most) * 1.06;
      for (const { canvas, story } of sides) drawSmall(canvas, story, top, theme);
    }
  }
}

/** @param {ShownDifference} shown */
function differenceArticle({ difference, pictures, lists, body }) {
  const notes = [...listOf(difference.renamed), ...listOf(difference.notes)].map((note) => make("li", {}, note));
  return make(
    "div",
    {},
    make("p", { class: "answer" }, difference.answer ?? ""),
    pictures,
    make("div", { class: "scroll" }, totalsTable(difference)),
    lists,
    body,
    notes.length ? make("ul", { class: "note" }, notes) : "",
  );
}

// The totals that both sides know.
/** @param {Difference} difference */
function totalsTable({ a, b }) {
  const totals = {
    allocated: [a?.allocated_bytes, b?.allocated_bytes],
    reserved: [a?.reserved_bytes, b?.reserved_bytes],
    "on the card": [a?.device_bytes, b?.device_bytes],
    "smallest card": [a?.floor_bytes, b?.floor_bytes],
  };
  const rows = Object.entries(totals).flatMap(([text, [before, after]]) =>
    typeof before === "number" && typeof after === "number"
      ? [{ text, a_bytes: before, b_bytes: after, delta_bytes: after - before }]
      : [],
  );
  return changesTable(rows, ({ text }) => ({ text }));
}

/** @param {HTMLCanvasElement} canvas @param {Story} story @param {number} top @param {Theme} theme */
function drawSmall(canvas, story, top, theme) {
  const { context, width, height } = fitCanvas(canvas, 180);
  const scale = new Scale(width, height, 0, story.ticks + 1, top).withRoom(6, 20);
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  drawAxes(context, scale, theme);
  const cells = cellsOf(story, "category", 0, story.ticks + 1, scale.plotWidth);
  drawBands(context, scale, cells, bandColours("category", story.groups("category")));
  drawReserved(context, scale, story, theme.ink);
  markPeak(context, scale, story, theme);
}

// A peak may last for one allocation of many thousands: it gets a dot and its size.
/** @param {Context} context @param {Scale} scale @param {Story} story @param {Theme} theme */
function markPeak(context, scale, story, theme) {
  const tick = story.header.peak_tick,
    bytes = story.peakBytes();
  const x = scale.x(tick + 0.5),
    y = scale.y(bytes);
  context.fillStyle = theme.ink;
  context.beginPath();
  context.arc(x, y, 3, 0, 2 * Math.PI);
  context.fill();
  const isLeft = x > scale.left + scale.plotWidth / 2;
  context.font = "12px system-ui, sans-serif";
  context.textAlign = isLeft ? "right" : "left";
  haloText(context, bytesText(bytes), x + (isLeft ? -6 : 6), y < 20 ? y + 16 : y - 6, theme, theme.ink);
}

// The categories that either story ever has, and the line.
/** @param {Story[]} stories */
function pairLegend(stories) {
  const seen = stories.flatMap((story) => {
    const { band, groups } = story.banding("category");
    const bands = new Set(band);
    return groups.filter((_, index) => bands.has(index));
  });
  const swatch = (/** @type {string} */ colour) => make("span", { class: "swatch", style: { background: colour } });
  return make(
    "ul",
    { class: "legend" },
    [...new Set(seen)].map((name) => make("li", {}, swatch(categoryColour(name)), plainWords(name))),
    make("li", {}, make("span", { class: "swatch thin" }), "reserved"),
    make("li", {}, "● allocated peak"),
  );
}

// Rows with a bar to the left of zero for what shrank, to the right for what grew.
/** @template {Bytes} Row @param {Row[]} rows @param {(row: Row) => Words} words */
function changesTable(rows, words) {
  const most = Math.max(1, ...rows.map((row) => Math.abs(row.delta_bytes)));
  const heads = [
    ["", ""],
    ["A", "number"],
    ["B", "number"],
    ["change", "number"],
    ["", ""],
  ];
  const shown = rows.slice(0, ROWS_SHOWN).map((row) => {
    const { text, more } = words(row);
    const second = (more ?? []).filter(Boolean).join(" · ");
    const size = (/** @type {number} */ bytes) => (bytes ? bytesText(bytes) : "–");
    const title = `${countText(row.a_bytes)} → ${countText(row.b_bytes)} bytes`;
    return make(
      "tr",
      { title },
      make("td", {}, text, second ? make("div", { class: "note" }, second) : ""),
      make("td", { class: "number" }, size(row.a_bytes)),
      make("td", { class: "number" }, size(row.b_bytes)),
      make("td", { class: "number", "data-delta": row.delta_bytes }, deltaText(row.delta_bytes)),
      make("td", { class: "diverging" }, divergingBar(row.delta_bytes / most)),
    );
  });
  const rest = rows.slice(ROWS_SHOWN);
  if (rest.length) {
    const sum = rest.reduce((all, row) => all + row.delta_bytes, 0);
    const cells = [
      make("td", {}, `… ${countText(rest.length)} more`),
      make("td", {}),
      make("td", {}),
      make("td", { class: "number", "data-delta": sum }, deltaText(sum)),
      make("td", {}),
    ];
    shown.push(make("tr", {}, cells));
  }
  const head = heads.map(([name, kind]) => make("th", { class: kind }, name));
  return make("table", { class: "changes" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, shown));
}

/** @param {number} share */
function divergingBar(share) {
  const side = share < 0 ? "right" : "left";
  const style = { width: `${50 * Math.abs(share)}%`, [side]: "50%" };
  return make("span", { class: share < 0 ? "shrunk" : "grown", style });
}
