// What is alive at a moment as a tree: by module, or by the lines of source that led to it. The leaves are categories.

import { lastPart } from "./format.js";

/** @import { About, Story } from "./story.js" */

// A module, a line, or what one of them holds itself of a category (`isPart`). `own` is without what is below it;
// `category` is the one that holds most of it, `parts` has the bytes of all.
/**
 * @typedef {object} TreeNode
 * @property {string} label
 * @property {string} path
 * @property {string} mark
 * @property {number} bytes
 * @property {number} count
 * @property {number} own
 * @property {Map<string | number, TreeNode>} children
 * @property {TreeNode[]} list
 * @property {string} category
 * @property {Map<string, number>} parts
 * @property {Map<string, TreeNode>} tensors
 * @property {number} [branch]
 * @property {boolean} isPart
 */

/** @param {string} label @param {string} path @param {string} mark @returns {TreeNode} */
function emptyNode(label, path, mark) {
  const sums = { bytes: 0, count: 0, own: 0, category: "", parts: new Map(), tensors: new Map() };
  return { label, path, mark, ...sums, children: new Map(), list: [], isPart: false };
}

// The child of a key, made if it is not there yet.
/** @param {TreeNode} parent @param {string | number} key @param {string} label @param {string} path
 *  @param {string} mark */
function below(parent, key, label, path, mark) {
  let child = parent.children.get(key);
  if (!child) {
    child = emptyNode(label, path, mark);
    parent.children.set(key, child);
  }
  return child;
}

// Bytes and counts of the kinds that are alive at a tick.
/** @param {Story} story @param {number} tick */
export function aliveKinds(story, tick) {
  /** @type {Map<number, { kind: number, bytes: number, count: number }>} */
  const rows = new Map();
  story.forAlive(tick, (life) => {
    const kind = story.kind[life];
    const row = rows.get(kind) ?? { kind, bytes: 0, count: 0 };
    row.bytes += story.block[life];
    row.count++;
    rows.set(kind, row);
  });
  return [...rows.values()];
}

// `classes` has the class of each module's path.
/** @param {Story} story @param {number} tick @param {"module" | "line"} by @param {Map<string, string>} classes */
export function treeAt(story, tick, by, classes) {
  const root = emptyNode(by === "line" ? "all lines" : "all modules", "", "");
  for (const { kind, bytes, count } of aliveKinds(story, tick)) {
    const about = story.about(kind);
    const lineage = by === "line" ? lineLineage(story, root, kind) : moduleLineage(root, about.module, classes);
    for (const part of lineage) {
      part.bytes += bytes;
      part.count += count;
      part.parts.set(about.category, (part.parts.get(about.category) ?? 0) + bytes);
    }
    const last = lineage[lineage.length - 1];
    last.own += bytes;
    addTensor(last, about, bytes, count);
  }
  finish(root);
  root.list.forEach((child, index) => numberBranch(child, index));
  return root;
}

// What a node holds itself, tensor by tensor: those of one category, name and shape are one.
/** @param {TreeNode} node @param {About} about @param {number} bytes @param {number} count */
function addTensor(node, { category, name, tensor }, bytes, count) {
  const key = [category, name, tensor].join("\n");
  let one = node.tensors.get(key);
  if (!one) {
    const words = [node.mark, "category:" + category, name && "name:" + name, tensor && "tensor:" + tensor];
    one = emptyNode([name, tensor].filter(Boolean).join(" "), node.path, words.filter(Boolean).join("\n"));
    Object.assign(one, { category, isPart: true });
    node.tensors.set(key, one);
  }
  one.bytes += bytes;
  one.count += count;
  one.parts.set(category, one.bytes);
}

// As deep as any model; what is deeper counts as one level, as in the report.
const DEEPEST_MODULE = 64;

// The modules from the top down to a path.
/** @param {TreeNode} root @param {string} path @param {Map<string, string>} classes */
function moduleLineage(root, path, classes) {
  if (!path) return [root, below(root, "", "no module", "?", "module:")];
  const line = [root];
  for (let at = 0, end = 0; end < path.length; at = end + 1) {
    end = line.length > DEEPEST_MODULE ? -1 : path.indexOf(".", at);
    if (end < 0) end = path.length;
    const whole = path.slice(0, end);
    const label = [path.slice(at, end), classes.get(whole)].filter(Boolean).join(" ");
    line.push(below(line[line.length - 1], path.slice(at, end), label, whole, "module:" + whole));
  }
  return line;
}

// The user's lines from the outermost call down.
/** @param {Story} story @param {TreeNode} root @param {number} kind */
function lineLineage(story, root, kind) {
  const rows = story.placesOf(kind);
  if (!rows.length) return [root, below(root, "", "no line", "?", "line:")];
  const nodes = [root];
  for (const row of rows.reverse()) {
    const path = story.lineText(row);
    const label = `${lastPart(path)} ${story.text(story.columns["place.function"][row])}`;
    nodes.push(below(nodes[nodes.length - 1], row, label, path, "line:" + path));
  }
  return nodes;
}

// Children as lists, largest first; what a node holds itself becomes leaves by category.
/** @param {TreeNode} tree */
function finish(tree) {
  const [largest] = largestParts(tree);
  tree.category = largest ? largest[0] : "";
  tree.list = [...tree.children.values()];
  tree.list.forEach(finish);
  tree.list.sort((a, b) => b.bytes - a.bytes || (a.label < b.label ? -1 : 1));
}

// Categories of a node with their bytes, largest first.
/** @param {TreeNode} tree */
export function largestParts(tree) {
  return [...tree.parts].sort((a, b) => b[1] - a[1]);
}

// Each branch of the root has a number, for colours where categories have none.
/** @param {TreeNode} tree @param {number} number */
function numberBranch(tree, number) {
  tree.branch = number;
  for (const child of tree.list) numberBranch(child, number);
}

// A treemap's leaves: what a node holds itself, by category.
/** @param {TreeNode} tree */
export function ownParts(tree) {
  if (!tree.own) return [];
  const rest = new Map(tree.parts);
  for (const child of tree.list)
    for (const [category, bytes] of child.parts) rest.set(category, (rest.get(category) ?? 0) - bytes);
  return [...rest]
    .filter(([, bytes]) => bytes > 0)
    .map(([category, bytes]) => {
      const mark = [tree.mark, "category:" + category].filter(Boolean).join("\n"),
        parts = new Map([[category, bytes]]);
      const list = tensorsOf(tree, category);
      const sums = { bytes, category, parts, list, branch: tree.branch, isPart: true };
      return { ...emptyNode(category, tree.path, mark), ...sums };
    });
}

// The tensors of a category, largest first, each with how many there are; none where nothing has a name or a shape.
/** @param {TreeNode} tree @param {string} category */
function tensorsOf(tree, category) {
  const own = [...tree.tensors.values()].filter((one) => one.category === category);
  if (!own.some((one) => one.label)) return [];
  const shown = own.map((one) => ({
    ...one,
    label: (one.label || category) + (one.count > 1 ? ` × ${one.count}` : ""),
    branch: tree.branch,
  }));
  return shown.sort((a, b) => b.bytes - a.bytes);
}

// The node of a path, or the root.
/** @param {TreeNode} tree @param {string} path */
export function findNode(tree, path) {
  if (!path) return tree;
  const open = [tree];
  for (let next = open.pop(); next; next = open.pop()) {
    if (next.path === path) return next;
    open.push(...next.list);
  }
  return tree;
}
