// Answers of other commands: plans of `fathom fit`, and sweeps as a heat map and curves.

import { byId, make, refill } from "./dom.js";
import { bytesText, plainWords } from "./format.js";
import { OKABE_ITO } from "./colours.js";

export function showDocuments(documents) {
  const fits = documents.filter((document) => document.schema === "fathom.fit/1");
  const sweeps = documents.filter((document) => document.schema === "fathom.sweep/1");
  byId("plans").hidden = !fits.length;
  byId("sweeps").hidden = !sweeps.length;
  refill(byId("plans-list"), fits.map(plan));
  refill(byId("sweeps-list"), sweeps.map(sweep));
}

function plan(fit) {
  const plans = fit.plans ?? [];
  const rows = plans.map((row, index) => {
    const cost = row.cost && typeof row.cost.flops_ratio === "number" ? `× ${row.cost.flops_ratio.toFixed(2)} FLOPs (${row.cost.known ?? "modelled"})` : "";
    const fits = row.headroom_bytes >= 0 ? bytesText(row.headroom_bytes) : "too much by " + bytesText(-row.headroom_bytes);
    return make("tr", { class: index === fit.chosen ? "marked" : "" },
      make("td", {}, row.label ?? (row.levers ?? []).join(" + "), index === fit.chosen ? make("small", {}, " chosen") : ""),
      make("td", { class: "number", "data-bytes": row.device_bytes }, bytesText(row.device_bytes)), make("td", { class: "number" }, fits),
      make("td", {}, row.verified ? "run" : "predicted"), make("td", {}, cost));
  });
  const heads = ["plan", "needs", "to spare", "how it is known", "cost"].map((name, index) => make("th", { class: index === 1 || index === 2 ? "number" : "" }, name));
  const chosen = plans[fit.chosen];
  const reasons = (fit.not_applicable ?? []).map((row) => make("li", {}, `${row.lever}: ${row.reason}`));
  return make("div", {}, make("p", {}, "The budget is ", make("b", {}, bytesText(fit.budget_bytes)), fit.tightest_bytes ? `; the tightest plan needs ${bytesText(fit.tightest_bytes)}.` : "."),
    make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows))),
    chosen && chosen.patch ? make("details", {}, make("summary", {}, "The change of the chosen plan"), make("pre", {}, typeof chosen.patch === "string" ? chosen.patch : JSON.stringify(chosen.patch, null, 2))) : "",
    reasons.length ? make("details", {}, make("summary", {}, "Not applicable"), make("ul", {}, reasons)) : "");
}

const unique = (values) => [...new Set(values)];
const knobNames = (document) => unique([...(document.knobs ?? []).map((knob) => (typeof knob === "string" ? knob : knob.name)), ...(document.points ?? []).flatMap((point) => Object.keys(point.values ?? {}))]).filter(Boolean);

// The first knob runs across, the second down; other knobs and cards make tables of their own.
function sweep(document) {
  const points = document.points ?? [], [across, down, ...others] = knobNames(document);
  const label = (point) => [point.gpu ?? "", ...others.map((name) => `${name} ${point.values[name]}`)].filter(Boolean).join(", ");
  const most = Math.max(1, ...points.map((point) => point.peak_reserved_bytes ?? 0));
  const groups = unique(points.map(label));
  const largest = (document.largest ?? []).map((row) => make("li", {}, `${row.gpu ?? "any card"}: the largest ${row.knob} that fits is `, make("b", {}, String(row.value))));
  const scaling = (document.scaling ?? []).map((row) => make("li", {}, `${plainWords(row.of ?? "the peak")} grows as ${row.knob} to the power of ${Number(row.exponent).toFixed(2)}`));
  return make("div", {}, groups.map((group) => make("figure", {}, make("figcaption", {}, group || "All points"), heat(points.filter((point) => label(point) === group), across, down, most))),
    down ? "" : curve(points, across, label, groups, most), make("ul", {}, largest, scaling));
}

function heat(points, across, down, most) {
  const columns = unique(points.map((point) => point.values[across])), rows = down ? unique(points.map((point) => point.values[down])) : [null];
  const cell = (row, column) => {
    const point = points.find((one) => one.values[across] === column && (row === null || one.values[down] === row));
    if (!point) return make("td", {});
    const fits = point.verdict === "fits", bytes = point.peak_reserved_bytes;
    const share = bytes ? Math.min(1, bytes / most) : 1;
    return make("td", { class: "heat " + (fits ? "fits" : "not"), title: `${plainWords(point.verdict)}, ${point.how === "run" ? "run" : "predicted"}` },
      make("span", { class: "fill", style: { opacity: String(0.12 + 0.6 * share), background: fits ? OKABE_ITO.blue : OKABE_ITO.vermilion } }),
      make("span", { class: "text" }, (fits ? "" : "✕ ") + (bytes ? bytesText(bytes) : plainWords(point.verdict)) + (point.how === "run" ? "" : " ~")));
  };
  const head = make("tr", {}, make("th", {}, down ? `${down} \\ ${across}` : across), columns.map((column) => make("th", { class: "number" }, String(column))));
  return make("div", { class: "scroll" }, make("table", { class: "heatmap" }, make("thead", {}, head), make("tbody", {}, rows.map((row) => make("tr", {}, make("th", {}, row === null ? "" : String(row)), columns.map((column) => cell(row, column)))))));
}

// With one knob: the peak over its values, one line for each card.
function curve(points, across, label, groups, most) {
  const numeric = points.filter((point) => Number.isFinite(Number(point.values[across])) && point.peak_reserved_bytes);
  if (numeric.length < 2) return "";
  const xs = numeric.map((point) => Number(point.values[across])), least = Math.min(...xs), greatest = Math.max(...xs);
  const svg = (tag, attributes, text) => {
    const element = document.createElementNS("http" + "://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const x = (value) => 40 + (560 * (value - least)) / Math.max(1e-9, greatest - least), y = (bytes) => 170 - (150 * bytes) / most;
  const picture = svg("svg", { viewBox: "0 0 640 200", class: "curves", role: "img", "aria-label": `reserved peak over ${across}` });
  const colours = Object.values(OKABE_ITO);
  groups.forEach((group, index) => {
    const own = numeric.filter((point) => label(point) === group).sort((a, b) => a.values[across] - b.values[across]);
    if (!own.length) return;
    picture.append(svg("polyline", { points: own.map((point) => `${x(Number(point.values[across]))},${y(point.peak_reserved_bytes)}`).join(" "), fill: "none", stroke: colours[index % colours.length], "stroke-width": 2 }));
    const last = own[own.length - 1];
    picture.append(svg("text", { x: x(Number(last.values[across])) - 4, y: y(last.peak_reserved_bytes) - 6, "text-anchor": "end" }, `${group} ${bytesText(last.peak_reserved_bytes)}`));
  });
  picture.append(svg("text", { x: 40, y: 192 }, `${across} ${least}`), svg("text", { x: 600, y: 192, "text-anchor": "end" }, String(greatest)));
  return picture;
}
