// Making elements. Texts become text nodes and nothing else: no name from a recording is ever read as markup.

/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{ width: number, height: number }} Size */
/** @typedef {{ clientX: number, clientY: number }} Pointer */
/** @typedef {string | Node | null | undefined} OneChild */
/** @typedef {OneChild | OneChild[]} Child */
/** @typedef {string | number | boolean | null | undefined | Record<string, string | undefined>} Value */
/** @typedef {Record<string, Value | ((event: any) => unknown)>} Properties */

// Elements of body.html that can do more than others.
/**
 * @typedef {object} Elements
 * @property {HTMLCanvasElement} timeline-canvas
 * @property {HTMLCanvasElement} overview-canvas
 * @property {HTMLCanvasElement} moment-canvas
 * @property {HTMLCanvasElement} segments-canvas
 * @property {HTMLInputElement} moment-slider
 * @property {HTMLInputElement} table-search
 * @property {HTMLSelectElement} item-select
 * @property {HTMLInputElement} what-if-memory
 * @property {HTMLSelectElement} what-if-card
 * @property {HTMLSelectElement} what-if-settings
 * @property {HTMLSelectElement} what-if-less
 */

// A property of a function listens, as `onclick` does; `style` has properties of its own.
/** @template {keyof HTMLElementTagNameMap} Tag @param {Tag} tag @param {Properties} properties
 *  @param {Child[]} children @returns {HTMLElementTagNameMap[Tag]} */
export function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...presentNodes(children));
  return element;
}

// Other children instead of those that are there.
/** @param {Element} element @param {Child[]} children */
export function refill(element, ...children) {
  element.replaceChildren(...presentNodes(children));
}

// What is to be seen: lists taken apart, and nothing for what is left out.
/** @param {Child[]} children */
function presentNodes(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined)
    .filter((child) => child !== "");
}

// An element of body.html, which has every id that is asked for: a test says so.
/** @template {string} Id @param {Id} id @returns {Id extends keyof Elements ? Elements[Id] : HTMLElement} */
export function byId(id) {
  const element = /** @type {any} */ (document.getElementById(id));
  if (!element) throw new Error(`the page has no element \`${id}\``);
  return element;
}

// A row of buttons of which one is pressed.
/** @template {string | number} Name @param {string} label @param {[Name, string][]} options @param {Name} chosen
 *  @param {(name: Name) => void} choose */
export function choices(label, options, chosen, choose) {
  const buttons = options.map(([value, text]) =>
    make(
      "button",
      { type: "button", "aria-pressed": String(value === chosen), "data-value": value, onclick: () => choose(value) },
      text,
    ),
  );
  return make("div", { class: "choices", role: "group", "aria-label": label }, buttons);
}

// How wide a canvas can be: as its element.
/** @param {HTMLCanvasElement} canvas */
export function roomOf(canvas) {
  return Math.max(1, Math.floor(canvas.parentElement?.clientWidth ?? 0));
}

// What takes the place of a canvas's context while its picture is written down.
/** @type {{ canvas: HTMLCanvasElement, context: Context } | null} */
let instead = null;

// Draws into another context than the canvas's own.
/** @param {HTMLCanvasElement} canvas @param {Context} context @param {() => void} draw */
export function drawnInto(canvas, context, draw) {
  instead = { canvas, context };
  try {
    draw();
  } finally {
    instead = null;
  }
}

// A canvas of its element's width, sharp on dense screens; gives the context and the size in CSS pixels.
/** @param {HTMLCanvasElement} canvas @param {number} height */
export function fitCanvas(canvas, height) {
  const width = roomOf(canvas);
  if (instead?.canvas === canvas) return { context: instead.context, width, height };
  const scale = Math.min(2, globalThis.devicePixelRatio || 1);
  const wide = Math.round(width * scale),
    high = Math.round(height * scale);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d", { alpha: false });
  if (!context) throw new Error("this browser gives no canvas to draw on");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return { context, width, height };
}

// The note that follows the pointer.
/** @param {Pointer} event @param {string[]} lines */
export function showTip(event, lines) {
  const tip = byId("tip");
  refill(
    tip,
    lines.map((line, index) => make("div", { class: index ? "" : "first" }, line)),
  );
  tip.hidden = false;
  const room = document.documentElement;
  const left = Math.min(event.clientX + 14, room.clientWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18;
  const top = below + tip.offsetHeight > room.clientHeight ? event.clientY - tip.offsetHeight - 12 : below;
  tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
}

export function hideTip() {
  byId("tip").hidden = true;
}

// Calls at most once for each frame.
/** @param {() => void} action */
export function onceAFrame(action) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      action();
    });
  };
}
