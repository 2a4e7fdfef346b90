// The state of the page, kept in the address (location.hash): copying the address restores the page.
/** @import { State, Store } from "./lens_types.js" */

const PAGES = /** @type {const} */ (["text", "heads", "head", "compare", "tour"]);
const UNITS = /** @type {const} */ (["tokens", "characters", "words"]);
const KINDS = /** @type {const} */ (["weights", "norms"]);
const COLORS = /** @type {const} */ (["role", "importance"]);
const COMPARED = /** @type {const} */ (["texts", "bundles", "training"]);
const DIFFERENCES = /** @type {const} */ (["map", "entropy", "sink"]);
const LANGUAGES = /** @type {const} */ (["en", "zh"]);
const THEMES = /** @type {const} */ (["auto", "light", "dark"]);
const MAX_TEXT = 100_000; // characters accepted from an address
const MAX_LIST = 2000;
const MAX_NAME = 80; // of a role or a word to find
const PAUSE = 250; // milliseconds between two small changes of the address
const HEAD = /^[a-z]+\.\d+\.[a-z]+\/\d+$/;
const ATTENTION = /^[a-z]+\.\d+\.[a-z]+$/;
const MEASURE = /^[\w+-]{1,40}$/;
// Changes of these make an entry in the browser's history; the others replace the current one.
const STEPS = new Set(["page", "bundle", "text", "answer", "step", "text2", "attention", "head", "compare"]);

const OWN = "lens"; // marks entries of the browser's history that this page made

/** @returns {State} */
export function defaultState() {
  const chosen = typeof document === "object" ? document.documentElement.dataset.language : undefined;
  const chinese = /^zh\b/i.test(chosen ?? (typeof navigator === "object" ? navigator.language || "" : ""));
  return {
    page: "text", bundle: "a", text: "", answer: null, step: null, text2: null, attention: "", head: 0,
    pins: [], keyPins: [], off: [], unit: "tokens", kind: "weights", sinks: true, mass: 0.9, at: null,
    colorBy: "role", lang: chinese ? "zh" : "en", theme: "auto", tour: 0,
    compare: null, differBy: "map", axisX: "entropy", axisY: "importance", onlyRole: "", onlyKind: "", find: "", groupBy: "", sortBy: "",
  };
}

/**
 * @template {string} T
 * @param {string} text @param {readonly T[]} allowed @returns {T | undefined}
 */
function oneOf(text, allowed) {
  return allowed.find((value) => value === text);
}

