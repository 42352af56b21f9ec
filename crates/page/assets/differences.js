// Two runs compared (`fathom.diff/1`): both timelines at one scale, and what grew and shrank beside a common zero.

import { byId, choices, fitCanvas, make, refill } from "./dom.js";
import { bytesText, countText, lastPart, placeText, plainWords } from "./format.js";
import { bandColours, categoryColour, themeColours } from "./colours.js";
import { drawAxes, drawBands, drawReserved, haloText, Scale } from "./curve.js";
import { cellsOf } from "./bands.js";

const ROWS_SHOWN = 40;

// Of each list: its title, and a row in words, with a second line where there is more to say.
const LISTS = {
  categories: { title: "Categories", words: (row) => [plainWords(row.name)] },
  findings: { title: "Causes", words: (row) => [row.title] },
  modules: {
    title: "Modules",
    words: (row) => [row.path || "outside of modules", [row.class, row.was && `was ${row.was}`]],
  },
  lines: { title: "Lines", words: (row) => [lineWords(row), [row.source]] },
  tensors: { title: "Tensors", words: tensorWords },
  operators: { title: "Operators", words: (row) => [row.name || "no operator known"] },
  phases: { title: "Phases", words: (row) => [plainWords(row.name)] },
};

function lineWords(row) {
  if (!row.file) return "no line known";
  const was = row.was ? ` (was ${placeText(lastPart(row.was.file ?? ""), row.was.line)})` : "";
  return placeText(row.file, row.line) + was + (row.function ? ` in ${row.function}` : "");
}

function tensorWords(row) {
  if (!row.category) return ["tensors that a report does not list"];
  const count = row.a_count === row.b_count ? row.b_count : [row.a_count, row.b_count].filter(Boolean).join(" → ");
  const what = [row.was && `${row.was} →`, row.what, plainWords(row.category)].filter(Boolean).join(" ");
  const who = [row.name || row.operator, row.module, placeText(lastPart(row.file ?? ""), row.line)];
  return [String(count) === "1" ? what : `${count} × ${what}`, who];
}

// `+1.10 GiB`, `−3.0 MiB`
export function deltaText(bytes) {
  return (bytes > 0 ? "+" : bytes < 0 ? "−" : "") + bytesText(Math.abs(bytes));
}

// A file may have been written by hand: what is no list is none.
function listOf(difference, name) {
  return Array.isArray(difference[name]) ? difference[name] : [];
}

export class Differences {
  constructor(documents, state) {
    this.state = state;
    this.differences = documents.filter((document) => document.schema === "fathom.diff/1");
    byId("differences").hidden = !this.differences.length;
    refill(
      byId("differences-list"),
      this.differences.map((difference) => this.article(difference)),
    );
    this.draw();
  }

  article(difference) {
    const { a = {}, b = {} } = difference;
    const pictures = make("div", { class: "pair" });
    const totals = [
      ["allocated", "allocated_bytes"],
      ["reserved", "reserved_bytes"],
      ["on the card", "device_bytes"],
      ["smallest card", "floor_bytes"],
    ].filter(([, field]) => Number.isFinite(a[field]) && Number.isFinite(b[field]));
    const rows = totals.map(([name, field]) => ({
      name,
      a_bytes: a[field],
      b_bytes: b[field],
      delta_bytes: b[field] - a[field],
    }));
    const notes = [...listOf(difference, "renamed"), ...listOf(difference, "notes")];
    const lists = make("div", { class: "controls" }),
      body = make("div", { class: "scroll" });
    Object.assign(difference, { pictures, lists, body });
    return make(
      "div",
      {},
      make("p", { class: "answer" }, difference.answer ?? ""),
      pictures,
      make("div", { class: "scroll" }, changesTable(rows, (row) => [row.name])),
      lists,
      body,
      notes.length
        ? make(
            "ul",
            { class: "note" },
            notes.map((note) => make("li", {}, note)),
          )
        : "",
    );
  }

  // The list that is chosen, as far as this difference has it.
  draw() {
    for (const difference of this.differences) {
      const known = Object.keys(LISTS).filter((name) => listOf(difference, name).some((row) => row.delta_bytes));
      const chosen = known.includes(this.state.now.changes) ? this.state.now.changes : known[0];
      const options = known.map((name) => [name, LISTS[name].title]);
      refill(
        difference.lists,
        choices("what changed", options, chosen, (changes) => this.state.set({ changes })),
      );
      if (!chosen) {
        refill(difference.body, "Nothing grew and nothing shrank.");
        continue;
      }
      const rows = difference[chosen].filter((row) => row.delta_bytes);
      rows.sort((one, other) => Math.abs(other.delta_bytes) - Math.abs(one.delta_bytes));
      refill(difference.body, changesTable(rows, LISTS[chosen].words));
    }
  }

