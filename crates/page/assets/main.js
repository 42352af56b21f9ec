// Puts the page together: reads what is in it, and tells each view when something it shows has changed.

import { byId, choices, make, refill } from "./dom.js";
import { axisSteps, axisText } from "./format.js";
import { unpack } from "./unpack.js";
import { Story } from "./story.js";
import { fromHash, ofItem, State } from "./state.js";
import { cardOf, partOf, showSummary } from "./summary.js";
import { Timeline } from "./timeline.js";
import { showLegend } from "./legend.js";
import { Gestures } from "./gestures.js";
import { showRange } from "./range.js";
import { MomentView } from "./moment.js";
import { SegmentView } from "./segments.js";
import { Tables } from "./tableview.js";
import { showFindings } from "./findings.js";
import { showPlans } from "./plans.js";
import { showSweeps } from "./sweeps.js";
import { Differences } from "./differences.js";
import { needsMost, showSides } from "./sides.js";
import { WhatIf } from "./whatif.js";
import { showSaving } from "./saving.js";

/** @import { DimensionName, Item, PageContents } from "../types" */
/** @import { AnyReport } from "../types/either" */

const STORY_SECTIONS = ["timeline", "moment", "segments"];

/** @type {[DimensionName, string][]} */
const BY_OPTIONS = [
  ["category", "Category"],
  ["module", "Module"],
  ["phase", "Phase"],
  ["line", "Line"],
];
/** @type {["fit" | "limit", string][]} */
const SCALE_OPTIONS = [
  ["fit", "Up to the peak"],
  ["limit", "Up to the card"],
];

class Page {
  /** @param {PageContents} contents */
  constructor(contents) {
    this.contents = contents;
    // By the numbers of their items.
    /** @type {Story[]} */
    this.stories = [];
    // What is drawn; null while there is nothing, or nothing yet.
    /** @type {Story | null} */
    this.story = null;
    this.limit = 0;
    this.isWhatIf = false;
    this.state = new State(location.hash);
    this.timeline = new Timeline(this.state);
    this.gestures = new Gestures(this.timeline, this.state);
    this.momentView = new MomentView(this.state);
    this.segmentView = new SegmentView(this.state);
    this.tables = new Tables(this.state);
    this.differences = new Differences(contents.documents, this.state);
    this.whatIf = new WhatIf(this.state, contents.cards, (pictured) => this.picture(pictured));
    this.listen();
    this.controls();
    showSaving([
      this.view("timeline", () => this.timeline.drawNow()),
      this.view("moment", () => this.momentView.draw()),
      this.view("segments", () => this.segmentView.draw()),
    ]);
  }

  // A view that can be saved as a picture.
  /** @param {"timeline" | "moment" | "segments"} name @param {() => void} redraw */
  view(name, redraw) {
    return { name, canvas: byId(`${name}-canvas`), legend: byId(`${name}-legend`), redraw };
  }

  /** @returns {Item | undefined} */
  item() {
    return this.contents.items[this.itemNumber()];
  }

  // The one that is chosen; of ranks and files, until one is, the one that needs most.
  itemNumber() {
    const { items } = this.contents,
      { item } = this.state.now;
    return Math.min(Math.floor(item ?? needsMost(this.contents)), items.length - 1);
  }

  listen() {
    const { state, timeline } = this;
    const moves = /** @type {const} */ (["by", "from", "to", "moment", "mark", "rangeFrom", "rangeTo", "scale"]);
    state.listen([...moves], () => this.story && timeline.draw());
    state.listen(["by", "moment", "mark"], () => this.story && showLegend(this.story, state));
    state.listen(["rangeFrom", "rangeTo"], () => this.story && showRange(this.story, state));
    state.listen(["moment", "tree", "view", "root", "mark"], () => this.story && this.momentView.draw());
    state.listen(["moment", "by"], () => this.story && this.segmentView.draw());
    state.listen(["table", "query", "sort", "mark"], () => this.tables.draw());
    state.listen(["by", "scale"], () => this.timelineControls());
    state.listen(["changes"], () => this.differences.draw());
    state.listen(["theme"], () => this.theme());
    state.listen(["item"], () => this.show().catch(showProblem));
    this.listenToBrowser();
  }

