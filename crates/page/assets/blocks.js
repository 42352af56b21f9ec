// Single blocks inside the bands: thin edges of the high ones, and the outline of the one under the pointer.

import { belowCells } from "./bands.js";
import { edgesOf, visibleCells } from "./curve.js";

/** @import { DimensionName } from "../types" */
/** @import { Cells } from "./bands.js" */
/** @import { Theme } from "./colours.js" */
/** @import { Scale } from "./curve.js" */
/** @import { Context } from "./dom.js" */
/** @import { Story } from "./story.js" */

// Blocks lower than this are not told apart.
const LEAST_PIXELS = 3;

// Bottoms of the bands in a cell.
/** @param {Cells} cells @param {number} cell */
function bandBottoms(cells, cell) {
  const bottoms = new Float64Array(cells.bands);
  for (let band = 1; band < cells.bands; band++)
    bottoms[band] = bottoms[band - 1] + cells.sums[cell * cells.bands + band - 1];
  return bottoms;
}

/** @param {Context} context @param {Scale} scale @param {Story} story @param {DimensionName} name @param {Cells} cells
 *  @param {Theme} theme */
export function drawBlocks(context, scale, story, name, cells, theme) {
  const banding = story.banding(name);
  const perPixel = scale.top / scale.plotHeight;
  const [first, last] = visibleCells(cells, scale);
  if (last < first) return;
  const lives = story.columns.tall.filter(
    (life) => story.born[life] <= cells.shown[last] && cells.shown[first] < story.freed[life],
  );
  context.strokeStyle = theme.paper;
  context.globalAlpha = 0.55;
  context.lineWidth = 0.75;
  context.beginPath();
  for (let cell = first; cell <= last; cell++) {
    const tick = cells.shown[cell],
      heights = bandBottoms(cells, cell);
    const [left, right] = edgesOf(cells, scale, cell);
    for (const life of lives) {
      if (story.born[life] > tick) break;
      if (tick >= story.freed[life]) continue;
      const band = banding.band[life];
      heights[band] += banding.bytes[life];
      if (banding.bytes[life] < LEAST_PIXELS * perPixel) continue;
      const y = scale.y(heights[band]);
      context.moveTo(left, y);
      context.lineTo(right, y);
    }
  }
  context.stroke();
  context.globalAlpha = 1;
}

// The outline of a life over the cells of the window.
/** @param {Context} context @param {Scale} scale @param {Story} story @param {DimensionName} name @param {Cells} cells
 *  @param {number} life @param {Theme} theme */
export function drawLife(context, scale, story, name, cells, life, theme) {
  const { band: bands, bytes } = story.banding(name);
  const [start, last] = visibleCells(cells, scale);
  let first = start;
  while (first <= last && cells.shown[first] < story.born[life]) first++;
  if (first > last) return;
  const below = belowCells(story, name, life, cells, first);
  const points = [];
  for (let cell = first; cell <= last && cells.shown[cell] < story.freed[life]; cell++) {
    const height = bandBottoms(cells, cell)[bands[life]] + below[cell];
    const begin = (cells.first + cell) * cells.size;
    points.push([Math.max(scale.left, scale.x(begin)), scale.x(begin + cells.size), height]);
  }
  if (!points.length) return;
  context.beginPath();
  for (const [left, right, height] of points) {
    context.lineTo(left, scale.y(height + bytes[life]));
    context.lineTo(right, scale.y(height + bytes[life]));
  }
  for (const [left, right, height] of points.reverse()) {
    context.lineTo(right, scale.y(height));
    context.lineTo(left, scale.y(height));
  }
  context.closePath();
  context.strokeStyle = theme.ink;
  context.lineWidth = 1.5;
  context.stroke();
}
