// Small helpers to build the page. Texts are set as text, never parsed as HTML.

/**
 * @typedef {{ [name: string]: string | number | boolean | null | undefined | ((event: any) => void) }} Attributes
 * `text` sets textContent, `onclick` and the like add listeners, false and null leave an attribute out.
 */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Attributes} [attributes] @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  setAttributes(node, attributes);
  append(node, children);
  return node;
}

/**
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag @param {Attributes} [attributes] @param {...(Node | string | null)} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(node, attributes);
  append(node, children);
  return node;
}

/** @param {Element} node @param {Attributes} attributes */
export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
    else if (name === "text") node.textContent = String(value ?? "");
    else if (value === false || value === null || value === undefined) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {Node} node @param {(Node | string | null)[]} children */
function append(node, children) {
  for (const child of children) if (child !== null) node.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
}

/** Sets the text only where it differs: an unchanged node keeps the reader's selection. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * A group of buttons of which one is pressed.
 * @template {string} T
 * @param {{ values: readonly T[], choose: (value: T) => void }} options
 */
export function choice({ values, choose }) {
  const root = el("div", { class: "switch", role: "group" });
  const buttons = values.map((value) => {
    const button = el("button", { type: "button", value, onclick: () => choose(value) });
    root.append(button);
    return button;
  });
  return {
    root,
    /** @param {T} current @param {string} label @param {(value: T) => string} name @param {(value: T) => boolean} [isAllowed] */
    show(current, label, name, isAllowed) {
      root.setAttribute("aria-label", label);
      values.forEach((value, i) => {
        setText(buttons[i], name(value));
        buttons[i].setAttribute("aria-pressed", String(value === current));
        buttons[i].disabled = isAllowed ? !isAllowed(value) : false;
      });
    },
  };
}

/** The value of a CSS variable such as "--main". @param {string} name */
export function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#000";
}

/** Red, green and blue of a color such as "#0b62a4" or "#fff". @param {string} color @returns {[number, number, number]} */
export function rgb(color) {
  const hex = color.replace("#", "");
  const full = hex.length < 6 ? [...hex.slice(0, 3)].map((c) => c + c).join("") : hex;
  const part = (/** @type {number} */ i) => parseInt(full.slice(i, i + 2), 16) || 0;
  return [part(0), part(2), part(4)];
}

/**
 * Gives a canvas its size in CSS pixels, sharp on dense screens, cleared.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 * @returns {CanvasRenderingContext2D}
 */
export function fitCanvas(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.setProperty("width", `${width}px`);
    canvas.style.setProperty("height", `${height}px`);
  }
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/** Runs at most once per frame. @param {() => void} draw */
export function perFrame(draw) {
  let isPlanned = false;
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(() => { isPlanned = false; draw(); });
  };
}

/** Whether the user is typing. @param {EventTarget | null} target */
export function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Whatever was thrown, as a Problem. @param {unknown} thrown @returns {import("./types.js").Problem} */
export function asProblem(thrown) {
  if (typeof thrown === "object" && thrown && "detail" in thrown && "status" in thrown) {
    return /** @type {import("./types.js").Problem} */ (thrown);
  }
  return { title: "Error", status: 0, detail: thrown instanceof Error ? thrown.message : String(thrown) };
}
