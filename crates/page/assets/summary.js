// The first screen: does it fit, what is the peak, what holds it, when. Every figure is the report's own.

import { make, refill, byId } from "./dom.js";
import { bytesText, countText, lastPart, percentText, placeText, plainWords, whenText } from "./format.js";
import { categoryColour } from "./colours.js";

/** @import { Deferred, Entry, FitsOn, Gpu, Peak } from "../types" */
/** @import { AnyReport } from "../types/either" */
/** @import { OneChild } from "./dom.js" */
/** @typedef {"good" | "bad" | "plain"} Mood */

// A size that a test can find again: exact bytes and the field of the JSON it stands for.
/** @param {number} bytes @param {string} field */
export function figure(bytes, field) {
  return make(
    "span",
    { class: "bytes", "data-bytes": bytes, "data-field": field, title: countText(bytes) + " bytes" },
    bytesText(bytes),
  );
}

/** @type {[string, Mood]} */
const UNUSED = ["The script did not use the GPU", "plain"];

// How a need is known, context included.
const NEED_KNOWN = {
  run: "run at this size, 2 % less runs out",
  enough: "run at this size, less may do",
  replay: "by replay, context included",
  taken: "what the run took, less may do",
};

// One sentence, and whether it is good or bad news.
/** @param {AnyReport} report @returns {[string, Mood]} */
export function verdictOf(report) {
  const card = report.gpu ? report.gpu.title : "";
  const { peak, out_of_memory: refusal } = report;
  switch (report.verdict) {
    case "fits":
      if (!peak) return UNUSED;
      if (report.judgement === "tight") return [card ? `Fits on ${card}, but hardly` : "Fits, but hardly", "plain"];
      if (report.judgement === "depends") return depends(report, card);
      if (card) return [`Fits on ${card}`, "good"];
      if (report.budget_bytes) return ["Stays within the budget", "good"];
      return [`Needs ${bytesText(report.need?.bytes ?? peak.device_bytes ?? 0)} of GPU memory`, "plain"];
    case "fits_if":
      return depends(report, card);
    case "does_not_fit":
      if (!refusal) return ["Runs, but goes over the budget", "bad"];
      return [card ? `Does not fit on ${card}` : "Does not fit", "bad"];
    case "grew":
      return ["Needs more than its baseline allows", "bad"];
    case "script_failed":
      return ["The script failed for another reason", "bad"];
    case "interrupted":
      return ["Interrupted", "bad"];
    case "timed_out":
      return ["Timed out", "bad"];
    default:
      if (refusal) return ["Ran out of memory", "bad"];
      return peak ? [`Peaks at ${bytesText(peak.allocated_bytes)} allocated`, "plain"] : UNUSED;
  }
}

// It went through, and what was not seen decides: values that nobody knows, or steps and batches that were not run.
/** @param {AnyReport} report @param {string} card @returns {[string, Mood]} */
function depends({ full_after_steps: steps }, card) {
  if (steps) return [`Fits${card && ` on ${card}`} for ${countText(steps)} steps only`, "plain"];
  return [card ? `Fits on ${card}, with an if` : "Depends on what is not known", "plain"];
}

// The first line of the terminal, without its word and without the name of the card, which stand above.
/** @param {AnyReport} report */
function headlineOf({ headline, gpu }) {
  const text = (headline ?? "").replace(/^[A-Z ]+ {2}/, "");
  return gpu && text.startsWith(`${gpu.title}: `) ? text.slice(gpu.title.length + 2) : text;
}

// What follows the verdict: how much, of what, and what is left.
/** @param {AnyReport} report @returns {OneChild[]} */
function reasonOf(report) {
  const { peak, gpu, out_of_memory: refusal } = report;
  const headline = headlineOf(report);
  if (refusal) {
    const reason = refusalReason(refusal);
    // A headline that only says that memory ran out says no more than this.
    return /needs|;/.test(headline) ? [sentence(headline), make("span", { class: "why" }, reason)] : reason;
  }
  if (peak?.device_bytes !== undefined && report.budget_bytes && report.verdict === "does_not_fit") {
    return [
      "Needs ",
      ...needed(report, peak),
      ", the budget is ",
      figure(report.budget_bytes, "budget_bytes"),
      ".",
    ];
  }
  // What nobody knows, and what was not run, is part of the verdict: its own sentence says how.
  const isUnknown = (report.decisions ?? []).some((decision) => decision.why !== "modelled");
  const isPlain = ["fits", "tight", "needs"].includes(report.judgement ?? report.verdict ?? "");
  if (headline && (isUnknown || !isPlain)) return [sentence(headline)];
  if (report.failure) return [report.failure];
  if (peak?.device_bytes !== undefined && gpu) {
    const rest = gpu.memory_bytes - (gpu.used_bytes ?? 0) - (report.need?.bytes ?? peak.device_bytes);
    return [
      "Needs ",
      ...needed(report, peak),
      " of ",
      figure(gpu.memory_bytes, "gpu.memory_bytes"),
      `, ${included(peak, gpu)} included: ${bytesText(Math.max(0, rest))} to spare.`,
    ];
  }
  if (report.budget_bytes && headline) return [sentence(headline)];
  return roomReason(report.fits_on ?? []);
}

