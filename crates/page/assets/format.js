// Numbers as people read them; the same words as in the terminal.

const KIB = 1024,
  MIB = KIB * 1024,
  GIB = MIB * 1024;

// `12.34 GiB`, `820.0 MiB`, `512 B`: as `report::bytes::text` writes them.
/** @param {number} bytes */
export function bytesText(bytes) {
  if (bytes >= GIB) return (bytes / GIB).toFixed(2) + " GiB";
  if (bytes >= MIB) return (bytes / MIB).toFixed(1) + " MiB";
  if (bytes >= KIB) return (bytes / KIB).toFixed(1) + " KiB";
  return bytes + " B";
}

// `1,234,567`
/** @param {number} count */
export function countText(count) {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

// `82 %`, `<1 %`
/** @param {number} part @param {number} whole */
export function percentText(part, whole) {
  if (!(whole > 0)) return "";
  const percent = (100 * part) / whole;
  if (part > 0 && percent < 1) return "<1 %";
  return Math.round(percent) + " %";
}

// Heights for the lines of an axis: at most `most` of them up to `top`, one, two or five of a binary unit apart.
/** @param {number} top @param {number} most */
export function axisSteps(top, most) {
  if (!(top > 0)) return [0];
  // In the unit of most of its lines.
  const unit = [GIB, MIB, KIB].find((unit) => top >= 2 * unit) ?? 1;
  let step = unit / 1000;
  for (let power = 0.001; top / step > most; power *= 10) {
    step = [1, 2, 5].map((digit) => digit * power * unit).find((wide) => top / wide <= most) ?? 10 * power * unit;
  }
  const lines = [];
  for (let line = 0; line <= top * 1.0001; line += step) lines.push(line);
  return lines;
}

// An axis has room for little: `8 GiB`, `2.5 GiB`. All lines of an axis up to `top` have one unit.
/** @param {number} bytes @param {number} [top] */
export function axisText(bytes, top) {
  const units = { GiB: GIB, MiB: MIB, KiB: KIB };
  for (const [unit, size] of Object.entries(units))
    if (bytes && (top === undefined ? bytes >= size : top >= 2 * size))
      return `${parseFloat((bytes / size).toFixed(2))} ${unit}`;
  return bytes + " B";
}

// The end of a path, which tells most; some are of Windows.
/** @param {string} path */
export function lastPart(path, parts = 1) {
  return path.split(/[\\/]/).slice(-parts).join("/");
}

// `before_optimizer` is written `before optimizer`.
/** @param {string} name */
export function plainWords(name) {
  return String(name).replaceAll("_", " ");
}

// `backward, step 3`, as far as it is known.
/** @param {string | null | undefined} phase @param {number | null | undefined} step */
export function whenText(phase, step) {
  return [phase ? plainWords(phase) : "", step ? "step " + step : ""].filter(Boolean).join(", ");
}

// `train.py:12`, or nothing.
/** @param {string | null | undefined} file @param {number | null | undefined} line */
export function placeText(file, line) {
  return file ? file + ":" + line : "";
}

// `float32[2, 3]`, or nothing.
/** @param {{ dtype?: string | null, shape?: number[] | null }} tensor */
export function tensorText({ dtype, shape }) {
  return dtype && Array.isArray(shape) ? `${dtype}[${shape.join(", ")}]` : "";
}

// As many letters as fit into a width, of a text that is drawn with this context.
/** @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
export function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0,
    high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? text.slice(0, low) + "…" : "";
}

// Each value once, in order.
/** @template Value @param {Value[]} values */
export function unique(values) {
  return [...new Set(values)];
}
