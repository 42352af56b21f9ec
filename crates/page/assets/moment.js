// What is allocated at one moment: the section around the treemap and the flame graph.

import { byId, choices, fitCanvas, hideTip, make, refill, showTip } from "./dom.js";
import { bytesText, countText, percentText } from "./format.js";
import { categoryColour, themeColours } from "./colours.js";
import { findNode, largestParts, treeAt } from "./trees.js";
import { drawTreemap } from "./treemap.js";
import { depthOf, drawFlame, ROW } from "./flame.js";

/** @import { AnyReport } from "../types/either" */
/** @import { Pointer } from "./dom.js" */
/** @import { State } from "./state.js" */
/** @import { Story } from "./story.js" */
/** @import { Tile } from "./treemap.js" */
/** @import { TreeNode } from "./trees.js" */

// What is alive at a tick as a tree, and of what it was made.
/** @typedef {{ tick: number, by: "module" | "line", story: Story, root: TreeNode }} TreeAt */

export class MomentView {
  /** @param {State} state */
  constructor(state) {
    this.state = state;
    /** @type {Story | null} */
    this.story = null;
    // The class of each module's path.
    /** @type {Map<string, string>} */
    this.classes = new Map();
    /** @type {TreeAt | null} */
    this.tree = null;
    /** @type {Tile[]} */
    this.drawn = [];
    this.canvas = byId("moment-canvas");
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => event.key === "Escape" && state.set({ root: "", mark: "" }));
  }

  /** @param {Story} story @param {AnyReport} report */
  show(story, report) {
    this.story = story;
    this.classes = new Map((report.modules ?? []).map((module) => [module.path, module.class]));
    this.draw();
  }

  draw() {
    const { story, state } = this;
    if (!story) return;
    const { moment, view, root, mark } = state.now;
    const tree = (this.tree = this.treeAt(story, moment ?? story.header.peak_tick));
    const node = findNode(tree.root, root);
    const marked = mark ? (/** @type {TreeNode} */ other) => other.mark === mark : null;
    const isNarrow = globalThis.innerWidth < 620;
    const height = view === "flame" ? ROW * depthOf(node, node.bytes / 1500) + 2 : isNarrow ? 360 : 420;
    const { context, ...size } = fitCanvas(this.canvas, height);
    this.drawn = (view === "flame" ? drawFlame : drawTreemap)(context, size, node, themeColours(), marked);
    showControls(story, tree, state);
    showSlider(story, tree.tick);
    showSums(story, tree);
    showCrumbs(tree.root, node, state);
  }

  // The tree of a tick, made again only if something else is asked for.
  /** @param {Story} story @param {number} tick @returns {TreeAt} */
  treeAt(story, tick) {
    const { tree } = this,
      by = this.state.now.tree;
    // In a "what if" stories differ in what is reserved, and share their blocks.
    if (tree && tree.tick === tick && tree.by === by && tree.story.block === story.block) return tree;
    return { tick, by, story, root: treeAt(story, tick, by, this.classes) };
  }

  // The innermost tile under the pointer.
  /** @param {Pointer} event */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left,
      y = event.clientY - box.top;
    return this.drawn.findLast(
      (tile) => tile.x <= x && x < tile.x + tile.width && tile.y <= y && y < tile.y + tile.height,
    );
  }

  /** @param {Pointer} event */
  hover(event) {
    const tile = this.under(event);
    if (!tile || !this.tree) return hideTip();
    const { node } = tile;
    const parts = largestParts(node).slice(0, 5);
    showTip(event, [
      `${bytesText(node.bytes)}, ${percentText(node.bytes, this.tree.root.bytes)}`,
      node.path && node.path !== "?" ? node.path : node.label,
      ...parts.map(([name, bytes]) => `${bytesText(bytes)} ${name}`),
    ]);
  }

  // A click goes into a node and marks it in the timeline.
  /** @param {Pointer} event */
  click(event) {
    const tile = this.under(event);
    if (!tile) return;
    const { node } = tile;
    const isInner = !node.isPart && node.list.length > 0;
    this.state.set({ mark: node.mark, ...(isInner ? { root: node.path } : {}) });
  }
}

// Which picture, of what, and at which of the moments that have a name.
/** @param {Story} story @param {TreeAt} tree @param {State} state */
function showControls(story, { tick, by }, state) {
  const { peak_tick: peak, reserved_peak_tick: reserved, refused_tick: refused } = story.header;
  /** @type {["treemap" | "flame", string][]} */
  const views = [
    ["treemap", "Treemap"],
    ["flame", "Flame graph"],
  ];
  /** @type {["module" | "line", string][]} */
  const trees = [
    ["module", "Modules"],
    ["line", "Source lines"],
  ];
  /** @type {[number, string][]} */
  const moments = [[peak, "Peak"]];
  if (reserved !== peak) moments.push([reserved, "Most reserved"]);
  if (refused !== null) moments.push([refused, "Out of memory"]);
  refill(
    byId("moment-controls"),
    choices("picture", views, state.now.view, (view) => state.set({ view })),
    choices("by", trees, by, (other) => state.set({ tree: other, root: "" })),
    choices("moment", moments, tick, (moment) => state.set({ moment: moment === peak ? null : moment })),
  );
}

/** @param {Story} story @param {number} tick */
function showSlider(story, tick) {
  const slider = byId("moment-slider"),
    when = story.whenAt(tick);
  slider.max = String(story.ticks);
  slider.value = String(tick);
  slider.setAttribute("aria-valuetext", `${countText(tick)}${when ? ", " + when : ""}`);
}

// The title, the sums below it, and the categories with their shares.
/** @param {Story} story @param {TreeAt} tree */
function showSums(story, { tick, root }) {
  const isPeak = tick === story.header.peak_tick;
  refill(byId("moment-title"), isPeak ? "What holds it at the peak" : "What holds it at this moment");
  const reserved = `${bytesText(story.reservedAt(tick))} reserved`,
    when = `${countText(tick)} of ${countText(story.ticks)}`;
  refill(
    byId("moment-sum"),
    make("span", { "data-moment": "allocated", "data-bytes": root.bytes }, bytesText(root.bytes)),
    ` allocated in ${countText(root.count)} blocks, `,
    [reserved, story.whenAt(tick), when].filter(Boolean).join(" · "),
  );
  const item = (/** @type {string} */ name, /** @type {number} */ bytes) =>
    make(
      "li",
      {},
      make("span", { class: "swatch", style: { background: categoryColour(name) } }),
      `${name} `,
      make("b", {}, percentText(bytes, root.bytes)),
    );
  refill(
    byId("moment-legend"),
    largestParts(root).map(([name, bytes]) => item(name, bytes)),
  );
}

// The way back out of a node.
/** @param {TreeNode} root @param {TreeNode} node @param {State} state */
function showCrumbs(root, { path, bytes }, state) {
  const back = make("button", { type: "button", onclick: () => state.set({ root: "" }) }, root.label);
  const here = path === "?" ? [] : [" › ", make("span", {}, path), ` ${bytesText(bytes)}`];
  refill(byId("moment-crumbs"), path ? [back, ...here] : []);
}
