// Plans of `fathom fit`: what they change, what they need, how that is known.

import { byId, make, refill } from "./dom.js";
import { bytesText, unique } from "./format.js";
import { fitted, framed, svg } from "./chart.js";

/** @import { Baseline, Cost, Document, FitAnswer, Lever, Plan } from "../types" */

/** @param {Document[]} documents */
export function showPlans(documents) {
  const fits = documents.filter((document) => document.schema === "fathom.fit/1");
  byId("plans").hidden = !fits.length;
  refill(byId("plans-list"), fits.map(fitArticle));
}

// What a plan changes: `checkpoint layers.0, layers.1 + accumulate 4`.
/** @param {Lever[]} levers */
function leversText(levers) {
  const words = (levers ?? []).map((lever) => {
    if (typeof lever !== "object" || !lever) return String(lever);
    const { id, ...rest } = lever;
    if (id === "knob") return `${rest.name}=${rest.value}`;
    const values = Object.values(rest).map((value) =>
      Array.isArray(value) && value.length > 3
        ? `${value.slice(0, 3).join(", ")} and ${value.length - 3} more`
        : [value].flat().join(", "),
    );
    return [id, ...values].join(" ");
  });
  return words.join(" + ");
}

/** @param {Cost} cost */
function costText(cost) {
  if (!cost || typeof cost.flops_ratio !== "number") return "";
  if (cost.flops_ratio <= 1) return "no more operations";
  return `${Math.round(100 * (cost.flops_ratio - 1))} % more operations (${cost.known ?? "modelled"})`;
}

// What is left of the budget.
/** @param {number} bytes */
function roomText(bytes) {
  return bytes >= 0 ? bytesText(bytes) : "too much by " + bytesText(-bytes);
}

// What is needed as a bar, and the budget as a line across all of them.
/** @param {number} bytes @param {number} budget @param {number} most */
function needBar(bytes, budget, most) {
  const share = (/** @type {number} */ part) => `${(100 * part) / most}%`;
  const parts = [
    make("span", { class: bytes <= budget ? "fits" : "not", style: { width: share(bytes) } }),
    make("span", { class: "budget", style: { left: share(budget) }, title: `budget ${bytesText(budget)}` }),
  ];
  return make("td", { class: "need" }, make("div", {}, parts));
}

// What fits only with what was assumed says so.
/** @param {Plan | Baseline} row @param {string} how */
function knownText(row, how) {
  return row.verdict === "fits_if" ? how + ", fits if what is not known is as assumed" : how;
}

// Before: the run as it is, in the same columns.
/** @param {Baseline} baseline @param {number} budget @param {number} most */
function baselineRow(baseline, budget, most) {
  const bytes = baseline.device_bytes;
  return make(
    "tr",
    {},
    make("td", {}, "as it is"),
    make("td", {}),
    make("td", { class: "number", "data-bytes": bytes }, bytesText(bytes)),
    needBar(bytes, budget, most),
    make("td", { class: "number" }, roomText(budget - bytes)),
    make("td", {}, knownText(baseline, "run")),
    make("td", {}),
  );
}

/** @param {Plan} plan @param {number} number @param {boolean} isChosen @param {number} budget @param {number} most */
function planRow(plan, number, isChosen, budget, most) {
  return make(
    "tr",
    { class: isChosen ? "marked" : "" },
    make("td", {}, `${number}. ${leversText(plan.levers) || plan.label}`, isChosen ? make("small", {}, " chosen") : ""),
    make("td", {}, plan.label ?? ""),
    make("td", { class: "number", "data-bytes": plan.device_bytes }, bytesText(plan.device_bytes)),
    needBar(plan.device_bytes, budget, most),
    make("td", { class: "number" }, roomText(plan.headroom_bytes)),
    make("td", {}, knownText(plan, plan.verified ? "run" : "predicted")),
    make("td", {}, costText(plan.cost)),
  );
}

