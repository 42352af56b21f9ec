// Sweeps of `fathom sweep`: a heat map for each card, and curves beside its limit.

import { byId, make, refill } from "./dom.js";
import { axisText, bytesText, plainWords, unique } from "./format.js";
import { fitted, framed, svg } from "./chart.js";
import { bandColours, OKABE_ITO } from "./colours.js";
import { headline } from "./plans.js";

/** @import { Document, Largest, Point, Scaling, SweepAnswer, SweepGpu } from "../types" */

/** @param {Document[]} documents */
export function showSweeps(documents) {
  const sweeps = documents.filter((document) => document.schema === "fathom.sweep/1");
  byId("sweeps").hidden = !sweeps.length;
  refill(byId("sweeps-list"), sweeps.map(sweepArticle));
}

/** @param {Point} point */
const needs = (point) => point.device_bytes ?? point.peak_reserved_bytes ?? 0;

/** @param {SweepAnswer} answer */
function knobNames({ knobs, points }) {
  const named = (knobs ?? []).map((knob) => (typeof knob === "string" ? knob : knob.name));
  return unique([...named, ...(points ?? []).flatMap((point) => Object.keys(point.values ?? {}))]).filter(Boolean);
}

// The first knob runs across, the second down; without a second, cards do. Other knobs make figures of their own.
/** @param {SweepAnswer} answer */
function sweepArticle(answer) {
  const points = (answer.points ?? []).filter((point) => point.values),
    [across, down, ...others] = knobNames(answer);
  const label = (/** @type {Point} */ point) =>
    [down ? (point.gpu ?? "") : "", ...others.map((name) => `${name} ${point.values[name]}`)].filter(Boolean).join(", ");
  const most = Math.max(1, ...points.map(needs));
  const figures = unique(points.map(label)).map((group) => {
    const own = points.filter((point) => label(point) === group);
    const cards = (answer.gpus ?? []).filter((gpu) => own.some((point) => point.gpu === gpu.name));
    const title = group || (cards.length === 1 ? cards[0].name : "");
    const caption = title ? make("figcaption", {}, title, memoryText(title, cards[0])) : "";
    return make(
      "figure",
      {},
      caption,
      heat(own, across, down ?? (cards.length > 1 ? GPU : undefined), most),
      curves(own, across, down ?? GPU, cards, answer.largest ?? []),
    );
  });
  const largest = (answer.largest ?? []).map(largestRow),
    scaling = (answer.scaling ?? []).map(scalingRow);
  return make(
    "div",
    {},
    headline(sweepHeadline(answer, points, across), sweepReason(points), answer.command),
    make("ul", { class: "largest" }, largest, scaling),
    figures,
    (answer.notes ?? []).map((note) => make("p", { class: "note" }, note)),
  );
}

// Where there is no second knob, cards stand in its place.
const GPU = "GPU";
/** @param {Point} point @param {string} knob */
const valueOf = (point, knob) => (knob === GPU ? (point.gpu ?? "") : point.values[knob]);

// What a sweep is made for: the largest that fits, else how many fit.
/** @param {SweepAnswer} answer @param {Point[]} points @param {string} across @returns {[string, "good" | "bad" | "plain"]} */
function sweepHeadline({ largest = [], fewest = [] }, points, across) {
  const found = largest.filter((row) => row.value !== null && row.value !== undefined);
  const text = (/** @type {Largest} */ { gpu, value, others }) =>
    [`${value}${gpu ? ` on ${gpu}` : ""}`, ...Object.entries(others ?? {}).map(([name, one]) => `${name} ${one}`)].join(", ");
  if (found.length) {
    const shown = found.slice(0, 3).map(text).join("; ");
    const mood = found.some((row) => row.is_assumed) ? "plain" : "good";
    return [`Largest ${found[0].knob} that fits: ${shown}${found.length > 3 ? " …" : ""}`, mood];
  }
  if (largest.length) return [`No ${largest[0].knob} fits`, "bad"];
  const few = fewest.find(({ ranks }) => ranks !== null);
  if (few) return [`Fits on ${few.ranks} GPUs${few.gpu ? ` (${few.gpu})` : ""} or more`, few.is_assumed ? "plain" : "good"];
  const fits = points.filter((point) => point.verdict === "fits").length;
  const what = across ? `settings of ${across}` : "settings";
  return [`${fits} of ${points.length} ${what} fit`, fits ? "good" : "bad"];
}

