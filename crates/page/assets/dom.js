// Making elements. Texts become text nodes and nothing else: no name from a recording is ever read as markup.

export function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

// Other children instead of those that are there.
export function refill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
}

// A row of buttons of which one is pressed.
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

// A canvas of its element's width, sharp on dense screens; gives the context and the size in CSS pixels.
export function fitCanvas(canvas, height) {
  const width = Math.max(1, Math.floor(canvas.parentElement.clientWidth));
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
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return { context, width, height };
}

// The note that follows the pointer.
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
