// Wheel, drag, pinch and keys on the timeline.

import { byId, hideTip, showTip } from "./dom.js";
import { bytesText, countText } from "./format.js";
import { detailsOf } from "./details.js";

/** @import { State } from "./state.js" */
/** @import { Timeline } from "./timeline.js" */
/** @typedef {{ x: number, y: number }} Place */

// Below this a press is a click.
const CLICK_PIXELS = 4;

export class Gestures {
  /** @param {Timeline} timeline @param {State} state */
  constructor(timeline, state) {
    this.timeline = timeline;
    this.state = state;
    this.isBrushing = false;
    // Fingers and buttons that are down, and how the first of them began.
    /** @type {Map<number, Place>} */
    this.pointers = new Map();
    this.start = { x: 0, y: 0, window: [0, 1], isBrush: false, hasMoved: false };
    this.listen();
  }

  listen() {
    const { canvas, strip } = this.timeline;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", (event) => this.release(event));
    canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.leave());
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("dblclick", () => this.reset());
    strip.addEventListener("pointerdown", (event) => this.stripMove(event));
    strip.addEventListener("pointermove", (event) => event.buttons && this.stripMove(event));
  }

  // A new window. Until there is a story there is nothing to look at, and the address keeps what it says.
  /** @param {number} from @param {number} to */
  look(from, to) {
    if (!this.timeline.story) return;
    const all = this.timeline.length();
    const width = Math.min(all, Math.max(4, to - from));
    const begin = Math.min(Math.max(0, from), all - width);
    this.timeline.isMoving = true;
    const isWhole = width >= all;
    this.state.set({ from: isWhole ? null : begin, to: isWhole ? null : begin + width });
  }

  /** @param {number} factor @param {number} [centre] */
  zoom(factor, centre) {
    const [from, to] = this.timeline.window();
    const middle = centre ?? (from + to) / 2;
    this.look(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  /** @param {number} share */
  pan(share) {
    const [from, to] = this.timeline.window();
    this.look(from + (to - from) * share, to + (to - from) * share);
  }

  reset() {
    this.state.set({ from: null, to: null });
  }

  // A page is scrolled with the wheel too: the chart takes it when it was clicked, or with Ctrl.
  /** @param {WheelEvent} event */
  wheel(event) {
    const { scale } = this.timeline;
    const isOurs = event.ctrlKey || event.metaKey || document.activeElement === this.timeline.canvas;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (!scale || (!isOurs && !sideways)) return;
    event.preventDefault();
    const delta = event.deltaMode === 1 ? 16 : 1;
    if (sideways) this.pan(((event.deltaX || event.deltaY) * delta) / scale.plotWidth);
    else this.zoom(Math.exp(event.deltaY * delta * 0.0015), scale.tick(this.place(event).x));
  }

  /** @param {MouseEvent} event @returns {Place} */
  place(event) {
    const box = this.timeline.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button) return;
    this.timeline.canvas.setPointerCapture(event.pointerId);
    const { x, y } = this.place(event);
    this.pointers.set(event.pointerId, { x, y });
    const isBrush = event.shiftKey || this.isBrushing;
    this.start = { x, y, window: this.timeline.window(), isBrush, hasMoved: false };
    hideTip();
  }

  /** @param {PointerEvent} event */
  move(event) {
    const at = this.place(event),
      { start } = this;
    if (!this.pointers.has(event.pointerId)) {
      if (event.pointerType === "mouse") this.hover(event, at);
      return;
    }
    if (this.pointers.size === 2) return this.pinch(event, at);
    this.pointers.set(event.pointerId, at);
    if (Math.abs(at.x - start.x) > CLICK_PIXELS) start.hasMoved = true;
    const { scale, story } = this.timeline;
    if (!start.hasMoved || !scale || !story) return;
    if (start.isBrush) {
      const ends = [scale.tick(start.x), scale.tick(at.x)].map((tick) =>
        Math.min(Math.max(0, Math.floor(tick)), story.ticks),
      );
      this.state.set({ rangeFrom: Math.min(...ends), rangeTo: Math.max(...ends) });
      return;
    }
    const [from, to] = start.window;
    const shift = ((start.x - at.x) / scale.plotWidth) * (to - from);
    this.look(from + shift, to + shift);
  }

  // The ticks under two fingers stay under them.
  /** @param {PointerEvent} event @param {Place} at */
  pinch(event, at) {
    const { scale } = this.timeline;
    const [one, two] = [...this.pointers.values()];
    const before = Math.abs(one.x - two.x);
    this.pointers.set(event.pointerId, at);
    const [first, second] = [...this.pointers.values()];
    const now = Math.abs(first.x - second.x);
    if (scale && before > 8 && now > 8) this.zoom(before / now, scale.tick((first.x + second.x) / 2));
    this.start.hasMoved = true;
    this.start.window = this.timeline.window();
  }

  /** @param {PointerEvent} event */
  release(event) {
    const was = this.pointers.delete(event.pointerId);
    if (!was || this.pointers.size || event.type === "pointercancel") return;
    if (this.start.hasMoved) return;
    const under = this.timeline.under(this.start.x, this.start.y);
    if (under) this.state.set({ moment: under.tick });
    if (under && event.pointerType !== "mouse") this.hover(event, this.start);
  }

  /** @param {PointerEvent} event @param {Place} place */
  hover(event, { x, y }) {
    const { timeline } = this,
      { story } = timeline;
    if (!story) return;
    const under = timeline.under(x, y);
    const life = under ? under.life : -1;
    if (life !== timeline.hovered) {
      timeline.hovered = life;
      timeline.draw();
    }
    if (!under) return hideTip();
    if (life >= 0) return showTip(event, detailsOf(story, life));
    const when = story.whenAt(under.tick);
    showTip(event, [
      `${bytesText(story.allocatedAt(under.tick))} allocated`,
      `${bytesText(story.reservedAt(under.tick))} reserved`,
      `at ${countText(under.tick)}${when ? ", " + when : ""}`,
    ]);
  }

  leave() {
    hideTip();
    if (this.timeline.hovered < 0) return;
    this.timeline.hovered = -1;
    this.timeline.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { story } = this.timeline;
    if (!story) return;
    const step = event.shiftKey ? 0.5 : 0.1;
    const moment = this.state.now.moment ?? story.header.peak_tick;
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowLeft: () => this.pan(-step),
      ArrowRight: () => this.pan(step),
      "+": () => this.zoom(0.7),
      "=": () => this.zoom(0.7),
      "-": () => this.zoom(1 / 0.7),
      Home: () => this.reset(),
      0: () => this.reset(),
      p: () => this.state.set({ moment: null, from: null, to: null }),
      ",": () => this.state.set({ moment: Math.max(0, moment - 1) }),
      ".": () => this.state.set({ moment: Math.min(story.ticks, moment + 1) }),
      Escape: () => this.state.set({ rangeFrom: null, rangeTo: null, mark: "" }),
      s: () => this.toggleBrush(),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  toggleBrush() {
    this.isBrushing = !this.isBrushing;
    byId("brush-button").setAttribute("aria-pressed", String(this.isBrushing));
    this.timeline.canvas.classList.toggle("brushing", this.isBrushing);
  }

  /** @param {PointerEvent} event */
  stripMove(event) {
    const { stripScale } = this.timeline;
    if (!stripScale) return;
    const box = this.timeline.strip.getBoundingClientRect();
    const centre = stripScale.tick(event.clientX - box.left);
    const [from, to] = this.timeline.window();
    const all = this.timeline.length();
    // From the whole, a press on the strip goes closer.
    const width = to - from >= all ? all / 8 : to - from;
    this.look(centre - width / 2, centre + width / 2);
  }
}
