// Sweeps of `fathom sweep`: a heat map for each card, and curves beside its limit.

import { byId, make, refill } from "./dom.js";
import { axisSteps, axisText, bytesText, plainWords } from "./format.js";
import { bandColours, OKABE_ITO } from "./colours.js";

/** @import { Document, Largest, Point, Scaling, SweepAnswer, SweepGpu } from "../types" */

/** @param {Document[]} documents */
export function showSweeps(documents) {
  const sweeps = documents.filter((document) => document.schema === "fathom.sweep/1");
  byId("sweeps").hidden = !sweeps.length;
  refill(byId("sweeps-list"), sweeps.map(sweepArticle));
}

/** @template Value @param {Value[]} values */
const unique = (values) => [...new Set(values)];
/** @param {Point} point */
const needs = (point) => point.device_bytes ?? point.peak_reserved_bytes ?? 0;

/** @param {SweepAnswer} answer */
function knobNames({ knobs, points }) {
  const named = (knobs ?? []).map((knob) => (typeof knob === "string" ? knob : knob.name));
  return unique([...named, ...(points ?? []).flatMap((point) => Object.keys(point.values ?? {}))]).filter(Boolean);
}

// The first knob runs across, the second down; other knobs and cards make figures of their own.
/** @param {SweepAnswer} answer */
function sweepArticle(answer) {
  const points = (answer.points ?? []).filter((point) => point.values),
    [across, down, ...others] = knobNames(answer);
  const label = (/** @type {Point} */ point) =>
    [point.gpu ?? "", ...others.map((name) => `${name} ${point.values[name]}`)].filter(Boolean).join(", ");
  const most = Math.max(1, ...points.map(needs));
  const figures = unique(points.map(label)).map((group) => {
    const own = points.filter((point) => label(point) === group);
    const card = (answer.gpus ?? []).find((gpu) => gpu.name === own[0].gpu);
    return make(
      "figure",
      {},
      make("figcaption", {}, group || "All points", memoryText(group, card)),
      heat(own, across, down, most),
      curves(own, across, down, card ? card.memory_bytes : 0),
    );
  });
  const largest = (answer.largest ?? []).map(largestRow),
    scaling = (answer.scaling ?? []).map(scalingRow);
  return make("div", {}, figures, make("ul", {}, largest, scaling));
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
    rowOf = (/** @type {Point} */ point) => (down ? point.values[down] : ""),
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

/** @param {string} tag @param {Record<string, string | number>} attributes @param {string} [text] */
function svg(tag, attributes, text) {
  // The name of a namespace, not an address: nothing is fetched.
  const element = document.createElementNS("http" + "://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

// Where the curves are in their picture: the plot from left to right and down to its floor, texts around it.
const LEFT = 60,
  RIGHT = 540,
  FLOOR = 190;

// Bytes over the first knob, a line for each value of the second; dots are open where it does not fit.
/** @param {Point[]} points @param {string} across @param {string | undefined} down @param {number} limit */
function curves(points, across, down, limit) {
  const value = (/** @type {Point} */ point) => Number(point.values[across]);
  const numeric = points.filter((point) => Number.isFinite(value(point)) && needs(point));
  const xs = unique(numeric.map(value)).sort((a, b) => a - b),
    [least, greatest] = [xs[0], xs[xs.length - 1]];
  if (xs.length < 2) return "";
  const top = Math.max(...numeric.map(needs), limit) * 1.08;
  const x = (/** @type {number} */ number) => LEFT + ((RIGHT - LEFT) * (number - least)) / (greatest - least),
    y = (/** @type {number} */ bytes) => FLOOR - (170 * bytes) / top;
  const picture = svg("svg", {
    viewBox: "0 0 680 226",
    class: "curves",
    role: "img",
    "aria-label": `needed memory over ${across}`,
  });
  const level = (/** @type {number} */ bytes, /** @type {string} */ kind) =>
    svg("line", { x1: LEFT, x2: RIGHT, y1: y(bytes), y2: y(bytes), class: kind });
  for (const bytes of axisSteps(top, 5))
    picture.append(
      level(bytes, "grid"),
      svg("text", { x: LEFT - 6, y: y(bytes) + 4, "text-anchor": "end" }, axisText(bytes)),
    );
  if (limit) picture.append(level(limit, "limit"));
  for (const number of xs)
    picture.append(svg("text", { x: x(number), y: FLOOR + 16, "text-anchor": "middle" }, String(number)));
  picture.append(svg("text", { x: (LEFT + RIGHT) / 2, y: FLOOR + 32, "text-anchor": "middle" }, across));
  const groupOf = (/** @type {Point} */ point) => (down ? String(point.values[down]) : ""),
    groups = unique(numeric.map(groupOf)),
    colours = bandColours("sweep", ["", ...groups, ""]);
  groups.forEach((group, index) => {
    const own = numeric.filter((point) => groupOf(point) === group).sort((a, b) => value(a) - value(b));
    const places = own.map((point) => ({ x: x(value(point)), y: y(needs(point)), verdict: point.verdict }));
    picture.append(...curve(places, colours[index + 1], down ? `${down} ${group}` : ""));
  });
  return picture;
}

// One line with its dots, and its name at its end.
/** @param {{ x: number, y: number, verdict: string }[]} places @param {string} colour @param {string} name */
function curve(places, colour, name) {
  const points = places.map(({ x, y }) => `${x},${y}`).join(" "),
    last = places[places.length - 1];
  const dots = places.map(({ x, y, verdict }) =>
    svg("circle", {
      cx: x,
      cy: y,
      r: 3.5,
      stroke: colour,
      "stroke-width": 1.5,
      class: verdict.startsWith("fits") ? "" : "open",
      fill: colour,
    }),
  );
  return [
    svg("polyline", { points, fill: "none", stroke: colour, "stroke-width": 2 }),
    ...dots,
    svg("text", { x: last.x + 8, y: last.y + 4 }, name),
  ];
}
