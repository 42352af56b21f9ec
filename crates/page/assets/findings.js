// Root causes with their evidence: what they cost, why, and what helps. Evidence that names a module, a line, an operator
// or a category can be marked in the timeline.

import { byId, make, refill } from "./dom.js";
import { bytesText, placeText, plainWords } from "./format.js";

const MARKABLE = ["module", "operator", "category", "name"];

// What a piece of evidence marks; empty if it names nothing that is drawn.
export function evidenceMark(evidence) {
  if (!evidence || typeof evidence !== "object") return "";
  const words = MARKABLE.filter((name) => typeof evidence[name] === "string" && evidence[name]).map((name) => `${name}:${evidence[name]}`);
  if (evidence.file) words.push(evidence.line ? "line:" + placeText(evidence.file, evidence.line) : "file:" + evidence.file);
  return words.join("\n");
}

// Any value in words: texts as they are, objects as `name value` pairs, bytes in units.
export function valueText(value, name) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" && /bytes/.test(name ?? "")) return bytesText(value);
  if (Array.isArray(value)) return value.map((part) => valueText(part, name)).filter(Boolean).join(", ");
  if (typeof value !== "object") return String(value);
  const rest = { ...value };
  const place = placeText(rest.file, rest.line);
  delete rest.file;
  delete rest.line;
  // What is said in words comes first, without the name of its field.
  const isSaid = (key) => ["text", "title", "label", "what", "explanation"].includes(key);
  const entries = Object.entries(rest).sort(([a], [b]) => isSaid(b) - isSaid(a));
  const pairs = entries.map(([key, part]) => {
    const text = valueText(part, key);
    return text && (isSaid(key) ? text : `${plainWords(key.replace(/_?bytes$/, ""))} ${text}`.trim());
  });
  return [...pairs, place].filter(Boolean).join(" · ");
}

export function showFindings(report, state) {
  const findings = report.findings ?? [];
  byId("findings").hidden = !findings.length;
  refill(byId("findings-list"), findings.map((finding) => one(finding, state)));
}

function one(finding, state) {
  const evidence = [finding.evidence ?? []].flat().map((piece) => {
    const mark = evidenceMark(piece), text = valueText(piece);
    return make("li", {}, text + " ", mark ? make("button", { type: "button", "data-mark": mark, onclick: () => showMark(state, mark) }, "show in the timeline") : "");
  });
  const remedies = [finding.remedies ?? []].flat().map((remedy) => make("li", {}, valueText(remedy)));
  return make("article", { class: "finding", "data-finding": finding.id },
    make("h3", {}, finding.title ?? finding.id, finding.bytes ? make("b", { class: "bytes", "data-bytes": finding.bytes }, bytesText(finding.bytes)) : ""),
    finding.explanation ? make("p", {}, valueText(finding.explanation)) : "",
    evidence.length ? make("details", { open: true }, make("summary", {}, "Evidence"), make("ul", {}, evidence)) : "",
    remedies.length ? make("div", {}, make("h4", {}, "What helps"), make("ul", {}, remedies)) : "");
}

function showMark(state, mark) {
  state.set({ mark });
  byId("timeline").scrollIntoView({ block: "start" });
}
