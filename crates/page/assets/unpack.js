// From the text in the page to columns of numbers; `crates/page/src/pack.rs` is the other side.

/** @import { Column, ColumnName, Header } from "../types" */
/** @typedef {Int32Array | Float64Array} Numbers */
/** @typedef {Record<ColumnName, Numbers>} Columns */

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
export function fromBase64(text) {
  // Newer browsers have it built in, and quicker.
  if ("fromBase64" in Uint8Array) return /** @type {any} */ (Uint8Array).fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index++) bytes[index] = letters.charCodeAt(index);
  return bytes;
}

/** @param {Uint8Array<ArrayBuffer>} bytes */
export async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Numbers of seven bits to a byte. Small ones become 32-bit integers: they are half as large and quicker.
/** @param {Uint8Array} bytes @param {number} start @param {Column} column */
export function readColumn(bytes, start, { form, count }) {
  const numbers = new Float64Array(count);
  let at = start,
    before = 0,
    least = 0,
    most = 0;
  for (let index = 0; index < count; index++) {
    let byte = bytes[at++],
      number = byte & 127;
    for (let factor = 128; byte > 127; factor *= 128) {
      byte = bytes[at++];
      number += (byte & 127) * factor;
    }
    if (form === "delta") {
      const half = number / 2;
      before += number % 2 ? -Math.ceil(half) : half;
      number = before;
    }
    if (number > most) most = number;
    if (number < least) least = number;
    numbers[index] = number;
  }
  return most < 2 ** 31 && least >= -(2 ** 31) ? new Int32Array(numbers) : numbers;
}

// The header and its columns by name.
/** @param {Uint8Array} bytes */
export function readColumns(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  /** @type {Header} */
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const columns = /** @type {Columns} */ ({});
  let start = 4 + length;
  for (const column of header.columns) {
    columns[column.name] = readColumn(bytes, start, column);
    start += column.bytes;
  }
  return { header, columns };
}

/** @param {string} text */
export async function unpack(text) {
  return readColumns(await inflate(fromBase64(text)));
}
