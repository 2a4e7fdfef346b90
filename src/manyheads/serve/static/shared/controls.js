// Buttons, lists and parts of the page that are rebuilt only when what they show has changed.
/** @import { Attributes } from "./dom.js" */
import { el } from "./dom.js";

/** @typedef {Node | string | null} Child */

/** @param {string} text @param {() => void} act @param {Attributes} [attributes] */
export function button(text, act, attributes = {}) {
  return el("button", { type: "button", "data-key": text, onclick: act, ...attributes }, text);
}

/**
 * A few choices of which one is pressed.
 * @template {string} T
 * @param {string} label @param {readonly (readonly [T, string])[]} choices value and text @param {T} current @param {(value: T) => void} choose
 */
export function switchGroup(label, choices, current, choose) {
  return el("div", { class: "switch", role: "group", "aria-label": label }, ...choices.map(([value, text]) =>
    button(text, () => choose(value), { "aria-pressed": String(value === current), "data-key": `${label} ${value}` })));
}

/**
 * A drop-down list with its label.
 * @param {string} label @param {(readonly [string, string])[]} choices value and text @param {string} current @param {(value: string) => void} choose
 */
export function dropdown(label, choices, current, choose) {
  const select = el("select", { "data-key": label, onchange: () => choose(select.value) },
    ...choices.map(([value, text]) => el("option", { value, selected: value === current }, text)));
  return el("label", { class: "field" }, el("span", {}, label), select);
}

/**
 * A switch of one head or layer: on, or off.
 * @param {string} label @param {boolean} isOn @param {() => void} act
 */
export function powerSwitch(label, isOn, act) {
  return el("button", { type: "button", role: "switch", class: "power", "aria-label": label, "aria-checked": String(isOn), onclick: act });
}

/** A progress bar; `done` from 0 to 1, null if unknown. @param {string} label @param {number | null} done */
export function progressBar(label, done) {
  const fill = el("div");
  fill.style.setProperty("inline-size", `${100 * (done ?? 0)}%`);
  return el("div", { class: "progress", role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-valuenow": done === null ? null : Math.round(100 * done) }, fill);
}

/** @type {WeakMap<HTMLElement, unknown[]>} */
const shown = new WeakMap();

/**
 * Rebuild the content of a node if its key changed. The focus stays on the element with the same `data-key`.
 * @param {HTMLElement} node @param {unknown[]} key @param {() => Child[]} build
 * @returns {boolean} whether it was rebuilt
 */
export function show(node, key, build) {
  const last = shown.get(node);
  if (last && last.length === key.length && last.every((part, i) => Object.is(part, key[i]))) return false;
  shown.set(node, key);
  const active = document.activeElement;
  const focused = active instanceof HTMLElement && node.contains(active) ? active.dataset.key : undefined;
  node.replaceChildren(...build().filter((child) => child !== null));
  if (focused !== undefined) {
    const again = [...node.querySelectorAll("[data-key]")].find((one) => one instanceof HTMLElement && one.dataset.key === focused);
    if (again instanceof HTMLElement) again.focus({ preventScroll: true });
  }
  return true;
}