// What a run needs and how far that may be off; what it took, where nothing better is known.
/** @param {AnyReport} report @param {Peak} peak @returns {OneChild[]} */
function needed({ need }, peak) {
  if (!need) return [figure(peak.device_bytes, "peak.device_bytes")];
  return [figure(need.bytes, "need.bytes"), ` ± ${bytesText(need.error_bytes)}`];
}

// Who asked for how much, where, and why there was no room.
/** @param {NonNullable<AnyReport["out_of_memory"]>} refusal @returns {OneChild[]} */
function refusalReason(refusal) {
  const free =
    refusal.free_bytes === null ? [] : [" with ", figure(refusal.free_bytes, "out_of_memory.free_bytes"), " free"];
  const place = placeText(refusal.file, refusal.line),
    when = whenText(refusal.phase, refusal.step);
  const who = [
    refusal.operator || "A request",
    refusal.module && `in ${refusal.module}`,
    place && `at ${place}`,
    when && `(${when})`,
  ];
  return [
    who.filter(Boolean).join(" "),
    " tried to allocate ",
    figure(refusal.tried_bytes, "out_of_memory.tried_bytes"),
    ...free,
    ".",
    refusal.reason ? make("span", { class: "why" }, sentence(refusal.reason)) : "",
  ];
}

// Cards that have room for a run which had no limit.
/** @param {FitsOn[]} cards @returns {OneChild[]} */
function roomReason(cards) {
  const certain = cards.filter((card) => card.known !== "likely");
  if (certain.length) return [`Would fit on ${smallest(certain)}.`];
  if (!cards.length) return [];
  return [`Would likely fit on ${smallest(cards)}; workspaces of cuDNN differ from GPU to GPU.`];
}

// The first of a list that is sorted by memory, and how many there are beside them.
/** @param {FitsOn[]} cards */
function smallest(cards, shown = 6) {
  const near = (/** @type {FitsOn} */ card) => (card.is_tight ? ", tight" : ""),
    names = cards.slice(0, shown).map((card) => `${card.name} (${bytesText(card.memory_bytes)}${near(card)})`),
    more = cards.length - shown;
  return names.join(", ") + (0 < more ? ` and ${more} larger GPUs` : "");
}

/** @param {string} text */
function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : first + ".";
}

/** @param {string} label @param {OneChild} value @param {string} note */
function fact(label, value, note) {
  return make(
    "div",
    { class: "fact" },
    make("dt", {}, label),
    make("dd", {}, make("div", { class: "value" }, value), make("div", { class: "note" }, note)),
  );
}

// What holds most: a category, or a line where nothing has a name.
/** @param {AnyReport} report @param {number} whole */
function holder(report, whole) {
  const share = (/** @type {number} */ bytes) => `${bytesText(bytes)}, ${percentText(bytes, whole)} of the peak`;
  const [largest] = [...(report.categories ?? [])].sort((a, b) => b.bytes - a.bytes);
  if (!largest || !largest.bytes) return [];
  if (largest.name !== "unknown") return [fact("Held mostly by", plainWords(largest.name), share(largest.bytes))];
  const line = (report.lines ?? []).find((row) => row.file);
  return line ? [fact("Held mostly by", lastPart(placeText(line.file, line.line)), share(line.bytes))] : [];
}

/** @param {AnyReport} report */
function facts(report) {
  const { peak } = report;
  if (!peak) return [];
  const rows = [
    fact(
      "Allocated at the peak",
      figure(peak.allocated_bytes, "peak.allocated_bytes"),
      whenText(peak.phase, peak.step) || "measured",
    ),
  ];
  rows.push(
    fact(
      "Reserved at most",
      figure(peak.reserved_bytes, "peak.reserved_bytes"),
      whenText(peak.reserved_phase, peak.reserved_step) || "tensors and cache",
    ),
  );
  rows.push(...holder(report, peak.allocated_bytes));
  const place = placeText(peak.file, peak.line);
  if (peak.operator || place)
    rows.push(fact("Raised by", peak.operator || lastPart(place), [peak.module, place].filter(Boolean).join(" · ")));
  if (report.deferred_frees) rows.push(streams(report.deferred_frees));
  if (report.need)
    rows.push(fact("Smallest GPU that fits", figure(report.need.bytes, "need.bytes"), NEED_KNOWN[report.need.known]));
  else if (report.floor_bytes)
    rows.push(fact("Smallest GPU that fits", figure(report.floor_bytes, "floor_bytes"), "by replay, context included"));
  return rows;
}

// How far the peak depends on when other streams are done with what was freed.
/** @param {Deferred} deferred */
function streams({ count, late, late_fits: fits }) {
  const value = fits ? figure(late.reserved_bytes, "deferred_frees.late.reserved_bytes") : "would not fit";
  const frees = count === 1 ? "1 free waits" : `${countText(count)} frees wait`;
  return fact("Reserved if streams are late", value, `${frees} for other streams; ${late.known}`);
}

