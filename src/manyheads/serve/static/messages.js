/** @import { Language, Names } from "./types.js" */
// The texts of the page in both languages. Other modules add theirs with registerMessages.

/** @type {Record<Language, Record<string, string>>} */
const tables = { en: {}, zh: {} };
/** @type {Language} */
let language = "en";

/** @param {Record<Language, Record<string, string>>} added */
export function registerMessages(added) {
  Object.assign(tables.en, added.en);
  Object.assign(tables.zh, added.zh);
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

/** @param {Names} names */
export function pick(names) {
  return names[language] ?? names.en;
}

/** Keys that only one of the languages has; empty when the tables are complete. @returns {string[]} */
export function incompleteMessages() {
  const keys = new Set([...Object.keys(tables.en), ...Object.keys(tables.zh)]);
  return [...keys].filter((key) => !(key in tables.en) || !(key in tables.zh));
}