  listenToBrowser() {
    const { state } = this;
    globalThis.addEventListener("hashchange", () => {
      state.set(fromHash(location.hash));
      if (this.story) this.keepInside(this.story);
    });
    globalThis.addEventListener("resize", () => this.redraw());
    globalThis.addEventListener("beforeprint", () => this.print(true));
    globalThis.addEventListener("afterprint", () => this.print(false));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    document.addEventListener("keydown", (event) => this.key(event));
    const slider = byId("moment-slider");
    slider.addEventListener("input", () => state.set({ moment: Number(slider.value) }));
    byId("theme-button").addEventListener("click", () => state.set({ theme: this.isDark() ? "light" : "dark" }));
  }

  controls() {
    const { items } = this.contents;
    const select = byId("item-select");
    select.hidden = items.length < 2;
    refill(
      select,
      items.map((item, index) => make("option", { value: index }, item.name)),
    );
    select.addEventListener("change", () => this.state.set(ofItem(Number(select.value))));
    byId("zoom-in").addEventListener("click", () => this.gestures.zoom(0.5));
    byId("zoom-out").addEventListener("click", () => this.gestures.zoom(2));
    byId("zoom-all").addEventListener("click", () => this.gestures.reset());
    byId("brush-button").addEventListener("click", () => this.gestures.toggleBrush());
    this.timelineControls();
  }

  timelineControls() {
    const { state } = this;
    refill(
      byId("by-choices"),
      choices("stacked by", BY_OPTIONS, state.now.by, (by) => state.set({ by })),
    );
    const scales = () => choices("height", SCALE_OPTIONS, state.now.scale, (scale) => state.set({ scale }));
    refill(byId("scale-choices"), this.limit ? scales() : "");
  }

  isDark() {
    const { theme } = this.state.now;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  theme() {
    const { theme } = this.state.now;
    const root = document.documentElement;
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    else delete root.dataset.theme;
    this.redraw();
  }

  // Paper is light, whatever the screen was.
  /** @param {boolean} isPaper */
  print(isPaper) {
    if (isPaper) document.documentElement.dataset.theme = "light";
    else this.theme();
    this.differences.repaint();
    if (!this.story) return;
    this.timeline.repaint();
    this.timeline.drawNow();
    this.momentView.draw();
    this.segmentView.draw();
  }

  redraw() {
    this.differences.repaint();
    if (!this.story) return;
    this.timeline.repaint();
    this.momentView.draw();
    this.segmentView.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const isTyping = event.target instanceof Element && event.target.matches("input, select, textarea");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      byId("table-search").focus();
    } else if (event.key === "d") this.state.set({ theme: this.isDark() ? "light" : "dark" });
    else if (event.key === "t") byId("timeline-canvas").focus();
  }

  // The texts of an axis, for the tests.
  /** @param {number} top */
  axis(top) {
    return axisSteps(top, 6).map((bytes) => axisText(bytes, top));
  }

  // The item that is chosen; its story is unpacked when it is first looked at.
  async show() {
    const item = this.item();
    if (!item) return;
    /** @type {AnyReport} */
    const report = item.report;
    refill(byId("name"), item.name);
    byId("item-select").value = String(this.itemNumber());
    showSummary(report);
    showFindings(report, this.state);
    showSides(this.contents, report, this.state);
    this.tables.show(report);
    this.limit = limitOf(report);
    this.timelineControls();
    this.story = null;
    this.isWhatIf = false;
    this.whatIf.show(null);
    for (const id of STORY_SECTIONS) byId(id).hidden = !item.has_story;
    if (!item.has_story) return;
    const story = await this.storyOf(this.contents.items.indexOf(item));
    if (!story || this.item() !== item) return;
    this.story = story;
    this.keepInside(story);
    this.showWhatIsKnown(report);
    this.showRecorded(story, report);
    showLegend(story, this.state);
    showRange(story, this.state);
    this.momentView.show(story, report);
    this.segmentView.show(story);
    const memory = report.gpu ? report.gpu.memory_bytes : report.software ? 0 : cardOf(report.ledger ?? []);
    const told = memory ? memory - this.limit : contextOf(report);
    const recorded = { memory, taken: told || this.contents.assumed_context_bytes, isTold: told > 0 };
    this.whatIf.show({ item: this.contents.items.indexOf(item), story, report, recorded });
  }

  // With the request that failed, and what the run would have needed.
  /** @param {Story} story @param {AnyReport} report */
  showRecorded(story, { gpu, beyond, out_of_memory: refusal }) {
    const needed = gpu && beyond?.need ? beyond.need.bytes - (gpu.memory_bytes - this.limit) : 0;
    this.timeline.show(story, this.limit, refusal?.tried_bytes ?? 0, Math.max(0, needed));
  }