/** @param {string} text @returns {number | undefined} */
function count(text) {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** @param {string} text @returns {number[]} */
function counts(text) {
  return text.split(",").map(count).filter((n) => n !== undefined).slice(0, MAX_LIST);
}

/** @param {string} text @returns {string | undefined} */
function measure(text) {
  return MEASURE.test(text) ? text : undefined;
}

/** @type {{ [K in keyof State]: (text: string) => State[K] | undefined }} */
const READERS = {
  page: (text) => oneOf(text, PAGES),
  bundle: (text) => oneOf(text, ["a", "b"]),
  text: (text) => text.slice(0, MAX_TEXT),
  answer: (text) => text.slice(0, MAX_TEXT),
  step: count,
  text2: (text) => text.slice(0, MAX_TEXT),
  attention: (text) => (ATTENTION.test(text) ? text : undefined),
  head: count,
  pins: counts,
  keyPins: counts,
  off: (text) => text.split(",").filter((head) => HEAD.test(head)).slice(0, MAX_LIST),
  unit: (text) => oneOf(text, UNITS),
  kind: (text) => oneOf(text, KINDS),
  sinks: (text) => (text === "1" ? true : text === "0" ? false : undefined),
  mass: (text) => (/^[\d.]{1,6}$/.test(text) && Number(text) >= 0 && Number(text) <= 1 ? Number(text) : undefined),
  at: count,
  colorBy: (text) => oneOf(text, COLORS),
  lang: (text) => oneOf(text, LANGUAGES),
  theme: (text) => oneOf(text, THEMES),
  tour: count,
  compare: (text) => oneOf(text, COMPARED),
  differBy: (text) => oneOf(text, DIFFERENCES),
  axisX: measure,
  axisY: measure,
  onlyRole: (text) => text.slice(0, MAX_NAME),
  onlyKind: (text) => oneOf(text, ["encoder", "decoder", "cross"]),
  find: (text) => text.slice(0, MAX_NAME),
  groupBy: (text) => oneOf(text, ["role", "layer"]),
  sortBy: measure,
};
const KEYS = /** @type {(keyof State)[]} */ (Object.keys(READERS));

/** Reads an address; unknown or bad values are ignored. @param {string} hash @returns {Partial<State>} */
export function readAddress(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {Record<string, unknown>} */
  const found = {};
  for (const key of KEYS) {
    const text = parameters.get(key);
    const value = text === null ? undefined : READERS[key](text);
    if (value !== undefined) found[key] = value;
  }
  return /** @type {Partial<State>} */ (found);
}

/** Writes what differs from the default. @param {State} state @returns {string} */
export function writeAddress(state) {
  const normal = defaultState();
  const parameters = new URLSearchParams();
  for (const key of KEYS) {
    const value = state[key];
    // The language is written always: its default depends on the browser.
    if (value === null || (key !== "text" && key !== "lang" && isSame(value, normal[key]))) continue;
    parameters.set(key, typeof value === "boolean" ? (value ? "1" : "0") : String(value));
  }
  return "#" + parameters.toString();
}

/** @param {unknown} one @param {unknown} other */
function isSame(one, other) {
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((x, i) => x === other[i]);
  return one === other;
}

/** @returns {Store} */
export function createStore() {
  /** @type {State} */
  let state = { ...defaultState(), ...remembered(), ...readAddress(savedAddress()), ...readAddress(location.hash) };
  /** @type {Set<(changed: ReadonlySet<keyof State>) => void>} */
  const listeners = new Set();

  /** @param {Partial<State>} change @returns {Set<keyof State>} */
  function apply(change) {
    const next = { ...state, ...change };
    const changed = new Set(KEYS.filter((key) => !isSame(state[key], next[key])));
    state = next;
    return changed;
  }
  /** @param {ReadonlySet<keyof State>} changed */
  function tell(changed) {
    for (const listener of [...listeners]) listener(changed);
  }

  let written = 0;
  let planned = 0;
  /** Browsers limit how often the address may change: a slider that is dragged writes a few times per second. @param {boolean} isStep */
  function write(isStep) {
    clearTimeout(planned);
    const wait = isStep ? 0 : written + PAUSE - Date.now();
    if (wait > 0) {
      planned = window.setTimeout(() => write(false), wait);
      return;
    }
    written = Date.now();
    try {
      history[isStep ? "pushState" : "replaceState"](OWN, "", writeAddress(state));
    } catch { /* a document without an address of its own */ }
  }

  addEventListener("popstate", (event) => {
    clearTimeout(planned);
    const { lang, theme } = state;
    const changed = apply({ ...defaultState(), lang, theme, ...readAddress(location.hash) });
    // Going back in the history does not undo a change of the language; an address that was pasted sets it.
    if (event.state === OWN) {
      for (const key of apply({ lang, theme })) changed.delete(key);
      write(false);
    }
    if (changed.size) tell(changed);
  });
  return {
    get state() { return state; },
    set(change, { isMinor = false } = {}) {
      const changed = apply(change);
      if (!changed.size) return;
      remember(state);
      const isStep = !isMinor && [...changed].some((key) => STEPS.has(key));
      write(isStep);
      tell(changed);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    address: (change = {}) => writeAddress({ ...state, ...change }),
  };
}

/** The address of the page that was saved as this file. */
const savedAddress = () => document.documentElement.dataset.state ?? "";

/** Language and theme of the last visit. @returns {Partial<State>} */
function remembered() {
  try { return readAddress(localStorage.getItem("manyheads-lens") ?? ""); } catch { return {}; }
}

/** @param {State} state */
function remember(state) {
  try { localStorage.setItem("manyheads-lens", new URLSearchParams({ lang: state.lang, theme: state.theme }).toString()); } catch { /* no storage */ }
}
