// The texts of the page. The server writes the table of each language into the page, and so does a saved page.
/** @import { Language, Names, Translate } from "./types.js" */

/** @type {Record<Language, Record<string, string>>} */
const tables = { en: {}, zh: {} };
/** @type {Language} */
let language = "en";

/** @param {Partial<Record<Language, Record<string, string>>>} added */
export function registerMessages(added) {
  Object.assign(tables.en, added.en);
  Object.assign(tables.zh, added.zh);
}

/** Takes the tables that the page contains: <script type="application/json" id="messages">. */
export function readMessages() {
  registerMessages(JSON.parse(document.getElementById("messages")?.textContent || "{}"));
}

/** @param {Language} chosen */
export function setLanguage(chosen) {
  language = chosen;
}

/** @returns {Language} */
export function currentLanguage() {
  return language;
}

/**
 * The message in the language in use; `{name}` is replaced by values.name.
 * @param {string} key @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const text = tables[language][key] ?? tables.en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Sentences one after the other, with a space between them where the language has one. @param {Translate} t @param {readonly string[]} parts */
export function sentences(t, parts) {
  return parts.filter(Boolean).reduce((before, after) => (before ? t("sentences", { before, after }) : after), "");
}

/** @param {Names} names */
export function pick(names) {
  return names[language] ?? names.en;
}