// From how little to how much it needs, and how many of the numbers were run.
/** @param {Point[]} points */
function sweepReason(points) {
  const bytes = points.map(needs).filter(Boolean);
  if (!bytes.length) return "";
  const run = points.filter((point) => point.how === "run").length;
  const known = run === points.length ? "each was run" : `${run} of ${points.length} were run, the others follow from them`;
  return `Needs from ${bytesText(Math.min(...bytes))} to ${bytesText(Math.max(...bytes))}; ${known}.`;
}

// The memory of a card; nothing if it was given by its memory, and so is named by it: `1 GiB`, `700.0 MiB`.
/** @param {string} group @param {SweepGpu | undefined} card */
function memoryText(group, card) {
  const says = (/** @type {string} */ text) => group.startsWith(text);
  if (!card || says(bytesText(card.memory_bytes)) || says(axisText(card.memory_bytes))) return "";
  return `, ${bytesText(card.memory_bytes)}`;
}

/** @param {Scaling} row */
function scalingRow(row) {
  const what = plainWords(row.of ?? "peak").replace(" bytes", "");
  const power = Number(row.exponent).toFixed(2);
  const how = power === "1.00" ? `linearly with ${row.knob}` : `as ${row.knob} to the power of ${power}`;
  return make("li", {}, `${what} grows ${how} (fitted)`);
}

/** @param {Largest} row */
function largestRow(row) {
  const others = Object.entries(row.others ?? {})
    .map(([name, value]) => ` with ${name} ${value}`)
    .join("");
  const none = row.value === null || row.value === undefined;
  return make(
    "li",
    {},
    `${row.gpu ?? "any card"}${others}: `,
    none ? `no ${row.knob} fits` : `the largest ${row.knob} that fits is `,
    none ? "" : make("b", {}, String(row.value)),
    row.is_assumed ? ", if what is not known is as assumed" : "",
    row.at_end_of_range ? " (the end of what was tried)" : "",
  );
}

/** @param {Point[]} points @param {string} across @param {string | undefined} down @param {number} most */
function heat(points, across, down, most) {
  const columns = unique(points.map((point) => point.values[across])),
    rowOf = (/** @type {Point} */ point) => (down ? valueOf(point, down) : ""),
    rows = unique(points.map(rowOf));
  const cell = (/** @type {string} */ row, /** @type {string} */ column) => {
    const point = points.find((one) => one.values[across] === column && rowOf(one) === row);
    return point ? heatCell(point, most) : make("td", {});
  };
  const head = make(
    "tr",
    {},
    make("th", {}, down ? `${down} \\ ${across}` : across),
    columns.map((column) => make("th", { class: "number" }, String(column))),
  );
  const body = rows.map((row) =>
    make(
      "tr",
      {},
      make("th", {}, String(row)),
      columns.map((column) => cell(row, column)),
    ),
  );
  return make(
    "div",
    { class: "scroll" },
    make("table", { class: "heatmap" }, make("thead", {}, head), make("tbody", {}, body)),
  );
}

// What does not fit has another colour and a cross; what fits with what was assumed alone a question mark; what was
// predicted, not run, a tilde.
/** @param {Point} point @param {number} most */
function heatCell(point, most) {
  const fits = point.verdict.startsWith("fits"),
    isAssumed = point.verdict === "fits_if",
    bytes = needs(point),
    isRun = point.how === "run";
  const fill = {
    opacity: String(0.12 + 0.6 * Math.min(1, bytes / most)),
    background: fits ? OKABE_ITO.blue : OKABE_ITO.vermilion,
  };
  const sign = (fits ? (isAssumed ? "? " : "") : "✕ ") + (isRun ? "" : "~ ");
  return make(
    "td",
    {
      class: "heat " + (fits ? "fits" : "not"),
      title: [plainWords(point.verdict), isRun ? "run" : "predicted", point.failure].filter(Boolean).join(", "),
    },
    make("span", { class: "fill", style: fill }),
    make("span", { class: "text" }, sign + (bytes ? bytesText(bytes) : plainWords(point.verdict))),
  );
}

