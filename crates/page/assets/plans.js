// Plans of `fathom fit`: what they change, what they need, how that is known.

import { byId, make, refill } from "./dom.js";
import { bytesText } from "./format.js";

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

/** @param {Plan} plan @param {boolean} isChosen @param {number} budget @param {number} most */
function planRow(plan, isChosen, budget, most) {
  return make(
    "tr",
    { class: isChosen ? "marked" : "" },
    make("td", {}, leversText(plan.levers) || plan.label, isChosen ? make("small", {}, " chosen") : ""),
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
  const rows = plans.map((plan, index) => planRow(plan, index === fit.chosen, budget, most));
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

/** @param {FitAnswer} fit */
function fitArticle(fit) {
  const { plans = [], baseline } = fit;
  const chosen = fit.chosen === null ? undefined : plans[fit.chosen];
  const reasons = (fit.not_applicable ?? []).map((row) => make("li", {}, `${row.lever}: ${row.reason}`));
  const asItIs = baseline?.device_bytes ? ` As it is, the run needs ${bytesText(baseline.device_bytes)}.` : "";
  const tightest = fit.tightest_bytes ? ` The tightest plan needs ${bytesText(fit.tightest_bytes)}.` : "";
  return make(
    "div",
    {},
    make(
      "p",
      {},
      "The budget is ",
      make("b", {}, bytesText(fit.budget_bytes)),
      fit.gpu ? ` (${fit.gpu}).` : ".",
      asItIs + tightest,
      plans.length && !chosen ? " No plan fits." : "",
    ),
    make("div", { class: "scroll" }, plansTable(fit)),
    chosen && chosen.patch
      ? make("details", {}, make("summary", {}, "The change of the chosen plan"), make("pre", {}, String(chosen.patch)))
      : "",
    reasons.length ? make("details", {}, make("summary", {}, "Not applicable"), make("ul", {}, reasons)) : "",
  );
}
