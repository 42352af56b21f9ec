// Colours that people with any colour vision tell apart: the set of Masataka Okabe and Kei Ito, "Color Universal
// Design" (2002, revised 2008; jfly.uni-koeln.de/color). Their darker shades and greys follow where there are more
// bands than colours. Each band has its name beside it: no meaning hangs on colour alone.

import { byId } from "./dom.js";

export const OKABE_ITO = {
  orange: "#e69f00",
  sky: "#56b4e9",
  green: "#009e73",
  yellow: "#f0e442",
  blue: "#0072b2",
  vermilion: "#d55e00",
  purple: "#cc79a7",
};
const { orange, sky, green, yellow, blue, vermilion, purple } = OKABE_ITO;

/** @type {Record<string, string>} */
const OF_CATEGORY = {
  weights: blue,
  gradients: sky,
  optimizer: green,
  activations: orange,
  "kv cache": "#a0522d",
  inputs: yellow,
  buffers: purple,
  "model copies": "#7f4a68",
  "unsharded weights": "#004a73",
  communication: "#8f6300",
  casts: "#005f46",
  temporaries: vermilion,
  workspace: "#8c8c8c",
  rounding: "#bdbdbd",
  unknown: "#6e7681",
};

// For bands without a meaning of their own; the first and the last are for what is left.
const IN_ORDER = [blue, orange, green, sky, vermilion, purple, yellow, "#004a73", "#8f6300", "#00664b"];

/** @param {string} name @param {string[]} groups */
export function bandColours(name, groups) {
  if (name === "category") return groups.map(categoryColour);
  return groups.map((_, index) => {
    if (index === 0) return "#9aa0a6";
    if (index === groups.length - 1 && name !== "phase") return "#c4c7cb";
    return IN_ORDER[(index - 1) % IN_ORDER.length];
  });
}

/** @param {string} name */
export function categoryColour(name) {
  return OF_CATEGORY[String(name).replaceAll("_", " ")] ?? "#6e7681";
}

// A node of a tree: by its category, or by its branch where nobody named anything.
/** @param {{ category: string, branch?: number }} node */
export function nodeColour(node) {
  if (node.category !== "unknown" || node.branch === undefined) return categoryColour(node.category);
  return IN_ORDER[node.branch % IN_ORDER.length];
}

// Black or white, whichever is read better on a colour (the W3C's relative luminance).
/** @param {string} colour */
export function inkOn(colour) {
  const part = (/** @type {number} */ at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return luminance > 0.18 ? "#111" : "#fff";
}

// The theme's own colours, for drawing.
/** @typedef {ReturnType<typeof themeColours>} Theme */
export function themeColours() {
  const probe = byId("probe");
  const read = (/** @type {string} */ name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  return {
    paper: read("paper"),
    ink: read("ink"),
    soft: read("soft"),
    line: read("line"),
    wash: read("wash"),
    alarm: read("alarm"),
  };
}