// What is not PyTorch's, and how it is known.
/** @param {Peak} peak @param {Gpu} gpu */
function included(peak, gpu) {
  const others = peak.device_bytes - (peak.process_bytes ?? peak.device_bytes);
  const parts = [`context (${gpu.context_known})`];
  if (peak.nccl_bytes) parts.push(`NCCL's ${bytesText(peak.nccl_bytes)} (modelled)`);
  if (others > 0) parts.push(`${bytesText(others)} of other processes`);
  return parts.join(" and ");
}

// The bytes of a part of the ledger; 0 if it has none.
/** @param {Entry[]} ledger @param {string} name */
export function partOf(ledger, name) {
  return ledger.find((entry) => entry.name === name)?.bytes ?? 0;
}

// A run without a card has 16 TiB (`gpus::unlimited`): that is no card.
const ENDLESS = 2 ** 44;

// The card's memory; 0 if there was none, or the file does not tell.
/** @param {Entry[]} ledger */
export function cardOf(ledger) {
  const bytes = partOf(ledger, "card");
  return bytes < ENDLESS ? bytes : 0;
}

// The parts of the card at the shown moment: categories, then what PyTorch keeps, then the rest.
/** @param {AnyReport} report */
export function barParts(report) {
  const held = report.out_of_memory && report.out_of_memory.held;
  const ledger = (held ? held.ledger : report.peak_ledger) ?? [];
  const row = (/** @type {string} */ name) => partOf(ledger, name);
  /** @type {{ name: string, bytes: number, kind: string, colour?: string }[]} */
  const parts = (held ? held.categories : (report.categories ?? [])).map(({ name, bytes }) => ({
    name: plainWords(name),
    bytes,
    colour: categoryColour(name),
    kind: "",
  }));
  /** @type {[string, number, string][]} */
  const others = [
    ["waiting for a stream", row("waiting"), "waiting"],
    ["fragmentation", row("cached_fragments"), "cached"],
    ["cached segments", row("cached_segments"), "cached"],
    ["NCCL (modelled)", row("nccl"), "nccl"],
    ["other processes", row("others"), "others"],
    ["other programs", row("programs"), "others"],
    ["context", row("context"), "context"],
    ["free", cardOf(ledger) ? row("free") : 0, "free"],
  ];
  for (const [name, bytes, kind] of others) parts.push({ name, bytes, kind });
  return {
    parts: parts.filter((part) => part.bytes > 0),
    total: cardOf(ledger),
    when: held ? "when memory ran out" : "at the allocated peak",
  };
}

/** @param {AnyReport} report */
function bar(report) {
  const { parts, total, when } = barParts(report);
  const sum = parts.reduce((all, part) => all + part.bytes, 0);
  if (!sum) return [];
  const pieces = parts.map((part) =>
    make("div", {
      class: "part " + part.kind,
      title: `${part.name}: ${bytesText(part.bytes)}`,
      style: { flexGrow: String(part.bytes / sum), background: part.colour },
    }),
  );
  const legend = parts.map((part) =>
    make(
      "li",
      {},
      make("span", { class: "swatch " + part.kind, style: { background: part.colour } }),
      part.name + " ",
      make("b", { "data-part": part.name, "data-bytes": part.bytes }, bytesText(part.bytes)),
    ),
  );
  const whole = total ? `The card, ${bytesText(total)}` : "Reserved memory";
  return [
    make("div", { class: "bar-title" }, `${whole}, ${when}`),
    make("div", { class: "bar", role: "img", "aria-label": whole }, pieces),
    make("ul", { class: "legend" }, legend),
  ];
}

/** @param {AnyReport} report */
export function showSummary(report) {
  const [verdict, mood] = verdictOf(report);
  refill(
    byId("verdict"),
    make("span", { class: "mark " + mood, "aria-hidden": "true" }, { good: "✓", bad: "✕", plain: "●" }[mood]),
    verdict,
  );
  const warnings = (report.warnings ?? []).map((warning) => make("strong", {}, " " + sentence(warning)));
  refill(byId("reason"), [...reasonOf(report), ...warnings]);
  refill(byId("facts"), facts(report));
  refill(byId("bar"), bar(report));
  refill(
    byId("notes"),
    (report.notes ?? []).map((note) => make("li", {}, note)),
  );
  byId("notes-section").hidden = !(report.notes ?? []).length;
  refill(byId("software"), softwareOf(report));
}

/** @param {AnyReport} report */
function softwareOf(report) {
  const { software } = report;
  const words = software
    ? [
        software.torch && `torch ${software.torch}`,
        software.cudnn && `cuDNN ${software.cudnn}`,
        software.python && `Python ${software.python}`,
        `workspaces ${software.workspaces === "mixed" ? "partly exact" : software.workspaces}`,
        `${report.steps} ${report.steps === 1 ? "step" : "steps"}`,
        `${report.wall_seconds.toFixed(1)} s`,
      ]
    : [report.torch && `torch ${report.torch}`, `device ${report.device}`, `${countText(report.events)} events`];
  return words.filter(Boolean).join(" · ");
}
