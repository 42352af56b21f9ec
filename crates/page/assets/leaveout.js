// What may be left out of a recording: a category, a module, a cause, or what is hatched; and which lives that is.

import { bandsAt } from "./bands.js";
import { markedKinds, markText } from "./details.js";
import { evidenceMark } from "./findings.js";

/** @import { AnyReport } from "../types/either" */
/** @import { Story } from "./story.js" */

// Several are apart by an empty line: marks have lines of their own.
const BETWEEN = "\n\n";
// `cause:ID` stands for all marks of its evidence.
const CAUSE = "cause:";

/** @param {string} words */
export function namesIn(words) {
  return words ? words.split(BETWEEN) : [];
}

/** @param {string[]} names */
export function asWords(names) {
  return [...new Set(names)].join(BETWEEN);
}

/** @param {AnyReport} report @param {string} name */
function marksOf(report, name) {
  if (!name.startsWith(CAUSE)) return [name];
  const finding = (report.findings ?? []).find(({ id }) => CAUSE + id === name);
  return [finding?.evidence ?? []].flat().map(evidenceMark).filter(Boolean);
}

/** @param {AnyReport} report @param {string} name */
export function nameText(report, name) {
  const finding = (report.findings ?? []).find(({ id }) => CAUSE + id === name);
  return finding ? (finding.title ?? finding.id) : markText(name);
}

// One for each life: 1 if any of these names means it.
/** @param {Story} story @param {AnyReport} report @param {string[]} names */
export function livesOf(story, report, names) {
  const lives = new Uint8Array(story.count);
  for (const mark of names.flatMap((name) => marksOf(report, name))) {
    const kinds = markedKinds(story, mark);
    for (let life = 0; life < story.count; life++) lives[life] |= kinds[story.kind[life]];
  }
  return lives;
}

// A bit for each life, the lowest first.
/** @param {Uint8Array} lives */
export function bitsOf(lives) {
  const bits = new Uint8Array((lives.length + 7) >> 3);
  for (let life = 0; life < lives.length; life++) bits[life >> 3] |= lives[life] << (life & 7);
  return bits;
}

// Groups of the menu, each with names that hold something at the peak, the largest first.
/** @param {Story} story @param {AnyReport} report @returns {[string, string[]][]} */
export function offered(story, report) {
  const peak = story.header.peak_tick;
  const ofBands = (/** @type {"category" | "module"} */ by, /** @type {(band: number, all: number) => boolean} */ has) => {
    const groups = story.groups(by),
      bytes = bandsAt(story, by, peak);
    const bands = groups.map((_, band) => band).filter((band) => bytes[band] > 0 && has(band, groups.length));
    return bands.sort((a, b) => bytes[b] - bytes[a]).map((band) => `${by}:${groups[band]}`);
  };
  const rounding = story.groups("category").indexOf("rounding");
  const causes = (report.findings ?? []).map(({ id }) => CAUSE + id);
  return [
    ["Causes", causes.filter((name) => marksOf(report, name).length)],
    ["Categories", ofBands("category", (band) => band !== rounding)],
    // The first and the last band are what has no module, and all others.
    ["Modules", ofBands("module", (band, all) => band > 0 && band < all - 1)],
  ];
}
