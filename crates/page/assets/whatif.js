// What if the card were another, the allocator's settings others, some tensors not there? The timeline, what is
// reserved and a verdict follow. In the viewer PyTorch's allocator is replayed for each answer; elsewhere only what
// arithmetic can say is said.

import { byId, make, onceAFrame, refill } from "./dom.js";
import { bytesText, countText } from "./format.js";
import { boundsOf, judge } from "./arithmetic.js";
import { asWords, bitsOf, livesOf, nameText, namesIn, offered } from "./leaveout.js";
import { Replayer } from "./replayer.js";
import { ARITHMETIC, CACHE_DECIDES, knownBy, onCardText, showVerdict, UNKNOWN_REST } from "./whatifwords.js";

/** @import { Card, Replay, ReplayFacts } from "../types" */
/** @import { AnyReport } from "../types/either" */
/** @import { State } from "./state.js" */
/** @import { Story } from "./story.js" */

// The slider counts in these.
const MEBIBYTE = 2 ** 20;
// For the timeline: the recording as it would be, the limit, the request that failed, and other settings' blocks.
/** @typedef {{ story: Story, limit: number, tried: number, heights: number[] | null }} Pictured */
// The recorded card: its memory (0: endless) and what is not PyTorch's of it, if the file tells.
/** @typedef {{ memory: number, taken: number, isTold: boolean }} Recorded */
/** @typedef {{ item: number, story: Story, report: AnyReport, recorded: Recorded }} Subject */
// What is asked; `memory` is 0 without an end.
/** @typedef {{ memory: number, taken: number, card: Card | undefined, isAssumed: boolean }} Place */

export class WhatIf {
  /** @param {State} state @param {Card[]} cards @param {(pictured: Pictured | null) => void} draw */
  constructor(state, cards, draw) {
    this.state = state;
    this.cards = cards.toSorted((a, b) => a.memory_bytes - b.memory_bytes);
    this.draw = draw;
    this.replayer = new Replayer();
    /** @type {Subject | null} */
    this.subject = null;
    // The story without what is left out, by the words that say what.
    /** @type {{ words: string, story: Story, removed: Uint8Array } | null} */
    this.less = null;
    // What the menus were filled for.
    this.filled = "";
    // The last answer of a replay, and how long it took from the question to the picture.
    /** @type {Replay | null} */
    this.answer = null;
    this.milliseconds = 0;
    this.update = onceAFrame(() => this.updateNow());
    this.listen();
  }

  listen() {
    const { state } = this;
    this.replayer.open(() => {
      this.controls();
      this.update();
    });
    byId("what-if-button").addEventListener("click", () => {
      if (!this.isOpen()) return state.set({ ask: "open" });
      this.reset();
      state.set({ ask: "" });
    });
    byId("what-if-reset").addEventListener("click", () => this.reset());
    const slider = byId("what-if-memory");
    slider.addEventListener("input", () => state.set({ memory: Number(slider.value), card: "" }));
    const card = byId("what-if-card");
    card.addEventListener("change", () => state.set({ card: card.value, memory: null }));
    const settings = byId("what-if-settings");
    settings.addEventListener("change", () => state.set({ conf: settings.value }));
    const less = byId("what-if-less");
    less.addEventListener("change", () => this.leaveOut(less.value === "mark" ? state.now.mark : less.value));
    state.listen(["ask", "memory", "card", "conf", "without", "mark"], () => {
      this.controls();
      this.update();
    });
  }

  reset() {
    this.state.set({ memory: null, card: "", conf: "", without: "" });
  }

  /** @param {string} name */
  leaveOut(name) {
    if (name) this.state.set({ without: asWords([...namesIn(this.state.now.without), name]) });
  }

  // Another recording.
  /** @param {Subject | null} subject */
  show(subject) {
    this.subject = subject;
    this.less = null;
    this.filled = "";
    this.controls();
    this.update();
  }

  facts() {
    return this.subject ? this.replayer.facts(this.subject.item) : null;
  }

  isAsked() {
    const { memory, card, conf, without } = this.state.now;
    return memory !== null || [card, conf, without].some(Boolean);
  }

