// Root causes with their evidence: what they cost, why, and what helps. Evidence that names a module, a line, an
// operator or a tensor can be marked in the timeline.

import { byId, make, refill } from "./dom.js";
import { bytesText, countText, placeText, plainWords, tensorText } from "./format.js";

/** @import { AnyReport } from "../types/either" */
/** @import { Finding } from "../types" */
/** @import { State } from "./state.js" */

// Reports may have been changed by hand: evidence and remedies can be anything.
/** @typedef {Record<string, any>} Fields */

const MARKABLE = ["module", "operator", "category", "name"];

// What a piece of evidence marks; empty if it names nothing that is drawn.
/** @param {unknown} piece */
export function evidenceMark(piece) {
  if (!piece || typeof piece !== "object") return "";
  const evidence = /** @type {Fields} */ (piece);
  const words = MARKABLE.filter((name) => typeof evidence[name] === "string" && evidence[name]).map(
    (name) => `${name}:${evidence[name]}`,
  );
  if (tensorText(evidence)) words.push("tensor:" + tensorText(evidence));
  if (evidence.file)
    words.push(evidence.line ? "line:" + placeText(evidence.file, evidence.line) : "file:" + evidence.file);
  return words.join("\n");
}

// Fields that are sentences of their own: they come first, without their names.
const SAID = ["change", "title", "text", "what", "explanation", "label"];

// Any value in words: texts as they are, objects as `name value` pairs, bytes in units.
/** @param {unknown} value @returns {string} */
export function valueText(value, name = "") {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" && /bytes/.test(name)) return bytesText(value);
  if (Array.isArray(value))
    return value
      .map((part) => valueText(part, name))
      .filter(Boolean)
      .join(", ");
  if (typeof value !== "object") return String(value);
  // An id is for programs: it is left out.
  const { bytes, count, dtype, shape, file, line, id: _, ...rest } = /** @type {Fields} */ (value);
  const first = [
    bytes === undefined ? "" : bytesText(bytes),
    count > 1 ? `${countText(count)} ×` : "",
    tensorText({ dtype, shape }),
  ]
    .filter(Boolean)
    .join(" ");
  const said = SAID.map((key) => valueText(rest[key], key));
  const pairs = Object.entries(rest)
    .filter(([key]) => !SAID.includes(key))
    .map(([key, part]) => {
      const text = valueText(part, key);
      return text && `${plainWords(key.replace(/_?bytes$/, ""))} ${text}`.trim();
    });
  return [first, ...said, ...pairs, placeText(file, line)].filter(Boolean).join(" · ");
}

/** @param {AnyReport} report @param {State} state */
export function showFindings(report, state) {
  const findings = report.findings ?? [];
  byId("findings").hidden = !findings.length;
  refill(
    byId("findings-list"),
    findings.map((finding) => findingArticle(finding, state)),
  );
}

// Title and bytes, the largest first; evidence and remedies unfold.
/** @param {Finding} finding @param {State} state */
function findingArticle(finding, state) {
  const evidence = [finding.evidence ?? []].flat().map((piece) => {
    const mark = evidenceMark(piece);
    return make(
      "li",
      {},
      valueText(piece) + " ",
      mark
        ? make(
            "button",
            { type: "button", "data-mark": mark, onclick: () => showMark(state, mark) },
            "show in the timeline",
          )
        : "",
    );
  });
  const remedies = [finding.remedies ?? []].flat().map((remedy) => make("li", {}, valueText(remedy)));
  const size = finding.bytes
    ? make(
        "b",
        { class: "bytes", "data-bytes": finding.bytes },
        bytesText(finding.bytes) + (finding.of === "reserved" ? " reserved" : ""),
      )
    : "";
  const grows = [
    finding.note && !finding.explanation.includes(finding.note) && `${finding.note}.`,
    finding.scales && `Grows with ${finding.scales}.`,
    finding.counted === false && "Another finding counts these bytes too.",
  ]
    .filter(Boolean)
    .join(" ");
  return make(
    "details",
    { class: "finding", "data-finding": finding.id },
    make("summary", {}, make("h3", {}, finding.title ?? finding.id, size)),
    finding.explanation ? make("p", {}, valueText(finding.explanation)) : "",
    grows ? make("p", { class: "note" }, grows) : "",
    evidence.length ? make("div", {}, make("h4", {}, "Evidence"), make("ul", {}, evidence)) : "",
    remedies.length ? make("div", {}, make("h4", {}, "What may help"), make("ul", {}, remedies)) : "",
  );
}

/** @param {State} state @param {string} mark */
function showMark(state, mark) {
  state.set({ mark });
  byId("timeline").scrollIntoView({ block: "start" });
}