// The run as it is, then every plan.
/** @param {FitAnswer} fit */
function plansTable(fit) {
  const { plans = [], baseline, budget_bytes: budget } = fit;
  const needs = [budget, baseline?.device_bytes ?? 0, ...plans.map((plan) => plan.device_bytes)];
  const most = Math.max(1, ...needs) * 1.02;
  const rows = plans.map((plan, index) => planRow(plan, index + 1, index === fit.chosen, budget, most));
  if (baseline?.device_bytes) rows.unshift(baselineRow(baseline, budget, most));
  const heads = [
    ["plan"],
    ["results"],
    ["needs", "number"],
    [`of ${bytesText(budget)}`],
    ["to spare", "number"],
    ["how it is known"],
    ["cost"],
  ].map(([name, kind]) => make("th", { class: kind }, name));
  return make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows));
}

// The answer in one line, and whether it is good news.
/** @param {FitAnswer} fit @returns {[string, "good" | "bad" | "plain"]} */
export function fitHeadline({ plans = [], baseline, chosen, gpu, budget_bytes: budget, unfinished }) {
  const card = gpu || bytesText(budget);
  const plan = chosen === null ? undefined : plans[chosen];
  if (plan) {
    const isIf = plan.verdict === "fits_if";
    return [`Fits ${card} with ${leversText(plan.levers) || plan.label}${isIf ? ", with an if" : ""}`, isIf ? "plain" : "good"];
  }
  if (baseline?.verdict === "fits") return [`Fits ${card} as it is`, "good"];
  if (baseline?.verdict === "script_failed") return ["The script failed for another reason", "bad"];
  if (unfinished) return [`Unfinished: no plan for ${card} yet`, "plain"];
  return [`No plan fits ${card}`, "bad"];
}

// What it needs then, what that costs, and how it would be without.
/** @param {FitAnswer} fit */
function fitReason({ plans = [], baseline, chosen, budget_bytes: budget, tightest_bytes: tightest }) {
  const plan = chosen === null ? undefined : plans[chosen];
  const asItIs = baseline?.device_bytes ? `As it is, the run needs ${bytesText(baseline.device_bytes)}.` : "";
  if (!plan) {
    const least = tightest ? `The tightest plan needs ${bytesText(tightest)}.` : "";
    return [`The budget is ${bytesText(budget)}.`, asItIs, least].filter(Boolean).join(" ");
  }
  const cost = costText(plan.cost);
  const needs = `Needs ${bytesText(plan.device_bytes)} of ${bytesText(budget)} (${knownText(plan, plan.verified ? "run" : "predicted")})`;
  return [`${needs}${cost ? `, ${cost}` : ""}.`, asItIs].filter(Boolean).join(" ");
}

// Needs over cost: the line is the budget, the full dots fit. Numbers are those of the table.
/** @param {FitAnswer} fit */
function plansChart({ plans = [], baseline, chosen, budget_bytes: budget, gpu }) {
  const dots = plans.map((plan, index) => ({
    cost: costOf(plan.cost),
    bytes: plan.device_bytes,
    name: String(index + 1),
    kind: (plan.device_bytes <= budget ? "fits" : "not") + (index === chosen ? " chosen" : ""),
    title: `${leversText(plan.levers) || plan.label}: ${bytesText(plan.device_bytes)}, ${costText(plan.cost) || "cost unknown"}`,
  }));
  if (baseline?.device_bytes)
    dots.unshift({
      cost: 0,
      bytes: baseline.device_bytes,
      name: "as it is",
      kind: baseline.device_bytes <= budget ? "fits" : "not",
      title: `as it is: ${bytesText(baseline.device_bytes)}`,
    });
  if (dots.length < 2) return "";
  const costs = unique(dots.map(({ cost }) => cost)).sort((a, b) => a - b);
  const ends = [0, Math.max(10, ...costs)];
  const steps = [0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(part * ends[1]));
  return fitted((width) => {
    const { picture, plot } = framed(width, {
      label: "what each plan needs over what it costs",
      values: ends,
      top: Math.max(budget, ...dots.map(({ bytes }) => bytes)) * 1.1,
      levels: [{ bytes: budget, name: `${gpu || "budget"} ${bytesText(budget)}` }],
      under: "more operations, in percent",
      ticks: steps.map((step) => [step, `${step}`]),
      points: dots.map(({ cost, bytes }) => [cost, bytes]),
    });
    drawDots(picture, plot, dots);
    return picture;
  });
}

