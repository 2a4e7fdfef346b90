// What the address keeps: the bundle and the language, never a text. Language and theme are those of the lens page.
/** @import { Language } from "../shared/types.js" */
/** @import { Theme } from "./playground_types.js" */

const SHARED = "manyheads-lens"; // in localStorage; the lens page reads it too
const THEMES = /** @type {const} */ (["auto", "light", "dark"]);
const MAX_NAME = 200;

/** @typedef {{ bundle: string, lang: Language, theme: Theme }} PlayState */

/** The fields of an address; unknown ones and wrong values are ignored. @param {string} hash @returns {Partial<PlayState>} */
export function readAddress(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {Partial<PlayState>} */
  const found = {};
  const [bundle, lang, theme] = [fields.get("bundle"), fields.get("lang"), fields.get("theme")];
  if (bundle && bundle.length <= MAX_NAME) found.bundle = bundle;
  if (lang === "en" || lang === "zh") found.lang = lang;
  const known = THEMES.find((one) => one === theme);
  if (known) found.theme = known;
  return found;
}

/** @param {PlayState} state */
export function writeAddress({ bundle, lang }) {
  return "#" + new URLSearchParams({ ...(bundle ? { bundle } : {}), lang });
}

/** Language and theme of the last visit. @param {PlayState} state */
export function remember({ lang, theme }) {
  try { localStorage.setItem(SHARED, new URLSearchParams({ lang, theme }).toString()); } catch { /* no storage */ }
}

/** The state of the address, of the last visit, or of the browser. @returns {PlayState} */
export function startState() {
  const chosen = document.documentElement.dataset.language ?? navigator.language;
  /** @type {PlayState} */
  const usual = { bundle: "", lang: /^zh\b/i.test(chosen) ? "zh" : "en", theme: "auto" };
  let stored = "";
  try { stored = localStorage.getItem(SHARED) ?? ""; } catch { /* no storage */ }
  const { lang = usual.lang, theme = usual.theme } = readAddress(stored);
  return { ...usual, lang, theme, ...readAddress(location.hash) };
}