  isOpen() {
    return this.state.now.ask !== "" || this.isAsked();
  }

  // The card that is asked about. Without one it is the recorded card.
  /** @param {Recorded} recorded @returns {Place} */
  place(recorded) {
    const { memory, card: name } = this.state.now;
    const card = this.cards.find((card) => card.name === name);
    if (card) return { memory: card.memory_bytes, taken: card.context_bytes, card, isAssumed: false };
    const facts = this.facts();
    const taken = facts?.context_bytes ?? recorded.taken;
    const isAssumed = facts ? facts.context_known === "assumed" : !recorded.isTold;
    return { memory: memory === null ? recorded.memory : memory * MEBIBYTE, taken, card, isAssumed };
  }

  controls() {
    const { subject, state } = this;
    const isOpen = this.isOpen();
    byId("what-if").hidden = !isOpen || !subject;
    byId("what-if-button").setAttribute("aria-pressed", String(isOpen));
    if (!isOpen || !subject) return;
    const { story, report, recorded } = subject;
    const place = this.place(recorded),
      facts = this.facts();
    fillCards(this.cards, state.now.card);
    fillSettings(facts, state.now.conf);
    this.fillLess(story, report);
    const slider = byId("what-if-memory"),
      need = story.reservedAt(story.header.reserved_peak_tick) + place.taken;
    const most = Math.max(need * 1.5, place.memory, recorded.memory);
    slider.max = String(Math.ceil(most / MEBIBYTE));
    slider.value = String(Math.round((place.memory || most) / MEBIBYTE));
    refill(byId("what-if-size"), place.memory ? bytesText(place.memory) : "no limit");
    byId("what-if-reset").hidden = !this.isAsked();
  }

  // The menu of what may be left out, and what is left out already, each with a way back.
  /** @param {Story} story @param {AnyReport} report */
  fillLess(story, report) {
    const { mark, without } = this.state.now;
    const names = namesIn(without),
      key = [this.subject?.item, mark, without].join("\n");
    if (key === this.filled) return;
    this.filled = key;
    const groups = offered(story, report).filter(([, names]) => names.length);
    const option = (/** @type {string} */ name) => make("option", { value: name }, nameText(report, name));
    refill(
      byId("what-if-less"),
      make("option", { value: "" }, "nothing more"),
      mark ? make("option", { value: "mark" }, "what is hatched") : null,
      groups.map(([label, names]) => make("optgroup", { label }, names.map(option))),
    );
    const back = (/** @type {string} */ name) => () =>
      this.state.set({ without: asWords(names.filter((other) => other !== name)) });
    refill(
      byId("what-if-chips"),
      names.map((name) =>
        make("button", { type: "button", title: "put it back", onclick: back(name) }, `without ${nameText(report, name)} ×`),
      ),
    );
  }

  // The story without what is left out; made once for the same words.
  /** @param {Subject} subject */
  without({ story, report }) {
    const words = this.state.now.without;
    if (!this.less || this.less.words !== words) {
      const removed = words ? livesOf(story, report, namesIn(words)) : new Uint8Array(0);
      this.less = { words, removed, story: words ? story.without(removed) : story };
    }
    return this.less;
  }

  updateNow() {
    const { subject } = this;
    if (!subject) return;
    const whyNot = this.replayer.items[subject.item]?.why_not ?? "";
    if (!this.isAsked()) {
      this.draw(null);
      refill(byId("what-if-verdict"), "Move the slider, choose a GPU, or leave something out.");
      refill(byId("what-if-note"), this.facts() ? "" : [whyNot, ARITHMETIC].filter(Boolean).join(" · "));
      return;
    }
    if (this.facts()) this.askReplayer(subject);
    else this.showArithmetic(subject, whyNot);
  }

  /** @param {Subject} subject */
  askReplayer(subject) {
    const begun = performance.now();
    const { conf } = this.state.now;
    const { story, removed } = this.without(subject);
    const place = this.place(subject.recorded);
    const question = {
      item: subject.item,
      memory_bytes: place.memory || null,
      context_bytes: place.card ? place.taken : null,
      settings: conf === "" ? null : conf === DEFAULT ? "" : conf,
      bucket: story.header.bucket,
    };
    this.replayer.ask(question, bitsOf(removed), (answer) => {
      if (this.subject !== subject) return;
      if (answer.error) return this.showArithmetic(subject, answer.error.message);
      this.showReplay(subject, story, place, answer);
      this.milliseconds = performance.now() - begun;
    });
  }