// Dots with their names beside them, where there is room; a name that would lie on another goes without: the table has it.
/** @param {Element} picture @param {import("./chart.js").Plot} plot
 *  @param {{ cost: number, bytes: number, name: string, kind: string, title: string }[]} dots */
function drawDots(picture, { x, y, left, right, texts }, dots) {
  const taken = [...texts, ...dots.map(({ cost, bytes }) => ({ x: x(cost) - 7, y: y(bytes) + 4, width: 14 }))];
  for (const { cost, bytes, name, kind, title } of dots) {
    const place = { x: x(cost), y: y(bytes) };
    const dot = svg("circle", { cx: place.x, cy: place.y, r: kind.includes("chosen") ? 7 : 5, class: "dot " + kind });
    dot.append(svg("title", {}, title));
    picture.append(dot);
    const width = 8 * name.length;
    const sides = [
      [10, 4],
      [-10 - width, 4],
      [-width / 2, -10],
      [-width / 2, 20],
    ].map(([right, down]) => ({ x: place.x + right, y: place.y + down, width }));
    const text = sides.find((side) => left < side.x && side.x + width < right && !taken.some((one) => touches(one, side)));
    if (!text) continue;
    taken.push(text);
    picture.append(svg("text", { x: text.x, y: text.y, class: "dot-name" }, name));
  }
}

/** @param {import("./chart.js").TextBox} one @param {import("./chart.js").TextBox} other */
function touches(one, other) {
  return one.x < other.x + other.width && other.x < one.x + one.width && Math.abs(one.y - other.y) < 14;
}

/** @param {Cost} cost */
function costOf(cost) {
  return cost && typeof cost.flops_ratio === "number" ? Math.max(0, 100 * (cost.flops_ratio - 1)) : 0;
}

/** @param {FitAnswer} fit */
function fitArticle(fit) {
  const { plans = [], causes = [] } = fit;
  const chosen = fit.chosen === null ? undefined : plans[fit.chosen];
  const reasons = (fit.not_applicable ?? []).map((row) => make("li", {}, `${row.lever}: ${row.reason}`));
  const held = causes.map((cause) => make("li", {}, `${cause.title}: `, make("b", {}, bytesText(cause.bytes))));
  return make(
    "div",
    {},
    headline(fitHeadline(fit), fitReason(fit), fit.command),
    plansChart(fit),
    make("div", { class: "scroll" }, plansTable(fit)),
    chosen && chosen.patch
      ? make("details", {}, make("summary", {}, "The change of the chosen plan"), make("pre", {}, String(chosen.patch)))
      : "",
    held.length ? make("details", {}, make("summary", {}, "What holds the memory"), make("ul", {}, held)) : "",
    reasons.length ? make("details", {}, make("summary", {}, "Not applicable"), make("ul", {}, reasons)) : "",
    (fit.notes ?? []).map((note) => make("p", { class: "note" }, note)),
  );
}

// What a page says first: the answer, how much, and the command that gives it again.
/** @param {[string, "good" | "bad" | "plain"]} answer @param {string} reason @param {string | undefined} command */
export function headline([words, mood], reason, command) {
  const sign = { good: "✓", bad: "✕", plain: "●" }[mood];
  return make(
    "div",
    { class: "answered" },
    make("h1", {}, make("span", { class: "mark " + mood, "aria-hidden": "true" }, sign), words),
    reason ? make("p", { class: "answer" }, reason) : "",
    command ? make("pre", { class: "command" }, command) : "",
  );
}
