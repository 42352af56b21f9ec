// The timeline's legend: its bands with their bytes at the moment, and what is marked.

import { byId, make, refill } from "./dom.js";
import { bytesText, countText, lastPart } from "./format.js";
import { bandsAt } from "./bands.js";
import { bandColours } from "./colours.js";
import { markText } from "./details.js";

/** @import { State } from "./state.js" */
/** @import { Story } from "./story.js" */

/** @param {Story} story @param {State} state */
export function showLegend(story, state) {
  const { by, mark, moment } = state.now;
  const tick = moment ?? story.header.peak_tick;
  const groups = story.groups(by);
  const colours = bandColours(by, groups),
    bytes = bandsAt(story, by, tick);
  const rows = groups
    .map((name, band) => ({ name, colour: colours[band], bytes: bytes[band] }))
    .filter((row) => row.bytes > 0);
  const short = (/** @type {string} */ text) => (by === "line" ? lastPart(text, 2) : text);
  refill(
    byId("timeline-legend"),
    rows.map((row) =>
      make(
        "li",
        { title: row.name },
        make("span", { class: "swatch", style: { background: row.colour } }),
        short(row.name) + " ",
        make("b", { "data-band": row.name, "data-bytes": row.bytes }, bytesText(row.bytes)),
      ),
    ),
    make(
      "li",
      {},
      make("span", { class: "swatch thin" }),
      "reserved ",
      make("b", { "data-band": "reserved" }, bytesText(story.reservedAt(tick))),
    ),
  );
  byId("mark-note").hidden = !mark;
  refill(
    byId("mark-note"),
    mark
      ? [
          `Hatched: ${markText(mark)} `,
          make("button", { type: "button", onclick: () => state.set({ mark: "" }) }, "clear"),
        ]
      : [],
  );
  refill(byId("moment-note"), momentText(story, tick));
}

/** @param {Story} story @param {number} tick */
function momentText(story, tick) {
  const which = tick === story.header.peak_tick ? "At the allocated peak" : "At the chosen moment";
  const allocated = `${bytesText(story.allocatedAt(tick))} allocated`;
  return [`${which}: ${countText(tick)} of ${countText(story.ticks)}`, story.whenAt(tick), allocated]
    .filter(Boolean)
    .join(" · ");
}