  /** @param {Subject} subject @param {Story} story @param {Place} place @param {Replay} answer */
  showReplay(subject, story, place, answer) {
    const { refused } = answer;
    this.answer = answer;
    this.draw({
      story: story.replayed(answer.reserved, refused ? refused.tick : null),
      limit: place.memory ? Math.max(0, place.memory - place.taken) : 0,
      tried: refused ? refused.tried_bytes : 0,
      heights: this.state.now.conf ? answer.allocated : null,
    });
    const where = onCardText(place);
    const words = refused
      ? `Does not fit${where}: event ${countText(refused.event)} finds no ${bytesText(refused.tried_bytes)}`
      : place.memory
        ? `Fits${where}`
        : `Would take up to ${bytesText(answer.peak_reserved_bytes + place.taken)} without a limit`;
    showVerdict(refused ? "bad" : place.memory ? "good" : "plain", words, answer.verdict, place);
    const sums = `${bytesText(answer.peak_reserved_bytes)} reserved, ${bytesText(answer.peak_allocated_bytes)} allocated at most${refused ? " until then" : ""}`;
    refill(byId("what-if-note"), [sums, ...knownBy(answer, subject.report)].join(" · "));
  }

  /** @param {Subject} subject @param {string} problem */
  showArithmetic(subject, problem) {
    const { story } = this.without(subject);
    const place = this.place(subject.recorded);
    const limit = place.memory ? Math.max(0, place.memory - place.taken) : 0;
    this.draw({ story, limit, tried: 0, heights: null });
    const bounds = boundsOf(story);
    const isLess = story !== subject.story;
    const known = { isLess, isRefused: Boolean(subject.report.out_of_memory) };
    const judged = limit ? judge(bounds, limit, known) : "open";
    const at = `${bytesText(bounds.asked)} asked for at once`;
    const where = onCardText(place);
    const kept = `${bytesText(bounds.reserved)} reserved at most${isLess ? " before anything was left out" : ""}`;
    const most = bytesText(story.peakBytes());
    if (!limit) showVerdict("plain", `Would peak at ${most} allocated`, judged, place);
    else if (judged === "fits") showVerdict("good", `Fits${where}`, judged, place);
    else if (judged === "does_not_fit") showVerdict("bad", `Does not fit${where}`, judged, place);
    else showVerdict("plain", `May fit${where}: ${known.isRefused ? UNKNOWN_REST : CACHE_DECIDES}`, judged, place);
    refill(byId("what-if-note"), [problem, at, kept, ARITHMETIC].filter(Boolean).join(" · "));
  }
}

const DEFAULT = "default";
/** @param {Card[]} cards @param {string} chosen */
function fillCards(cards, chosen) {
  const select = byId("what-if-card");
  if (select.options.length !== cards.length + 1)
    refill(
      select,
      make("option", { value: "" }, "any"),
      cards.map(({ name, title, memory_bytes: memory }) =>
        make("option", { value: name }, `${title.replace(/^NVIDIA /, "")} · ${bytesText(memory)}`),
      ),
    );
  select.value = chosen;
}

// Other settings can only be replayed.
/** @param {ReplayFacts | null} facts @param {string} chosen */
function fillSettings(facts, chosen) {
  const select = byId("what-if-settings");
  select.disabled = !facts;
  select.title = facts ? "" : "needs a replay: `fathom viewer` has one";
  const others = facts ? facts.others.map((conf) => conf || DEFAULT) : [];
  if (facts && chosen && !others.includes(chosen)) others.push(chosen);
  refill(
    select,
    make("option", { value: "" }, "as recorded" + (facts?.settings ? `: ${facts.settings}` : "")),
    others.map((conf) => make("option", { value: conf }, conf)),
  );
  select.value = facts ? chosen : "";
}
