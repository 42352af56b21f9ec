// Sweeps of `fathom sweep`: a heat map for each card, and curves beside its limit.

import { byId, make, refill } from "./dom.js";
import { axisSteps, axisText, bytesText, plainWords } from "./format.js";
import { bandColours, OKABE_ITO } from "./colours.js";

export function showSweeps(documents) {
  const sweeps = documents.filter((document) => document.schema === "fathom.sweep/1");
  byId("sweeps").hidden = !sweeps.length;
  refill(byId("sweeps-list"), sweeps.map(sweep));
}

const unique = (values) => [...new Set(values)];
const needs = (point) => point.device_bytes ?? point.peak_reserved_bytes ?? 0;

function knobNames({ knobs, points }) {
  const named = (knobs ?? []).map((knob) => (typeof knob === "string" ? knob : knob.name));
  return unique([...named, ...(points ?? []).flatMap((point) => Object.keys(point.values ?? {}))]).filter(Boolean);
}

// The first knob runs across, the second down; other knobs and cards make figures of their own.
function sweep(answer) {
  const points = (answer.points ?? []).filter((point) => point.values),
    [across, down, ...others] = knobNames(answer);
  const label = (point) =>
    [point.gpu ?? "", ...others.map((name) => `${name} ${point.values[name]}`)].filter(Boolean).join(", ");
  const most = Math.max(1, ...points.map(needs));
  const figures = unique(points.map(label)).map((group) => {
    const own = points.filter((point) => label(point) === group);
    const card = (answer.gpus ?? []).find((gpu) => gpu.name === own[0].gpu);
    return make(
      "figure",
      {},
      make("figcaption", {}, group || "All points", saysMemory(group, card) ? "" : `, ${bytesText(card.memory_bytes)}`),
      heat(own, across, down, most),
      curves(own, across, down, card ? card.memory_bytes : 0),
    );
  });
  const scaling = (answer.scaling ?? []).map((row) => {
    const what = plainWords(row.of ?? "peak").replace(" bytes", "");
    const power = Number(row.exponent).toFixed(2);
    const how = power === "1.00" ? `linearly with ${row.knob}` : `as ${row.knob} to the power of ${power}`;
    return make("li", {}, `${what} grows ${how} (fitted)`);
  });
  return make("div", {}, figures, make("ul", {}, (answer.largest ?? []).map(largestRow), scaling));
}

// A card that was given by its memory is named by it: `1 GiB`, `700.0 MiB`.
function saysMemory(group, card) {
  return !card || group.startsWith(bytesText(card.memory_bytes)) || group.startsWith(axisText(card.memory_bytes));
}

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

function heat(points, across, down, most) {
  const columns = unique(points.map((point) => point.values[across])),
    rows = down ? unique(points.map((point) => point.values[down])) : [null];
  const cell = (row, column) => {
    const point = points.find((one) => one.values[across] === column && (row === null || one.values[down] === row));
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
      make("th", {}, row === null ? "" : String(row)),
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
function heatCell(point, most) {
  const fits = point.verdict.startsWith("fits"),
    isAssumed = point.verdict === "fits_if",
    bytes = needs(point),
    isRun = point.how === "run";
  const fill = {
    opacity: String(0.12 + 0.6 * Math.min(1, bytes / most)),
    background: fits ? OKABE_ITO.blue : OKABE_ITO.vermilion,
  };
  const text = (fits ? (isAssumed ? "? " : "") : "✕ ") + (isRun ? "" : "~ ") + (bytes ? bytesText(bytes) : plainWords(point.verdict));
  return make(
    "td",
    {
      class: "heat " + (fits ? "fits" : "not"),
      title: [plainWords(point.verdict), isRun ? "run" : "predicted", point.failure].filter(Boolean).join(", "),
    },
    make("span", { class: "fill", style: fill }),
    make("span", { class: "text" }, text),
  );
}

function svg(tag, attributes, text) {
  // The name of a namespace, not an address: nothing is fetched.
  const element = document.createElementNS("http" + "://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Bytes over the first knob, a line for each value of the second; dots are open where it does not fit.
function curves(points, across, down, limit) {
  const value = (point) => Number(point.values[across]);
  const numeric = points.filter((point) => Number.isFinite(value(point)) && needs(point));
  const xs = unique(numeric.map(value)).sort((a, b) => a - b),
    [least, greatest] = [xs[0], xs[xs.length - 1]];
  if (xs.length < 2) return "";
  const top = Math.max(...numeric.map(needs), limit) * 1.08;
  const x = (number) => 60 + (480 * (number - least)) / (greatest - least),
    y = (bytes) => 190 - (170 * bytes) / top;
  const picture = svg("svg", {
    viewBox: "0 0 680 226",
    class: "curves",
    role: "img",
    "aria-label": `needed memory over ${across}`,
  });
  for (const bytes of axisSteps(top, 5)) {
    picture.append(
      svg("line", { x1: 60, x2: 540, y1: y(bytes), y2: y(bytes), class: "grid" }),
      svg("text", { x: 54, y: y(bytes) + 4, "text-anchor": "end" }, axisText(bytes)),
    );
  }
  if (limit) picture.append(svg("line", { x1: 60, x2: 540, y1: y(limit), y2: y(limit), class: "limit" }));
  for (const number of xs)
    picture.append(svg("text", { x: x(number), y: 206, "text-anchor": "middle" }, String(number)));
  picture.append(svg("text", { x: 300, y: 222, "text-anchor": "middle" }, across));
  const groups = unique(numeric.map((point) => (down ? String(point.values[down]) : ""))),
    colours = bandColours("sweep", ["", ...groups, ""]);
  groups.forEach((group, index) => {
    const own = numeric
      .filter((point) => (down ? String(point.values[down]) : "") === group)
      .sort((a, b) => value(a) - value(b));
    const colour = colours[index + 1],
      last = own[own.length - 1];
    picture.append(
      svg("polyline", {
        points: own.map((point) => `${x(value(point))},${y(needs(point))}`).join(" "),
        fill: "none",
        stroke: colour,
        "stroke-width": 2,
      }),
    );
    for (const point of own)
      picture.append(
        svg("circle", {
          cx: x(value(point)),
          cy: y(needs(point)),
          r: 3.5,
          stroke: colour,
          "stroke-width": 1.5,
          class: point.verdict.startsWith("fits") ? "" : "open",
          fill: colour,
        }),
      );
    picture.append(svg("text", { x: x(value(last)) + 8, y: y(needs(last)) + 4 }, down ? `${down} ${group}` : ""));
  });
  return picture;
}
