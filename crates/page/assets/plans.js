// Plans of `fathom fit`: what they change, what they need, how that is known.

import { byId, make, refill } from "./dom.js";
import { bytesText } from "./format.js";

export function showPlans(documents) {
  const fits = documents.filter((document) => document.schema === "fathom.fit/1");
  byId("plans").hidden = !fits.length;
  refill(byId("plans-list"), fits.map(plan));
}

// What a plan changes: `checkpoint layers.0, layers.1 + accumulate 4`.
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

function costText(cost) {
  if (!cost || typeof cost.flops_ratio !== "number") return "";
  if (cost.flops_ratio <= 1) return "no more operations";
  return `${Math.round(100 * (cost.flops_ratio - 1))} % more operations (${cost.known ?? "modelled"})`;
}

// What is left of the budget.
function roomText(bytes) {
  return bytes >= 0 ? bytesText(bytes) : "too much by " + bytesText(-bytes);
}

// What is needed as a bar, and the budget as a line across all of them.
function needBar(bytes, budget, most) {
  const share = (part) => `${(100 * part) / most}%`;
  const parts = [
    make("span", { class: bytes <= budget ? "fits" : "not", style: { width: share(bytes) } }),
    make("span", { class: "budget", style: { left: share(budget) }, title: `budget ${bytesText(budget)}` }),
  ];
  return make("td", { class: "need" }, make("div", {}, parts));
}

// What fits only with what was assumed says so.
function knownText(row, how) {
  return row.verdict === "fits_if" ? how + ", fits if what is not known is as assumed" : how;
}

// Before: the run as it is, in the same columns.
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

function plan(fit) {
  const plans = fit.plans ?? [],
    { baseline, budget_bytes: budget } = fit;
  const hasBaseline = Boolean(baseline && baseline.device_bytes);
  const needs = [budget, hasBaseline ? baseline.device_bytes : 0, ...plans.map((row) => row.device_bytes)];
  const most = Math.max(1, ...needs) * 1.02;
  const rows = plans.map((row, index) => {
    return make(
      "tr",
      { class: index === fit.chosen ? "marked" : "" },
      make("td", {}, leversText(row.levers) || row.label, index === fit.chosen ? make("small", {}, " chosen") : ""),
      make("td", {}, row.label ?? ""),
      make("td", { class: "number", "data-bytes": row.device_bytes }, bytesText(row.device_bytes)),
      needBar(row.device_bytes, budget, most),
      make("td", { class: "number" }, roomText(row.headroom_bytes)),
      make("td", {}, knownText(row, row.verified ? "run" : "predicted")),
      make("td", {}, costText(row.cost)),
    );
  });
  if (hasBaseline) rows.unshift(baselineRow(baseline, budget, most));
  const heads = [
    ["plan"],
    ["results"],
    ["needs", "number"],
    [`of ${bytesText(budget)}`],
    ["to spare", "number"],
    ["how it is known"],
    ["cost"],
  ].map(([name, kind]) => make("th", { class: kind }, name));
  const chosen = plans[fit.chosen];
  const reasons = (fit.not_applicable ?? []).map((row) => make("li", {}, `${row.lever}: ${row.reason}`));
  const asItIs =
    baseline && baseline.device_bytes ? ` As it is, the run needs ${bytesText(baseline.device_bytes)}.` : "";
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
    make(
      "div",
      { class: "scroll" },
      make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows)),
    ),
    chosen && chosen.patch
      ? make("details", {}, make("summary", {}, "The change of the chosen plan"), make("pre", {}, String(chosen.patch)))
      : "",
    reasons.length ? make("details", {}, make("summary", {}, "Not applicable"), make("ul", {}, reasons)) : "",
  );
}
