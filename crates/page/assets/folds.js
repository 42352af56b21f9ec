// A list of modules as a tree that folds: siblings by size, and what is small closed at first.

/** @typedef {{ path: string, bytes: number }} Row */
// A row of the tree: its name there, how deep, and whether what is below it is shown; null if nothing is.
/** @template {Row} Any @typedef {{ row: Any, name: string, depth: number, isOpen: boolean | null }} Fold */

// A module with this part of the whole is open at first.
const LARGE = 0.2;

// What was opened or closed by hand is in `turned`.
/** @template {Row} Any @param {Any[]} rows @param {Map<string, boolean>} turned @returns {Fold<Any>[]} */
export function foldedRows(rows, turned) {
  const below = childrenOf(rows);
  const whole = (below.get("") ?? []).reduce((sum, row) => sum + row.bytes, 0);
  /** @type {Fold<Any>[]} */
  const shown = [];
  const open = bySize(below.get("") ?? []).map((row) => ({ row, name: row.path, depth: 0 }));
  for (let next = open.pop(); next; next = open.pop()) {
    const { row, name, depth } = next;
    const inner = row.path ? (below.get(row.path) ?? []) : [];
    const isOpen = inner.length ? (turned.get(row.path) ?? row.bytes > whole * LARGE) : null;
    shown.push({ row, name, depth, isOpen });
    const nameOf = (/** @type {Any} */ inner) => inner.path.slice(row.path.length + 1);
    if (isOpen) open.push(...bySize(inner).map((row) => ({ row, name: nameOf(row), depth: depth + 1 })));
  }
  return shown;
}

// The smallest first: they are taken from the end.
/** @template {Row} Any @param {Any[]} rows */
const bySize = (rows) => rows.toSorted((a, b) => a.bytes - b.bytes);

// By the path of the nearest module above that is listed; the top is below nothing.
/** @template {Row} Any @param {Any[]} rows */
function childrenOf(rows) {
  const paths = new Set(rows.map(({ path }) => path).filter(Boolean));
  /** @type {Map<string, Any[]>} */
  const below = new Map();
  for (const row of rows) {
    let above = row.path;
    do above = above.slice(0, Math.max(0, above.lastIndexOf(".")));
    while (above && !paths.has(above));
    below.set(above, [...(below.get(above) ?? []), row]);
  }
  return below;
}
