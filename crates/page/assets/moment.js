// What is allocated at one moment: the section around the treemap and the flame graph.

import { byId, choices, fitCanvas, hideTip, make, refill, showTip } from "./dom.js";
import { bytesText, countText, percentText } from "./format.js";
import { categoryColour, themeColours } from "./colours.js";
import { findNode, treeAt } from "./trees.js";
import { drawTreemap } from "./treemap.js";
import { depthOf, drawFlame, ROW } from "./flame.js";

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
