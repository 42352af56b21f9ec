// The moment as a treemap: areas are bytes, colours are categories. The layout follows "Squarified Treemaps" (Bruls,
// Huizing, van Wijk, 2000): rows are filled as long as their tiles become squarer.

import { bytesText, fitText } from "./format.js";
import { inkOn, nodeColour } from "./colours.js";
import { ownParts } from "./trees.js";

/** @import { Theme } from "./colours.js" */
/** @import { Context, Size } from "./dom.js" */
/** @import { TreeNode } from "./trees.js" */
/** @typedef {{ x: number, y: number, width: number, height: number }} Box */
/** @typedef {TreeNode & { detail?: string }} Leaf */
/** @typedef {Box & { node: Leaf }} Tile */
/** @typedef {((node: TreeNode) => boolean) | null} IsMarked */

// The height of a node's title, and the least side of a tile that is drawn, in pixels.
const HEAD = 17;
const LEAST = 3;

// Tiles of values in a box; values are sorted, largest first.
/** @param {number[]} values @param {Box} box */
export function squarify(values, box) {
  /** @type {Box[]} */
  const tiles = [];
  let { x, y, width, height } = box;
  let rest = values.reduce((sum, value) => sum + value, 0);
  for (let at = 0; at < values.length;) {
    const side = Math.min(width, height),
      scale = (width * height) / rest;
    let end = at,
      sum = 0,
      worst = Infinity;
    while (end < values.length) {
      const next = sum + values[end] * scale;
      const thick = next / side;
      const aspect = Math.max((values[at] * scale) / thick / thick, (thick * thick) / (values[end] * scale));
      if (aspect > worst) break;
      [worst, sum, end] = [aspect, next, end + 1];
    }
    const thick = Math.min(sum / side, Math.max(width, height));
    let offset = 0;
    for (; at < end; at++) {
      const long = (values[at] * scale) / thick;
      tiles.push(
        width >= height
          ? { x, y: y + offset, width: thick, height: long }
          : { x: x + offset, y, width: long, height: thick },
      );
      offset += long;
      rest -= values[at];
    }
    if (width >= height) [x, width] = [x + thick, Math.max(1e-9, width - thick)];
    else [y, height] = [y + thick, Math.max(1e-9, height - thick)];
  }
  return tiles;
}

// Draws a tree; gives the tiles that were drawn, the outer before the inner.
/** @param {Context} context @param {Size} size @param {TreeNode} tree @param {Theme} theme @param {IsMarked} marked */
export function drawTreemap(context, size, tree, theme, marked) {
  /** @type {Tile[]} */
  const drawn = [];
  emptyPaper(context, size, theme);
  const total = tree.bytes;
  /** @param {TreeNode} outer @param {Box} box @param {number} depth */
  const place = (outer, box, depth) => {
    if (box.width < LEAST || box.height < LEAST) return;
    const node = depth ? innermost(outer) : outer;
    const parts = [...node.list, ...(node.isPart ? [] : ownParts(node))].sort((a, b) => b.bytes - a.bytes);
    const leaf = leafOf(node, parts);
    drawn.push({ node: leaf ?? node, ...box });
    if (leaf) return tile(context, box, leaf, nodeColour(node), total, marked);
    const hasHead = depth > 0 && box.height > HEAD * 2 && box.width > 40;
    if (depth > 0) frame(context, box, node, theme, hasHead, total);
    const inner = depth > 0 ? inside(box, hasHead ? HEAD : 2) : box;
    if (inner.width < LEAST || inner.height < LEAST) return tile(context, box, node, nodeColour(node), total, marked);
    const boxes = squarify(
      parts.map((part) => part.bytes),
      inner,
    );
    parts.forEach((part, index) => place(part, boxes[index], depth + 1));
  };
  if (total > 0) place(tree, { x: 0, y: 0, width: size.width, height: size.height }, 0);
  return drawn;
}

// A node that nothing is left to divide in, with the name of its only tensor; null if there is more.
/** @param {TreeNode} node @param {TreeNode[]} parts @returns {Leaf | null} */
function leafOf(node, parts) {
  if (!parts.length) return node;
  const [part] = parts;
  if (parts.length > 1 || !part.isPart || part.list.length > 1) return null;
  const [tensor] = part.list.length ? part.list : [part];
  return { ...node, detail: tensor.label };
}

// Clean paper, for texts that are centred on their line.
/** @param {Context} context @param {Size} size @param {Theme} theme */
export function emptyPaper(context, size, theme) {
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, size.width, size.height);
  context.textBaseline = "middle";
  context.textAlign = "left";
}

// The box within a frame, below its head.
/** @param {Box} box @param {number} head @returns {Box} */
function inside({ x, y, width, height }, head) {
  return { x: x + 2, y: y + head, width: width - 4, height: height - head - 2 };
}

// A module that only holds one other is shown as that one, with both names.
/** @param {TreeNode} node */
function innermost(node) {
  let inner = node,
    label = node.label;
  while (!inner.isPart && !inner.own && inner.list.length === 1) {
    [inner] = inner.list;
    label += " › " + inner.label;
  }
  return inner === node ? node : { ...inner, label };
}

/** @param {Context} context @param {Box} box @param {TreeNode} node @param {Theme} theme @param {boolean} hasHead
 *  @param {number} total */
function frame(context, box, node, theme, hasHead, total) {
  context.fillStyle = theme.wash;
  context.fillRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
  if (!hasHead) return;
  context.font = "600 11px system-ui, sans-serif";
  context.fillStyle = theme.ink;
  const text = fitText(context, node.label, box.width - 10);
  context.fillText(text, box.x + 5, box.y + HEAD / 2 + 1);
  const after = context.measureText(text).width + 14;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = theme.soft;
  const bytes = bytesText(node.bytes);
  if (node.bytes > total / 200 && context.measureText(bytes).width < box.width - after - 6)
    context.fillText(bytes, box.x + after - 4, box.y + HEAD / 2 + 1);
}

/** @param {Context} context @param {Box} box @param {Leaf} node @param {string} colour
 *  @param {number} total @param {IsMarked} marked */
function tile(context, box, node, colour, total, marked) {
  context.fillStyle = colour;
  context.fillRect(box.x + 0.5, box.y + 0.5, Math.max(0.5, box.width - 1), Math.max(0.5, box.height - 1));
  if (marked && marked(node)) {
    context.strokeStyle = inkOn(colour);
    context.lineWidth = 2;
    context.strokeRect(box.x + 2, box.y + 2, box.width - 4, box.height - 4);
  }
  if (box.width < 34 || box.height < 14) return;
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = inkOn(colour);
  context.fillText(fitText(context, node.label, box.width - 8), box.x + 5, box.y + 10);
  context.font = "11px system-ui, sans-serif";
  if (box.height > 30 && node.bytes > total / 1000)
    context.fillText(fitText(context, bytesText(node.bytes), box.width - 8), box.x + 5, box.y + 25);
  if (box.height > 46 && node.detail && node.detail !== node.label)
    context.fillText(fitText(context, node.detail, box.width - 8), box.x + 5, box.y + 40);
}
