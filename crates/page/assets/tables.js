// The report's lists as tables: their columns, and which allocations a row marks in the timeline.

import { bytesText, countText, lastPart, percentText, placeText, plainWords, tensorText, whenText } from "./format.js";

/** @import { Line, Tensor } from "../types" */
/** @import { AnyReport } from "../types/either" */

// Columns: title, value of a row, and how it is shown. Numbers sort downwards first.
/**
 * @template Row
 * @typedef {{ title: string, value: (row: Row) => any, text: (row: Row) => string, isNumber: boolean }} TableColumn
 */
/**
 * @template Row
 * @typedef {object} Table
 * @property {string} title
 * @property {(report: AnyReport) => Row[] | undefined} rows
 * @property {(row: Row) => string} mark
 * @property {(report: AnyReport) => TableColumn<Row>[]} columns
 */

/** @template Row @param {string} title @param {(row: Row) => number} value @param {(row: Row) => string} [text]
 *  @returns {TableColumn<Row>} */
const number = (title, value, text) => ({
  title,
  value,
  text: text ?? ((row) => bytesText(value(row))),
  isNumber: true,
});
/** @template Row @param {string} title @param {(row: Row) => string | null} value @returns {TableColumn<Row>} */
const words = (title, value) => {
  const text = (/** @type {Row} */ row) => value(row) ?? "";
  return { title, value: text, text, isNumber: false };
};
// A place: of a whole path the end, which tells most; all of it is searched, sorted by, and said on a pointer's rest.
/** @template Row @param {string} title @param {(row: Row) => string} value @returns {TableColumn<Row>} */
const places = (title, value) => ({
  ...words(title, value),
  text: (row) => (/^([A-Z]:)?[\\/]/i.test(value(row)) ? lastPart(value(row), 3) : value(row)),
});
/** @type {TableColumn<{ count: number }>} */
const blocks = number(
  "blocks",
  (row) => row.count,
  (row) => countText(row.count),
);
/** @param {AnyReport} report @returns {TableColumn<{ bytes: number }>} */
const share = (report) =>
  number(
    "share",
    (row) => row.bytes,
    (row) => percentText(row.bytes, report.peak ? report.peak.allocated_bytes : 0),
  );

// Keeps the type of a table's rows.
/** @template Row @param {Table<Row>} table @returns {Table<any>} */
const table = (table) => table;

/** @type {Record<string, Table<any>>} */
export const TABLES = {
  modules: table({
    title: "Modules",
    rows: (report) => report.modules,
    mark: (row) => "module:" + row.path,
    columns: (report) => [
      words("module", (row) => row.path || "no module"),
      words("class", (row) => row.class),
      number("bytes", (row) => row.bytes),
      share(report),
      number("own", (row) => row.own_bytes),
      number("kept for backward", (row) => row.saved_bytes),
    ],
  }),
  lines: table({
    title: "Lines",
    rows: (report) => report.lines,
    mark: (row) => "line:" + placeText(row.file, row.line),
    columns: (report) => [
      places("line", (row) => placeText(row.file, row.line) || "no line"),
      words("function", (row) => row.function),
      words("source", (row) => row.source),
      ...libraryColumn(report.lines ?? [], libraryOfLine),
      number("bytes", (row) => row.bytes),
      share(report),
      blocks,
    ],
  }),
  tensors: table({
    title: "Tensors",
    rows: (report) => report.tensors,
    mark: tensorMark,
    columns: (report) => [
      number("bytes", (row) => row.bytes),
      share(report),
      words("what", tensorText),
      words("category", (row) => plainWords(row.category)),
      words("name", (row) => row.name),
      words("module", (row) => row.module),
      words("operator", (row) => row.operator),
      places("line", (row) => placeText(row.file, row.line)),
      ...libraryColumn(report.tensors ?? [], (row) => placeText(row.library_file, row.library_line)),
      words("made in", (row) => whenText(row.born_phase, row.born_step)),
    ],
  }),
  operators: table({
    title: "Operators",
    rows: (report) => report.operators,
    mark: (row) => "operator:" + row.name,
    columns: (report) => [
      words("operator", (row) => row.name || "no operator"),
      number("bytes", (row) => row.bytes),
      share(report),
      blocks,
    ],
  }),
  areas: table({
    title: "Parallel",
    rows: (report) => report.areas,
    mark: () => "",
    columns: (report) => [
      words("what distributed training holds at the peak", (row) => row.name),
      number("bytes", (row) => row.bytes),
      share(report),
      blocks,
      number(
        "in flight",
        (row) => row.parts,
        (row) => (row.parts ? countText(row.parts) : ""),
      ),
    ],
  }),
  phases: table({
    title: "Phases",
    rows: (report) => report.phases,
    mark: () => "",
    columns: () => [
      words("phase", (row) => plainWords(row.name)),
      number(
        "step",
        (row) => row.step,
        (row) => (row.step ? String(row.step) : ""),
      ),
      number("allocated at most", (row) => row.peak_allocated_bytes),
      number("reserved at most", (row) => row.peak_reserved_bytes),
    ],
  }),
  growth: table({
    title: "Growth",
    rows: (report) => report.growth,
    mark: (row) => (row.file ? "line:" + placeText(row.file, row.line) : ""),
    columns: () => [
      number("each step", (row) => row.bytes_per_step),
      number("at the last", (row) => row.bytes),
      blocks,
      words("category", (row) => plainWords(row.category)),
      words("held by", (row) => row.held_by),
      words("module", (row) => row.module),
      places("line", (row) => placeText(row.file, row.line)),
    ],
  }),
  ledger: table({
    title: "Ledger",
    rows: (report) => report.ledger,
    mark: () => "",
    columns: () => [
      words("part, where most is reserved", (row) => plainWords(row.name)),
      number("bytes", (row) => row.bytes),
      words("how it is known", (row) => row.known),
    ],
  }),
};

// The line of a library that did it for the user's, where any is known.
/** @template Row @param {Row[]} rows @param {(row: Row) => string} place @returns {TableColumn<Row>[]} */
function libraryColumn(rows, place) {
  return rows.some(place) ? [places("in the library", place)] : [];
}

/** @param {Line} row */
function libraryOfLine({ library }) {
  const [first] = library ?? [];
  if (!first) return "";
  const more = library.length > 1 ? ` and ${library.length - 1} more` : "";
  return placeText(lastPart(first.library_file, 2), first.library_line) + more;
}

/** @param {Tensor} row */
function tensorMark(row) {
  const words = [
    row.module && "module:" + row.module,
    row.file && "line:" + placeText(row.file, row.line),
    row.category && "category:" + row.category,
    row.name && "name:" + row.name,
  ];
  return words.filter(Boolean).join("\n");
}

// Rows that have all words of a query, in the order of a column: `2-` is the third, downwards.
/** @template Row @param {Row[]} rows @param {TableColumn<Row>[]} columns @param {string} query @param {string} sort */
export function chosenRows(rows, columns, query, sort) {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) => {
    const text = columns
      .map((column) => `${column.text(row)} ${column.isNumber ? "" : column.value(row)}`)
      .join(" ")
      .toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  if (!sort) return found;
  const column = columns[parseInt(sort, 10)],
    sign = sort.endsWith("-") ? -1 : 1;
  if (!column) return found;
  /** @param {Row} a @param {Row} b */
  const compare = (a, b) =>
    column.isNumber
      ? column.value(a) - column.value(b)
      : String(column.value(a)).localeCompare(String(column.value(b)));
  return [...found].sort((a, b) => sign * compare(a, b));
}
