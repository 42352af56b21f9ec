// The viewer: takes files, hands them to the worker, shows what comes back. Nothing here can reach a network.

import { byId, choices, make, refill } from "../dom.js";
import { bytesText } from "../format.js";
import { fromBase64, inflate } from "../unpack.js";

/** @import { AnswerOf } from "../../types/viewer" */

// An analysis takes some times the memory of its file, and a browser's can address four gigabytes.
const LARGEST = 2 ** 30;

class Viewer {
  /** @param {Uint8Array<ArrayBuffer>} wasm */
  constructor(wasm) {
    this.wasm = wasm;
    const source = byId("fathom-worker").textContent ?? "";
    this.workerUrl = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    /** @type {Worker | null} */
    this.worker = null;
    // What is shown, and of what.
    /** @type {AnswerOf | null} */
    this.answer = null;
    /** @type {File[]} */
    this.files = [];
    /** @type {"page" | "text" | "json"} */
    this.view = "page";
    // The next file that is chosen is the other side.
    this.isComparing = false;
    this.listen();
  }

  listen() {
    const files = /** @type {HTMLInputElement} */ (byId("viewer-files"));
    files.addEventListener("change", () => {
      const chosen = [...(files.files ?? [])];
      files.value = "";
      this.take(chosen);
    });
    byId("viewer-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = /** @type {HTMLTextAreaElement} */ (byId("viewer-text")).value;
      this.ask([new File([text], "the text")], false);
    });
    byId("viewer-another").addEventListener("click", () => this.start());
    byId("viewer-stop").addEventListener("click", () => this.start());
    byId("viewer-compare").addEventListener("click", () => {
      this.isComparing = true;
      files.click();
    });
    byId("viewer-save").addEventListener("click", () => this.save());
    this.listenToDrops();
    this.listenToPage();
  }

  // The page in the frame asks what can be replayed, and then for replays. It has an origin that is nobody's, so that
  // neither side can name it; who speaks is known by the window.
  listenToPage() {
    const page = () => this.frame.contentWindow;
    globalThis.addEventListener("message", ({ source, data }) => {
      if (!source || source !== page() || typeof data !== "object" || !data) return;
      if (data.fathom === "can you replay")
        page()?.postMessage({ fathom: "replays", items: this.answer?.what_if ?? [] }, "*");
      if (data.fathom !== "replay") return;
      const { number, question, removed } = data;
      this.worker?.postMessage({ replay: { number, question, removed } });
    });
  }

  get frame() {
    return /** @type {HTMLIFrameElement} */ (byId("viewer-page"));
  }

  listenToDrops() {
    const { classList } = document.documentElement;
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      classList.add("dropping");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) classList.remove("dropping");
    });
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      classList.remove("dropping");
      this.take([...(event.dataTransfer?.files ?? [])]);
    });
  }

  // Two runs are compared; any other number is explained, each for itself.
  /** @param {File[]} chosen */
  take(chosen) {
    if (!chosen.length) return;
    const files = this.isComparing ? [...this.files.slice(0, 1), ...chosen.slice(0, 1)] : chosen;
    this.isComparing = false;
    this.ask(files, files.length === 2 && !files.some(({ name }) => /\.(log|txt|out|err)$/i.test(name)));
  }

  /** @param {File[]} files @param {boolean} compare */
  ask(files, compare) {
    this.end();
    this.files = files;
    this.answer = null;
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const names = files.map(({ name }) => name).join(", ");
    if (size > LARGEST) {
      const message = `\`${names}\` has ${bytesText(size)}: a browser has no room for more than ${bytesText(LARGEST)}`;
      this.show({ error: { message, hint: "install Fathom, and use `fathom page FILE -o page.html`" } });
      return;
    }
    this.busy(`Reading ${names} (${bytesText(size)})`);
    const worker = new Worker(this.workerUrl);
    this.worker = worker;
    worker.addEventListener("message", ({ data }) => {
      if (this.worker !== worker) return;
      if (data.replayed) this.frame.contentWindow?.postMessage({ fathom: "replayed", ...data.replayed }, "*");
      else if (data.doing) this.busy(`${data.doing} ${names}`);
      else this.finish(data.done);
    });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      if (this.worker !== worker) return;
      this.finish({ error: { message: `the analysis ended: ${event.message || "its worker failed"}`, hint: null } });
    });
    worker.postMessage({ wasm: this.wasm, files, compare });
  }

  end() {
    this.worker?.terminate();
    this.worker = null;
  }

  start() {
    this.end();
    this.isComparing = false;
    this.answer = null;
    this.show(null);
  }

  /** @param {string} doing */
  busy(doing) {
    this.show(null);
    byId("viewer-start").hidden = true;
    byId("viewer-busy").hidden = false;
    refill(byId("viewer-doing"), doing + " …");
    delete document.documentElement.dataset.answered;
  }

  /** @param {AnswerOf} answer */
  finish(answer) {
    // The worker stays for what a page asks further.
    if (!answer.what_if?.some((facts) => facts && !facts.why_not)) this.end();
    this.view = answer.page ? "page" : "text";
    this.show(answer);
  }

  // An answer, a problem, or the start.
  /** @param {AnswerOf | null} answer */
  show(answer) {
    this.answer = answer?.error ? null : answer;
    const isShown = this.answer !== null;
    byId("viewer-busy").hidden = true;
    byId("viewer-start").hidden = isShown;
    byId("viewer-tools").hidden = !isShown;
    byId("viewer-compare").hidden = this.files.length !== 1 || !answer?.page;
    refill(byId("viewer-name"), isShown ? this.files.map(({ name }) => name).join(", ") : "viewer");
    const problem = byId("viewer-problem");
    problem.hidden = !answer?.error;
    if (answer?.error) {
      const { message, hint } = answer.error;
      refill(problem, make("p", {}, message), hint ? make("p", {}, `hint: ${hint}`) : null);
    }
    this.showView();
    if (answer) document.documentElement.dataset.answered = answer.error ? "error" : "answer";
  }

  showView() {
    const { answer, view } = this;
    const { frame } = this;
    const text = byId("viewer-answer");
    frame.hidden = !answer || view !== "page";
    text.hidden = !answer || view === "page";
    if (!answer) {
      frame.removeAttribute("srcdoc");
      return;
    }
    // The page has a policy of its own, which is no wider than this one's, and an origin that is nobody's.
    if (answer.page && frame.srcdoc !== answer.page) frame.srcdoc = answer.page;
    refill(text, (view === "json" ? answer.json : answer.text) ?? "");
    /** @type {["page" | "text" | "json", string][]} */
    const views = [
      ["page", "Page"],
      ["text", "Text"],
      ["json", "JSON"],
    ];
    const there = views.filter(([name]) => answer[name]);
    const choose = (/** @type {"page" | "text" | "json"} */ chosen) => {
      this.view = chosen;
      this.showView();
    };
    refill(byId("viewer-views"), choices("shown as", there, view, choose));
  }

  // What is shown, as a file.
  save() {
    const { answer, view } = this;
    if (!answer) return;
    const ending = { page: "html", text: "txt", json: "json" }[view];
    const url = URL.createObjectURL(new Blob([answer[view] ?? ""]));
    make("a", { href: url, download: `${this.files[0]?.name ?? "fathom"}.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}

export async function main() {
  const wasm = await inflate(fromBase64(byId("fathom-wasm").textContent ?? ""));
  Object.assign(globalThis, { fathom: new Viewer(wasm) });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
