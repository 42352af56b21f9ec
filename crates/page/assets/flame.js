// The moment as a flame graph, roots on top: widths are bytes, colours are the category that holds most of a node.

import { byId, choices, fitCanvas, hideTip, make, refill, showTip } from "./dom.js";
import { bytesText, countText, fitText, percentText } from "./format.js";
import { categoryColour, inkOn, nodeColour, themeColours } from "./colours.js";
import { findNode, treeAt } from "./trees.js";
import { drawTreemap } from "./treemap.js";

const ROW = 22;
const DEEPEST = 40;

// How many rows a tree needs, at least as wide as can be seen.
function depthOf(tree, least) {
  const deepest = tree.list
    .filter((child) => child.bytes >= least)
    .reduce((most, child) => Math.max(most, depthOf(child, least)), 0);
  return Math.min(DEEPEST, 1 + deepest);
}

export function drawFlame(context, size, tree, theme, marked) {
  const drawn = [];
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, size.width, size.height);
  context.textBaseline = "middle";
  context.textAlign = "left";
  const place = (node, x, depth, width) => {
    if (width < 0.7 || depth >= DEEPEST) return;
    const box = { x, y: depth * ROW, width, height: ROW };
    drawn.push({ node, ...box });
    const colour = depth ? nodeColour(node) : "#9aa0a6";
    context.fillStyle = colour;
    context.fillRect(x, box.y, Math.max(0.5, width - 0.8), ROW - 1);
    if (marked && marked(node)) {
      context.strokeStyle = inkOn(colour);
      context.lineWidth = 2;
      context.strokeRect(x + 1, box.y + 1, Math.max(1, width - 3), ROW - 3);
    }
    if (width > 30) {
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = inkOn(colour);
      context.fillText(fitText(context, `${node.label}  ${bytesText(node.bytes)}`, width - 8), x + 4, box.y + ROW / 2);
    }
    let at = x;
    for (const child of node.list) {
      const part = (child.bytes / node.bytes) * width;
      place(child, at, depth + 1, part);
      at += part;
    }
  };
  if (tree.bytes > 0) place(tree, 0, 0, size.width);
  return drawn;
}

// The section of both pictures.
export class MomentView {
  constructor(state) {
    this.state = state;
    this.canvas = byId("moment-canvas");
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener(
      "keydown",
      (event) => event.key === "Escape" && this.state.set({ root: "", mark: "" }),
    );
  }

  show(story, report) {
    this.story = story;
    this.classes = new Map((report.modules ?? []).map((module) => [module.path, module.class]));
    this.tree = null;
    this.draw();
  }

  draw() {
    const { story, state } = this;
    const { moment, tree: by, view, root, mark } = state.now;
    const tick = moment ?? story.header.peak_tick;
    if (!this.tree || this.tree.tick !== tick || this.tree.by !== by || this.tree.story !== story)
      this.tree = { tick, by, story, root: treeAt(story, tick, by, this.classes) };
    const node = (this.node = findNode(this.tree.root, root));
    const theme = themeColours();
    const marked = mark ? (other) => other.mark === mark : null;
    const narrow = globalThis.innerWidth < 620;
    const height = view === "flame" ? ROW * depthOf(node, node.bytes / 1500) + 2 : narrow ? 360 : 420;
    const { context, ...size } = fitCanvas(this.canvas, height);
    this.drawn = (view === "flame" ? drawFlame : drawTreemap)(context, size, node, theme, marked);
    this.controls(tick, by, view);
    this.crumbs();
  }

  controls(tick, by, view) {
    const { state, story } = this;
    const { peak_tick: peak, reserved_peak_tick: reserved, refused_tick: refused } = story.header;
    refill(
      byId("moment-controls"),
      choices(
        "picture",
        [
          ["treemap", "Treemap"],
          ["flame", "Flame graph"],
        ],
        view,
        (value) => state.set({ view: value }),
      ),
      choices(
        "by",
        [
          ["module", "Modules"],
          ["line", "Source lines"],
        ],
        by,
        (value) => state.set({ tree: value, root: "" }),
      ),
      choices(
        "moment",
        [
          [peak, "Peak"],
          ...(reserved !== peak ? [[reserved, "Most reserved"]] : []),
          ...(refused !== null ? [[refused, "Out of memory"]] : []),
        ],
        tick,
        (value) => state.set({ moment: value === peak ? null : value }),
      ),
    );
    const slider = byId("moment-slider");
    slider.max = String(story.ticks);
    slider.value = String(tick);
    const when = story.whenAt(tick);
    byId("moment-slider").setAttribute("aria-valuetext", `${countText(tick)}${when ? ", " + when : ""}`);
    refill(byId("moment-title"), tick === peak ? "What holds it at the peak" : "What holds it at this moment");
    const { parts, bytes } = this.tree.root;
    const rows = [...parts].sort((a, b) => b[1] - a[1]);
    refill(
      byId("moment-legend"),
      rows.map(([name, part]) =>
        make(
          "li",
          {},
          make("span", { class: "swatch", style: { background: categoryColour(name) } }),
          `${name} `,
          make("b", {}, percentText(part, bytes)),
        ),
      ),
    );
    refill(
      byId("moment-sum"),
      make("span", { "data-moment": "allocated", "data-bytes": bytes }, bytesText(bytes)),
      ` allocated in ${countText(this.tree.root.count)} blocks, `,
      [`${bytesText(story.reservedAt(tick))} reserved`, when, `${countText(tick)} of ${countText(story.ticks)}`]
        .filter(Boolean)
        .join(" · "),
    );
  }

  // The way back out of a node.
  crumbs() {
    const { path } = this.node;
    const steps = [
      make("button", { type: "button", onclick: () => this.state.set({ root: "" }) }, this.tree.root.label),
    ];
    if (path && path !== "?") steps.push(" › ", make("span", {}, path), ` ${bytesText(this.node.bytes)}`);
    refill(byId("moment-crumbs"), path ? steps : []);
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left,
      y = event.clientY - box.top;
    return (this.drawn ?? []).findLast(
      (tile) => tile.x <= x && x < tile.x + tile.width && tile.y <= y && y < tile.y + tile.height,
    );
  }

  hover(event) {
    const tile = this.under(event);
    if (!tile) return hideTip();
    const { node } = tile;
    const parts = [...node.parts]
      .sort((a, b) => b[1] - a[1])
      .slice(0, 5)
      .map(([name, bytes]) => `${bytesText(bytes)} ${name}`);
    showTip(event, [
      `${bytesText(node.bytes)}, ${percentText(node.bytes, this.tree.root.bytes)}`,
      node.path && node.path !== "?" ? node.path : node.label,
      ...parts,
    ]);
  }

  // A click goes into a node and marks it in the timeline.
  click(event) {
    const tile = this.under(event);
    if (!tile) return;
    const { node } = tile;
    const isInner = !node.isPart && node.list.length > 0;
    this.state.set({ mark: node.mark, ...(isInner ? { root: node.path } : {}) });
  }
}
