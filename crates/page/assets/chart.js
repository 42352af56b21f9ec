// Charts of few points as SVG, drawn as wide as their place: texts keep their size on a phone.

import { make } from "./dom.js";
import { axisSteps, axisText } from "./format.js";

// A level across the plot, with a name: what a card has.
/** @typedef {{ bytes: number, name: string }} Level */
// Where a text stands: its left end and its base line.
/** @typedef {{ x: number, y: number, width: number }} TextBox */
// Places of a plot: texts around it, x of a value and y of bytes, and where texts are already.
/**
 * @typedef {object} Plot
 * @property {number} left
 * @property {number} right
 * @property {number} floor
 * @property {(value: number) => number} x
 * @property {(bytes: number) => number} y
 * @property {TextBox[]} texts
 */
/**
 * @typedef {object} Frame
 * @property {string} label
 * @property {number[]} values
 * @property {number} top
 * @property {Level[]} levels
 * @property {string} under
 * @property {[number, string][]} ticks
 * @property {[number, number][]} points values with their bytes, which the names of levels leave free
 */

const CHART_HEIGHT = 300,
  CHART_HEAD = 16,
  CHART_FOOT = 44;

/** @param {string} tag @param {Record<string, string | number>} attributes @param {string} [text] */
export function svg(tag, attributes, text) {
  // The name of a namespace, not an address: nothing is fetched.
  const element = document.createElementNS("http" + "://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

// A chart that is drawn again when its place changes.
/** @param {(width: number) => Element} draw */
export function fitted(draw) {
  const box = make("div", { class: "chart" });
  let drawn = 0;
  const observer = new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (!width || width === drawn) return;
    drawn = width;
    box.replaceChildren(draw(width));
  });
  observer.observe(box);
  return box;
}

// The axes and the levels; what is drawn on them is the caller's.
/** @param {number} width @param {Frame} frame @returns {{ picture: Element, plot: Plot }} */
export function framed(width, { label, values, top, levels, under, ticks, points }) {
  const plot = plotOf(width, values, top);
  const { left, right, floor, x, y } = plot;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${CHART_HEIGHT}`, width, height: CHART_HEIGHT, class: "curves" });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", label);
  const line = (/** @type {number} */ bytes, /** @type {string} */ kind) =>
    svg("line", { x1: left, x2: right, y1: y(bytes), y2: y(bytes), class: kind });
  for (const bytes of axisSteps(top, 6))
    picture.append(
      line(bytes, "grid"),
      svg("text", { x: left - 8, y: y(bytes) + 4, "text-anchor": "end" }, axisText(bytes, top)),
    );
  let last = -Infinity;
  for (const [value, text] of ticks) {
    // Texts that would touch are left out.
    const half = 4 * text.length;
    if (x(value) - half < last) continue;
    last = x(value) + half + 4;
    picture.append(svg("text", { x: x(value), y: floor + 18, "text-anchor": "middle" }, text));
  }
  picture.append(svg("text", { x: (left + right) / 2, y: floor + 36, "text-anchor": "middle" }, under));
  drawLevels(picture, plot, levels, points, line);
  return { picture, plot };
}

/** @param {number} width @param {number[]} values @param {number} top @returns {Plot} */
function plotOf(width, values, top) {
  const left = 64,
    right = width - 24,
    floor = CHART_HEIGHT - CHART_FOOT;
  const least = Math.min(...values),
    span = Math.max(...values) - least || 1;
  const x = (/** @type {number} */ value) => left + 14 + ((right - left - 28) * (value - least)) / span;
  const y = (/** @type {number} */ bytes) => floor - ((floor - CHART_HEAD) * bytes) / top;
  return { left, right, floor, x, y, texts: [] };
}

// Names stand on their lines at the right, or further left where a point would lie on them; of those that would touch,
// the upper moves up.
/** @param {Element} picture @param {Plot} plot @param {Level[]} levels @param {[number, number][]} points
 *  @param {(bytes: number, kind: string) => Element} line */
function drawLevels(picture, { left, right, x, y, texts }, levels, points, line) {
  let lowest = Infinity;
  for (const { bytes, name } of levels.toSorted((a, b) => a.bytes - b.bytes)) {
    const base = Math.min(y(bytes) - 5, lowest - 15);
    lowest = base;
    const width = 7.5 * name.length,
      at = Math.max(11, base);
    const isFree = (/** @type {number} */ end) =>
      points.every(([value, high]) => x(value) < end - width - 9 || end + 9 < x(value) || 18 < Math.abs(y(high) - at + 4));
    const ends = [right, right - 40, (left + right + width) / 2, left + width + 40];
    const end = ends.find(isFree) ?? right;
    texts.push({ x: end - width, y: at, width });
    picture.append(line(bytes, "limit"), svg("text", { x: end, y: at, "text-anchor": "end", class: "level" }, name));
  }
}
