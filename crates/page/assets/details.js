// What is known of one allocation, in lines.

import { bytesText, countText } from "./format.js";
import { NEVER } from "./story.js";

/** @import { About, Story } from "./story.js" */

/** @param {Story} story @param {number} life */
export function detailsOf(story, life) {
  const about = story.about(story.kind[life]);
  const asked = story.asked[life],
    rounding = story.block[life] - asked;
  const birth = story.born[life] ? story.whenAt(story.born[life]) || "made" : "made before the recording";
  const end = story.freed[life] === NEVER ? "never freed" : `freed at ${countText(story.freed[life])}`;
  return [
    [bytesText(asked), about.tensor].filter(Boolean).join("  ") +
      (rounding ? ` + ${bytesText(rounding)} rounding` : ""),
    [about.category, about.name].filter(Boolean).join(": "),
    about.module && "module " + about.module,
    about.operator && "operator " + about.operator,
    about.place && "line " + about.place,
    about.holder && "held by " + about.holder,
    `${birth}, at ${countText(story.born[life])}, ${end}`,
  ].filter(Boolean);
}

// `module:encoder.fc`, `line:train.py:12`, `operator:…`, `category:…`, `name:…`: which kinds of a story it means. A
// module means what is below it too; several lines are conditions that all hold.
/** @param {Story} story @param {string} mark */
export function markedKinds(story, mark) {
  const count = story.columns["kind.module"].length;
  const marked = new Uint8Array(count);
  const conditions = mark
    .split("\n")
    .map((word) => [word.slice(0, word.indexOf(":")), word.slice(word.indexOf(":") + 1)]);
  for (let kind = 0; kind < count; kind++) {
    const about = story.about(kind);
    marked[kind] = conditions.every(([field, wanted]) => matches(story, kind, about, field, wanted)) ? 1 : 0;
  }
  return marked;
}

/** @param {Story} story @param {number} kind @param {About} about @param {string} field @param {string} wanted */
function matches(story, kind, about, field, wanted) {
  if (field === "module") return isModule(about.module, wanted);
  if (field === "line") return about.place === wanted || callsThrough(story, kind, wanted);
  if (field === "file") return about.file === wanted || about.file.endsWith("/" + wanted);
  if (field === "category") return about.category === wanted.replaceAll("_", " ");
  return field in about && String(about[/** @type {keyof About} */ (field)]) === wanted;
}

// A module, or one below it. `layers.{0-11}.attn` is any of them, and `attn …` stands for several of no common name.
/** @param {string} path @param {string} wanted */
export function isModule(path, wanted) {
  if (wanted.endsWith(" …")) return true;
  if (wanted === "" || !/\{[\d,…-]+\}/.test(wanted))
    return path === wanted || (wanted !== "" && path.startsWith(wanted + "."));
  const parts = wanted.split("."),
    own = path.split(".");
  return parts.every((part, index) =>
    /^\{[\d,…-]+\}$/.test(part) ? /^\d+$/.test(own[index] ?? "") : part === own[index],
  );
}

/** @param {Story} story @param {number} kind @param {string} wanted */
function callsThrough(story, kind, wanted) {
  return story.placesOf(kind).some((row) => story.lineText(row) === wanted);
}

// `module encoder.fc` for people.
/** @param {string} mark */
export function markText(mark) {
  return mark
    .split("\n")
    .map((word) => word.replace(":", " "))
    .join(", ");
}