  // A recording as it would be on another card, or as it was. The segments below are those that were recorded.
  /** @param {import("./whatif.js").Pictured | null} pictured */
  picture(pictured) {
    const item = this.item();
    const recorded = item && this.stories[this.contents.items.indexOf(item)];
    if (!item || !recorded || (!pictured && !this.isWhatIf)) return;
    this.isWhatIf = pictured !== null;
    const story = pictured?.story ?? recorded,
      isOther = story !== this.story;
    this.story = story;
    if (pictured) this.timeline.showWhatIf(recorded, pictured);
    else this.showRecorded(story, item.report);
    if (!isOther) return;
    showLegend(story, this.state);
    showRange(story, this.state);
    this.momentView.show(story, item.report);
  }

  // The story of an item, unpacked once; null if it has none.
  /** @param {number} number */
  async storyOf(number) {
    const item = this.contents.items[number];
    if (!item || !item.has_story) return null;
    this.stories[number] ??= new Story(await unpack(byId("fathom-story-" + number).textContent ?? ""));
    return this.stories[number];
  }

  // Where activations lead, modules tell more than categories; where nothing has a name, lines do. An address
  // that says otherwise is obeyed.
  /** @param {AnyReport} report */
  showWhatIsKnown(report) {
    if (!location.hash && leads(report, "activations") && (report.modules ?? []).some((module) => module.path)) {
      this.state.now.by = "module";
      this.timelineControls();
      return;
    }
    const unknown = (report.categories ?? []).find((row) => row.name === "unknown");
    if (location.hash || !report.peak || !unknown || unknown.bytes * 2 < report.peak.allocated_bytes) return;
    this.state.now.by = "line";
    this.state.now.table = "lines";
    this.tables.draw();
    if (!(report.modules ?? []).some((module) => module.path)) this.state.now.tree = "line";
    this.timelineControls();
  }

  // An address may be of another recording: what lies outside of this one is forgotten.
  /** @param {Story} story */
  keepInside({ ticks }) {
    const { now } = this.state;
    const isTick = (/** @type {number | null} */ tick) => tick === null || (Number.isInteger(tick) && tick <= ticks);
    if (!isTick(now.moment)) now.moment = null;
    if (!isTick(now.rangeFrom) || !isTick(now.rangeTo)) now.rangeFrom = now.rangeTo = null;
  }
}

// Whether no category has more.
/** @param {AnyReport} report @param {string} name */
function leads(report, name) {
  const rows = (report.categories ?? []).toSorted((a, b) => b.bytes - a.bytes);
  return rows[0]?.name === name;
}

// What PyTorch can have of the card; 0 without a card.
/** @param {AnyReport} report */
function limitOf(report) {
  const row = (/** @type {string} */ name) => partOf(report.ledger ?? [], name);
  if (report.gpu) {
    const { memory_bytes: memory, context_bytes: context } = report.gpu;
    return memory - context - row("others") - row("programs") - (report.peak?.nccl_bytes ?? 0);
  }
  return report.software ? 0 : Math.max(0, cardOf(report.ledger ?? []) - row("context"));
}

// What the context of a run without a card takes.
/** @param {AnyReport} report */
function contextOf(report) {
  const { peak } = report;
  const own = peak?.process_bytes ?? peak?.device_bytes;
  return peak && own !== undefined ? Math.max(0, own - peak.reserved_bytes) : partOf(report.ledger ?? [], "context");
}

/** @param {unknown} error */
function showProblem(error) {
  const why = error instanceof Error ? error.message : String(error);
  refill(byId("problem"), `This browser could not read the page's data: ${why}`);
}

export async function main() {
  const page = new Page(JSON.parse(byId("fathom-page").textContent ?? ""));
  // For the tests, and for readers with a console.
  Object.assign(globalThis, { fathom: page });
  const { theme } = page.state.now;
  if (theme) document.documentElement.dataset.theme = theme;
  byId("version").textContent = page.contents.version;
  showPlans(page.contents.documents);
  showSweeps(page.contents.documents);
  byId("summary").hidden = !page.contents.items.length;
  byId("tables").hidden = !page.contents.items.length;
  byId("facts-section").hidden = !page.contents.items.length;
  for (const id of STORY_SECTIONS) byId(id).hidden = !page.contents.items.length;
  try {
    await page.show();
    await page.differences.drawPictures((number) => page.storyOf(number));
  } catch (error) {
    showProblem(error);
  }
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
