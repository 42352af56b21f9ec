// The moment as a flame graph, roots on top: widths are bytes, colours are the category that holds most of a node.

import { bytesText, fitText } from "./format.js";
import { inkOn, nodeColour } from "./colours.js";
import { emptyPaper } from "./treemap.js";

/** @import { Theme } from "./colours.js" */
/** @import { Context, Size } from "./dom.js" */
/** @import { IsMarked, Tile } from "./treemap.js" */
/** @import { TreeNode } from "./trees.js" */

// Pixels.
export const ROW = 22;
// Rows.
const DEEPEST = 40;

// How many rows a tree needs, at least as wide as can be seen.
/** @param {TreeNode} tree @param {number} least @returns {number} */
export function depthOf(tree, least) {
  const deepest = tree.list
    .filter((child) => child.bytes >= least)
    .reduce((most, child) => Math.max(most, depthOf(child, least)), 0);
  return Math.min(DEEPEST, 1 + deepest);
}

// Draws a tree; gives the flames that were drawn, the outer before the inner.
/** @param {Context} context @param {Size} size @param {TreeNode} tree @param {Theme} theme @param {IsMarked} marked */
export function drawFlame(context, size, tree, theme, marked) {
  /** @type {Tile[]} */
  const drawn = [];
  emptyPaper(context, size, theme);
  /** @param {TreeNode} node @param {number} x @param {number} depth @param {number} width */
  const place = (node, x, depth, width) => {
    if (width < 0.7 || depth >= DEEPEST) return;
    const box = { x, y: depth * ROW, width, height: ROW };
    drawn.push({ node, ...box });
    const colour = depth ? nodeColour(node) : "#9aa0a6";
    context.fillStyle = colour;
    context.fillRect(x, box.y, Math.max(0.5, width - 0.8), ROW - 1);
    if (marked && marked(node)) {
      context.strokeStyle = inkOn(colour);
      context.lineWidth = 2;
      context.strokeRect(x + 1, box.y + 1, Math.max(1, width - 3), ROW - 3);
    }
    if (width > 30) {
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = inkOn(colour);
      context.fillText(fitText(context, `${node.label}  ${bytesText(node.bytes)}`, width - 8), x + 4, box.y + ROW / 2);
    }
    let at = x;
    for (const child of node.list) {
      const part = (child.bytes / node.bytes) * width;
      place(child, at, depth + 1, part);
      at += part;
    }
  };
  if (tree.bytes > 0) place(tree, 0, 0, size.width);
  return drawn;
}