// Bytes over the first knob, a curve for each value of the second, beside what the cards have; dots are open where it
// does not fit, and the largest that does has a ring.
/** @param {Point[]} points @param {string} across @param {string} down @param {SweepGpu[]} cards @param {Largest[]} largest */
function curves(points, across, down, cards, largest) {
  const value = (/** @type {Point} */ point) => Number(point.values[across]);
  const numeric = points.filter((point) => Number.isFinite(value(point)) && needs(point));
  const xs = unique(numeric.map(value)).sort((a, b) => a - b);
  if (xs.length < 2) return "";
  const series = seriesOf(numeric, down, value);
  const highest = Math.max(...numeric.map(needs));
  // A card far above all curves would press them down.
  const near = cards.filter((card) => card.memory_bytes < highest * 1.6);
  const levels = near.map(({ name, memory_bytes: bytes }) => ({ bytes, name: levelText(name, bytes) }));
  const isLargest = (/** @type {Point} */ point) =>
    largest.some(
      (row) =>
        row.knob === across &&
        row.value === value(point) &&
        (row.gpu ?? "") === (point.gpu ?? "") &&
        Object.entries(row.others ?? {}).every(([name, other]) => String(point.values[name]) === String(other)),
    );
  return fitted((width) => {
    const { picture, plot } = framed(width, {
      label: `needed memory over ${across}`,
      values: xs,
      top: Math.max(highest, ...levels.map(({ bytes }) => bytes)) * 1.1,
      levels,
      under: across,
      ticks: xs.map((x) => [x, String(x)]),
      points: series.flatMap(({ points }) => points.map((point) => /** @type {[number, number]} */ ([value(point), needs(point)]))),
    });
    const colours = bandColours("sweep", ["", ...series.map(({ name }) => name), ""]);
    series.forEach(({ points }, index) => {
      const places = points.map((point) => ({ x: plot.x(value(point)), y: plot.y(needs(point)), point }));
      picture.append(...curve(places, colours[index + 1], isLargest));
    });
    return make("div", {}, picture, legend(series, colours));
  });
}

// Cards of which only the memory differs have one curve.
/** @param {Point[]} points @param {string} down @param {(point: Point) => number} value */
function seriesOf(points, down, value) {
  /** @type {Map<string, { name: string, points: Point[] }>} */
  const found = new Map();
  for (const name of unique(points.map((point) => String(valueOf(point, down))))) {
    const own = points.filter((point) => String(valueOf(point, down)) === name).sort((a, b) => value(a) - value(b));
    const key = down === GPU ? own.map((point) => `${value(point)}:${needs(point)}`).join() : name;
    const other = found.get(key);
    if (other) other.points.push(...own);
    else found.set(key, { name: down === GPU ? name : `${down} ${name}`, points: own });
  }
  for (const one of found.values()) one.points.sort((a, b) => value(a) - value(b));
  return [...found.values()];
}

/** @param {string} name @param {number} bytes */
function levelText(name, bytes) {
  return memoryText(name, { name, memory_bytes: bytes, used_bytes: 0, context_bytes: 0 }) ? `${name} ${bytesText(bytes)}` : name;
}

/** @param {{ name: string }[]} series @param {string[]} colours */
function legend(series, colours) {
  if (series.length < 2) return "";
  const row = (/** @type {string} */ name, /** @type {number} */ index) =>
    make("li", {}, make("span", { class: "swatch", style: { background: colours[index + 1] } }), name);
  return make("ul", { class: "legend" }, series.map(({ name }, index) => row(name, index)));
}

// One line with its dots.
/** @param {{ x: number, y: number, point: Point }[]} places @param {string} colour @param {(point: Point) => boolean} isLargest */
function curve(places, colour, isLargest) {
  const points = places.map(({ x, y }) => `${x},${y}`).join(" ");
  const ring = (/** @type {{ x: number, y: number }} */ { x, y }) => svg("circle", { cx: x, cy: y, r: 8, class: "ring" });
  const dots = places.map(({ x, y, point }) => {
    const kind = point.verdict.startsWith("fits") ? "" : "open";
    const dot = svg("circle", { cx: x, cy: y, r: 3.5, stroke: colour, "stroke-width": 1.5, class: kind, fill: colour });
    dot.append(svg("title", {}, `${point.gpu ?? ""} ${bytesText(needs(point))}: ${plainWords(point.verdict)}`));
    return dot;
  });
  const rings = places.filter(({ point }) => isLargest(point)).map(ring);
  return [svg("polyline", { points, fill: "none", stroke: colour, "stroke-width": 2 }), ...rings, ...dots];
}
