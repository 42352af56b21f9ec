// Views as files: a picture as PNG or SVG with its title and its legend, a selection as text.

import { byId, drawnInto, make, refill } from "./dom.js";
import { fitText } from "./format.js";
import { themeColours } from "./colours.js";
import { Drawing } from "./drawing.js";

/** @import { Theme } from "./colours.js" */
/** @import { Context } from "./dom.js" */

const MARGIN = 20,
  TITLE = 64,
  LINE = 20;

// What is around a view.
/** @typedef {{ title: string, note: string, rows: { colour: string, text: string }[], theme: Theme }} Around */
/** @typedef {{ name: string, canvas: HTMLCanvasElement, legend: Element, redraw: () => void }} View */

/** @param {View} view */
export function saveButtons({ name, canvas, legend, redraw }) {
  const around = () => aroundOf(legend);
  const svg = () => offer(`${name}.svg`, new Blob([svgOf(canvas, redraw, around())], { type: "image/svg+xml" }));
  const png = () => pngOf(canvas, around()).toBlob((blob) => blob && offer(`${name}.png`, blob));
  return make(
    "span",
    { class: "choices", role: "group", "aria-label": "save this picture" },
    make("button", { type: "button", "data-save": `${name}.png`, title: "save this picture", onclick: png }, "PNG"),
    make("button", { type: "button", "data-save": `${name}.svg`, title: "save this picture", onclick: svg }, "SVG"),
  );
}

/** @param {string} name @param {Blob} blob */
export function offer(name, blob) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

// The verdict, and what colours mean.
/** @param {Element} legend @returns {Around} */
function aroundOf(legend) {
  const rows = [...legend.querySelectorAll("li")].map((row) => {
    const swatch = row.querySelector(".swatch");
    const colour = swatch ? getComputedStyle(swatch).backgroundColor : "";
    return { colour, text: row.textContent?.trim() ?? "" };
  });
  const said = byId("what-if").hidden ? byId("verdict") : byId("what-if-verdict");
  const title = said.textContent?.replace(/^[✓✕●]\s*/u, "") ?? "";
  const note = byId("what-if").hidden ? byId("reason") : byId("what-if-note");
  const why = note.querySelector(".why");
  const text = why ? (note.textContent ?? "").replace(why.textContent ?? "", "") : note.textContent;
  return { title, note: (text ?? "").trim(), rows, theme: themeColours() };
}

// Title, note and legend around a picture; gives how high all of it is. It draws on both kinds of contexts.
/** @param {Context} context @param {Around} around @param {number} width @param {number} height */
function drawAround(context, { title, note, rows, theme }, width, height) {
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.font = "650 20px system-ui, sans-serif";
  context.fillStyle = theme.ink;
  context.fillText(fitText(context, title, width), MARGIN, 34);
  context.font = "13px system-ui, sans-serif";
  context.fillStyle = theme.soft;
  context.fillText(fitText(context, note, width), MARGIN, 54);
  let x = MARGIN,
    y = TITLE + height + 24;
  for (const { colour, text } of rows) {
    const wide = context.measureText(text).width + 38;
    if (x > MARGIN && x + wide > MARGIN + width) [x, y] = [MARGIN, y + LINE];
    context.fillStyle = colour || theme.soft;
    context.fillRect(x, y - 10, 11, 11);
    context.fillStyle = theme.soft;
    context.fillText(text, x + 17, y);
    x += wide;
  }
  return y + MARGIN;
}

/** @param {HTMLCanvasElement} canvas */
function sizeOf(canvas) {
  return { width: parseFloat(canvas.style.width), height: parseFloat(canvas.style.height) };
}

/** @param {HTMLCanvasElement} canvas @param {() => void} redraw @param {Around} around */
function svgOf(canvas, redraw, around) {
  const { width, height } = sizeOf(canvas);
  const measuring = /** @type {Context} */ (make("canvas", {}).getContext("2d"));
  const frame = new Drawing(measuring),
    view = new Drawing(measuring);
  const high = drawAround(/** @type {any} */ (frame), around, width, height);
  drawnInto(canvas, /** @type {any} */ (view), redraw);
  const wide = width + 2 * MARGIN;
  return [
    // The name of a namespace, not an address.
    `<svg xmlns="${"http" + "://www.w3.org/2000/svg"}" viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" font-family="system-ui, sans-serif">`,
    `<rect width="${wide}" height="${high}" fill="${around.theme.paper}"/>`,
    ...frame.parts,
    `<g transform="translate(${MARGIN} ${TITLE})">`,
    ...view.parts,
    "</g></svg>\n",
  ].join("\n");
}

/** @param {HTMLCanvasElement} canvas @param {Around} around */
function pngOf(canvas, around) {
  const { width, height } = sizeOf(canvas);
  // As sharp on any screen as on paper.
  const scale = Math.max(2, canvas.width / width);
  const whole = make("canvas", {});
  const draft = /** @type {Context} */ (make("canvas", {}).getContext("2d"));
  const high = drawAround(draft, around, width, height);
  [whole.width, whole.height] = [Math.round((width + 2 * MARGIN) * scale), Math.round(high * scale)];
  const context = /** @type {Context} */ (whole.getContext("2d"));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = around.theme.paper;
  context.fillRect(0, 0, whole.width, whole.height);
  drawAround(context, around, width, height);
  context.drawImage(canvas, MARGIN, TITLE, width, height);
  return whole;
}

// Buttons for the views of a recording.
/** @param {View[]} views */
export function showSaving(views) {
  for (const view of views) refill(byId(/** @type {any} */ (`${view.name}-save`)), saveButtons(view));
}
