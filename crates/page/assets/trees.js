// What is alive at a moment as a tree: by module, or by the lines of source that led to it. The leaves are categories.

import { lastPart } from "./format.js";

function node(label, path, mark) {
  return { label, path, mark, bytes: 0, count: 0, own: 0, children: new Map(), category: "", parts: new Map() };
}

function below(parent, key, label, path, mark) {
  let child = parent.children.get(key);
  if (!child) {
    child = node(label, path, mark);
    parent.children.set(key, child);
  }
  return child;
}

// Bytes and counts of the kinds that are alive at a tick.
export function aliveKinds(story, tick) {
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
export function treeAt(story, tick, by, classes) {
  const root = node(by === "line" ? "all lines" : "all modules", "", "");
  for (const { kind, bytes, count } of aliveKinds(story, tick)) {
    const about = story.about(kind);
    const line = by === "line" ? lineage(story, root, kind) : moduleLineage(root, about.module, classes);
    for (const part of line) {
      part.bytes += bytes;
      part.count += count;
      part.parts.set(about.category, (part.parts.get(about.category) ?? 0) + bytes);
    }
    line[line.length - 1].own += bytes;
  }
  finish(root);
  root.list.forEach((child, index) => numberBranch(child, index));
  return root;
}

// As deep as any model; what is deeper counts as one level, as in the report.
const DEEPEST_MODULE = 64;

// The modules from the top down to a path.
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
function lineage(story, root, kind) {
  const rows = [];
  const { "place.caller": caller, "place.file": file, "place.line": line, "place.function": name } = story.columns;
  for (let row = story.columns["kind.place"][kind] - 1; row >= 0; row = caller[row] - 1) rows.push(row);
  if (!rows.length) return [root, below(root, "", "no line", "?", "line:")];
  const nodes = [root];
  for (const row of rows.reverse()) {
    const path = story.text(file[row]) + ":" + line[row];
    const label = `${lastPart(story.text(file[row]))}:${line[row]} ${story.text(name[row])}`;
    nodes.push(below(nodes[nodes.length - 1], row, label, path, "line:" + path));
  }
  return nodes;
}

// Children as lists, largest first; what a node holds itself becomes leaves by category.
function finish(tree) {
  const [largest] = [...tree.parts].sort((a, b) => b[1] - a[1]);
  tree.category = largest ? largest[0] : "";
  tree.list = [...tree.children.values()];
  tree.list.forEach(finish);
  tree.list.sort((a, b) => b.bytes - a.bytes || (a.label < b.label ? -1 : 1));
}

// Each branch of the root has a number, for colours where categories have none.
function numberBranch(tree, number) {
  tree.branch = number;
  for (const child of tree.list) numberBranch(child, number);
}

// A treemap's leaves: what a node holds itself, by category.
export function ownParts(tree) {
  if (!tree.own) return [];
  const rest = new Map(tree.parts);
  for (const child of tree.list)
    for (const [category, bytes] of child.parts) rest.set(category, rest.get(category) - bytes);
  return [...rest]
    .filter(([, bytes]) => bytes > 0)
    .map(([category, bytes]) => ({
      label: category,
      path: tree.path,
      mark: [tree.mark, "category:" + category].filter(Boolean).join("\n"),
      bytes,
      list: [],
      category,
      branch: tree.branch,
      isPart: true,
      parts: new Map([[category, bytes]]),
    }));
}

// The node of a path, or the root.
export function findNode(tree, path) {
  if (!path) return tree;
  const open = [tree];
  while (open.length) {
    const next = open.pop();
    if (next.path === path) return next;
    open.push(...next.list);
  }
  return tree;
}