  // Both stories, by category, at one scale; nothing if either was not recorded.
  async drawPictures(storyOf) {
    for (const difference of this.differences) {
      const numbers = listOf(difference, "items");
      const stories = numbers.length === 2 ? await Promise.all(numbers.map(storyOf)) : [];
      if (stories.length !== 2 || !stories.every(Boolean)) continue;
      difference.stories = stories;
      const canvases = ["a", "b"].map((side) => {
        const { name, when } = difference[side];
        const canvas = make("canvas", { role: "img", "aria-label": `${name}: memory over time, by category` });
        const caption = `${side.toUpperCase()}  ${lastPart(name)}` + (when ? `, peak in ${when}` : "");
        return [canvas, make("figure", {}, make("figcaption", {}, caption), make("div", { class: "canvas" }, canvas))];
      });
      difference.canvases = canvases.map(([canvas]) => canvas);
      refill(
        difference.pictures,
        canvases.map(([, figure]) => figure),
        pairLegend(stories),
      );
    }
    this.repaint();
  }

  repaint() {
    const theme = themeColours();
    for (const { stories, canvases } of this.differences) {
      if (!canvases) continue;
      const highest = (story) => story.reservedAt(story.header.reserved_peak_tick);
      const top = Math.max(1, ...stories.map(highest)) * 1.06;
      canvases.forEach((canvas, side) => drawSmall(canvas, stories[side], top, theme));
    }
  }
}

function drawSmall(canvas, story, top, theme) {
  const { context, width, height } = fitCanvas(canvas, 180);
  const scale = new Scale(width, height, 0, story.ticks + 1, top);
  scale.head = 6;
  scale.plotHeight = height - scale.head - scale.foot;
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  drawAxes(context, scale, theme);
  const cells = cellsOf(story, "category", 0, story.ticks + 1, scale.plotWidth);
  drawBands(context, scale, cells, bandColours("category", story.dimension("category").groups));
  drawReserved(context, scale, story, theme.ink);
  markPeak(context, scale, story, theme);
}

// A peak may last for one allocation of many thousands: it gets a dot and its size.
function markPeak(context, scale, story, theme) {
  const tick = story.header.peak_tick,
    bytes = story.allocatedAt(tick);
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
function pairLegend(stories) {
  const seen = stories.flatMap((story) => {
    const { band, groups } = story.banding("category");
    const bands = new Set(band);
    return groups.filter((_, index) => bands.has(index));
  });
  const swatch = (colour) => make("span", { class: "swatch", style: { background: colour } });
  return make(
    "ul",
    { class: "legend" },
    [...new Set(seen)].map((name) => make("li", {}, swatch(categoryColour(name)), plainWords(name))),
    make("li", {}, make("span", { class: "swatch thin" }), "reserved"),
    make("li", {}, "● allocated peak"),
  );
}

// Rows with a bar to the left of zero for what shrank, to the right for what grew.
function changesTable(rows, words) {
  const most = Math.max(1, ...rows.map((row) => Math.abs(row.delta_bytes)));
  const heads = [["", ""], ["A", "number"], ["B", "number"], ["change", "number"], ["", ""]];
  const shown = rows.slice(0, ROWS_SHOWN).map((row) => {
    const [first, second] = words(row);
    const more = [second ?? []].flat().filter(Boolean).join(" · ");
    const size = (bytes) => (bytes ? bytesText(bytes) : "–");
    const title = `${countText(row.a_bytes)} → ${countText(row.b_bytes)} bytes`;
    return make(
      "tr",
      { title },
      make("td", {}, first, more ? make("div", { class: "note" }, more) : ""),
      make("td", { class: "number" }, size(row.a_bytes)),
      make("td", { class: "number" }, size(row.b_bytes)),
      make("td", { class: "number", "data-delta": row.delta_bytes }, deltaText(row.delta_bytes)),
      make("td", { class: "diverging" }, divergingBar(row.delta_bytes / most)),
    );
  });
  const rest = rows.slice(ROWS_SHOWN);
  if (rest.length) {
    const sum = rest.reduce((all, row) => all + row.delta_bytes, 0);
    const cells = [make("td", {}, `… ${countText(rest.length)} more`), make("td", {}), make("td", {})];
    shown.push(make("tr", {}, cells, make("td", { class: "number", "data-delta": sum }, deltaText(sum)), make("td", {})));
  }
  const head = heads.map(([name, kind]) => make("th", { class: kind }, name));
  return make("table", { class: "changes" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, shown));
}

function divergingBar(share) {
  const side = share < 0 ? "right" : "left";
  const style = { width: `${50 * Math.abs(share)}%`, [side]: "50%" };
  return make("span", { class: share < 0 ? "shrunk" : "grown", style });
}
