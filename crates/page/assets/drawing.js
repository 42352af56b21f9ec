// A context that writes down what is drawn, as SVG: it knows what the views of a page use of a canvas's context.

/** @import { Context } from "./dom.js" */

const ANCHORS = { left: "start", start: "start", center: "middle", right: "end", end: "end" };

/** @param {string} text */
export function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

export class Drawing {
  // Texts are measured by a context of a canvas.
  /** @param {Context} measuring */
  constructor(measuring) {
    this.measuring = measuring;
    /** @type {string[]} */
    this.parts = [];
    this.path = "";
    this.fillStyle = /** @type {string | CanvasPattern | CanvasGradient} */ ("#000");
    this.strokeStyle = /** @type {string | CanvasPattern | CanvasGradient} */ ("#000");
    this.globalAlpha = 1;
    this.lineWidth = 1;
    this.lineJoin = "miter";
    this.font = "12px system-ui, sans-serif";
    this.textAlign = /** @type {keyof typeof ANCHORS} */ ("left");
    this.textBaseline = "alphabetic";
    /** @type {number[]} */
    this.dash = [];
  }

  // A pattern has no form of its own here: it becomes a thin wash.
  paint() {
    return typeof this.fillStyle === "string" ? `fill="${this.fillStyle}"` : 'fill="#888" fill-opacity="0.25"';
  }

  alpha() {
    return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
  }

  strokes() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    return `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}${this.alpha()}`;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  fillRect(x, y, width, height) {
    this.parts.push(`<rect ${box(x, y, width, height)} ${this.paint()}${this.alpha()}/>`);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  strokeRect(x, y, width, height) {
    this.parts.push(`<rect ${box(x, y, width, height)} ${this.strokes()}/>`);
  }

  beginPath() {
    this.path = "";
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.path += `${this.path ? "L" : "M"}${short(x)} ${short(y)}`;
  }

  // Whole circles are all that is drawn.
  /** @param {number} x @param {number} y @param {number} radius */
  arc(x, y, radius) {
    const [left, right] = [`${short(x - radius)} ${short(y)}`, `${short(x + radius)} ${short(y)}`];
    this.path += `M${left}A${radius} ${radius} 0 0 1 ${right}A${radius} ${radius} 0 0 1 ${left}`;
  }

  closePath() {
    this.path += "Z";
  }

  stroke() {
    if (this.path) this.parts.push(`<path d="${this.path}" ${this.strokes()}/>`);
  }

  fill() {
    if (this.path) this.parts.push(`<path d="${this.path}" ${this.paint()}${this.alpha()}/>`);
  }

  /** @param {number[]} dash */
  setLineDash(dash) {
    this.dash = dash;
  }

  /** @param {string} text */
  measureText(text) {
    this.measuring.font = this.font;
    return this.measuring.measureText(text);
  }

  /** @param {string} text @param {number} x @param {number} y @param {string} paint */
  text(text, x, y, paint) {
    const [, weight, size] = /^(?:(\d+) )?(\d+)px/.exec(this.font) ?? [];
    // Some programs that read SVG know no baselines: the middle is put there by hand.
    const down = this.textBaseline === "middle" ? Number(size) * 0.35 : this.textBaseline === "top" ? Number(size) * 0.85 : 0;
    const bold = weight ? ` font-weight="${weight}"` : "";
    const face = `font-size="${size}"${bold} text-anchor="${ANCHORS[this.textAlign]}"`;
    this.parts.push(`<text x="${short(x)}" y="${short(y + down)}" ${face} ${paint}${this.alpha()}>${escaped(text)}</text>`);
  }

  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    this.text(text, x, y, this.paint());
  }

  /** @param {string} text @param {number} x @param {number} y */
  strokeText(text, x, y) {
    this.text(text, x, y, `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-linejoin="round"`);
  }
}

/** @param {number} number */
function short(number) {
  return String(Math.round(number * 100) / 100);
}

/** @param {number} x @param {number} y @param {number} width @param {number} height */
function box(x, y, width, height) {
  return `x="${short(x)}" y="${short(y)}" width="${short(Math.max(0, width))}" height="${short(Math.max(0, height))}"`;
}
