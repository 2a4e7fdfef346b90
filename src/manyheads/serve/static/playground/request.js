// What is sent for a bundle: its settings, the JSON body, and the same request as a command line.
/** @import { AnswerForm } from "../shared/types.js" */
/** @import { Body } from "./api.js" */
/** @import { Bundle, Session, Term, Value, Values } from "./playground_types.js" */

export const MASK = "[MASK]";
const N_BEST = 3;

/**
 * A setting that the user can change. `usual` is its value until then; null: not set, which `isOff` calls "off".
 * @typedef {{
 *   name: string, kind: "number" | "range" | "choice" | "check" | "text" | "lines", isDecode?: boolean,
 *   min?: number, max?: number, step?: number, choices?: readonly string[], usual: (bundle: Bundle) => Value | null,
 *   isUsed?: (values: Values) => boolean, isOff?: boolean,
 * }} Setting
 */

/** @param {string} name @param {Value | null} otherwise @returns {(bundle: Bundle) => Value | null} */
const ofBundle = (name, otherwise) => ({ decode }) => {
  const value = decode[name];
  return typeof value === "number" || typeof value === "string" || typeof value === "boolean" ? value : otherwise;
};
const isBeam = (/** @type {Values} */ values) => values.method === "beam";
const isSample = (/** @type {Values} */ values) => values.method === "sample";

/** @type {Setting} */
const MAX_NEW_TOKENS = { name: "max_new_tokens", kind: "number", isDecode: true, min: 1, max: 100_000, step: 1, usual: ofBundle("max_new_tokens", null) };
/** @type {Setting} */
const NO_REPEAT = { name: "no_repeat_ngram", kind: "number", isDecode: true, min: 1, max: 100, step: 1, usual: ofBundle("no_repeat_ngram", null), isOff: true };

/** @type {Record<AnswerForm, Setting[]>} */
export const SETTINGS = {
  text: [
    { name: "method", kind: "choice", choices: ["beam", "greedy"], isDecode: true, usual: (bundle) => (bundle.decode.method === "greedy" ? "greedy" : "beam") },
    { name: "beam", kind: "number", isDecode: true, min: 1, max: 256, step: 1, usual: ofBundle("beam", 4), isUsed: isBeam },
    { name: "n_best", kind: "number", min: 1, max: 50, step: 1, usual: () => N_BEST, isUsed: isBeam },
    { name: "length_penalty", kind: "number", isDecode: true, min: 0, max: 10, step: 0.1, usual: ofBundle("length_penalty", null), isUsed: isBeam },
    MAX_NEW_TOKENS,
    NO_REPEAT,
    { name: "abstain", kind: "number", min: 0, max: 1, step: 0.05, usual: () => null, isOff: true },
    { name: "prefix", kind: "text", usual: () => "" },
    { name: "align", kind: "check", usual: () => true },
  ],
  labels: [{ name: "threshold", kind: "range", min: 0, max: 0.99, step: 0.01, usual: () => 0 }],
  spans: [],
  continuation: [
    { name: "method", kind: "choice", choices: ["sample", "greedy"], isDecode: true, usual: (bundle) => (bundle.decode.method === "greedy" ? "greedy" : "sample") },
    { name: "temperature", kind: "number", isDecode: true, min: 0.05, max: 10, step: 0.05, usual: ofBundle("temperature", 1), isUsed: isSample },
    { name: "top_p", kind: "number", isDecode: true, min: 0.01, max: 1, step: 0.01, usual: ofBundle("top_p", 1), isUsed: isSample },
    { ...MAX_NEW_TOKENS, usual: ofBundle("max_new_tokens", 50) },
    { name: "seed", kind: "number", isDecode: true, min: 0, max: 2 ** 31 - 1, step: 1, usual: ofBundle("seed", 1), isUsed: isSample },
    NO_REPEAT,
  ],
  masks: [],
  vector: [],
};

/** The values of all settings of a bundle, usual ones included. @param {Session} session @returns {Values} */
export function valuesOf({ bundle, values }) {
  /** @type {Values} */
  const all = {};
  for (const setting of SETTINGS[bundle.answer_form]) {
    const value = values[setting.name] ?? setting.usual(bundle);
    if (value !== null) all[setting.name] = value;
  }
  return all;
}

/** The name of the first setting whose value is not allowed. @param {Session} session @returns {Setting | null} */
export function wrongSetting(session) {
  const all = valuesOf(session);
  return SETTINGS[session.bundle.answer_form].find(({ name, kind, min = -Infinity, max = Infinity, step, isUsed = () => true }) => {
    const value = all[name];
    if (kind !== "number" || value === undefined || !isUsed(all)) return false;
    return typeof value !== "number" || !Number.isFinite(value) || value < min || value > max || (step === 1 && !Number.isInteger(value));
  }) ?? null;
}

/** Rows of a glossary as the server takes them; rows that are not complete are left out. @param {Term[]} terms */
export function glossaryOf(terms) {
  return Object.fromEntries(terms.map(({ source, target }) => [source.trim(), target.trim()]).filter(([source, target]) => source && target));
}

/** The lines of a text that are not blank. @param {Value | undefined} text */
const linesOf = (text) => [...new Set(String(text ?? "").split("\n").map((line) => line.trim()).filter(Boolean))];

/** The body of POST /v1/predict: only what differs from the bundle's own settings. @param {Session} session @returns {Body} */
export function bodyOf(session) {
  const { bundle, text, values } = session;
  const all = valuesOf(session);
  /** @type {Body} */
  const body = { bundle: bundle.name, texts: [text] };
  /** @type {Record<string, Value>} */
  const decode = {};
  for (const { name, isDecode, usual, isUsed = () => true } of SETTINGS[bundle.answer_form]) {
    const value = all[name];
    if (value === undefined || value === "" || !isUsed(all)) continue;
    if (isDecode && (value !== usual(bundle) || value !== (bundle.decode[name] ?? value))) decode[name] = value;
    if (!isDecode && value !== false && value !== 0) body[name] = value;
  }
  if (bundle.answer_form === "text") {
    const n_best = Number(body.n_best ?? 1);
    if (n_best === 1) delete body.n_best;
    else if (Number(all.beam) < n_best) decode.beam = n_best; // a beam search returns no more hypotheses than it keeps
    const glossary = glossaryOf(values.glossary === false ? [] : session.terms);
    const keep = linesOf(values.keep);
    if (Object.keys(glossary).length) body.glossary = glossary;
    if (keep.length) body.keep = keep;
    if (values.format === "html") {
      body.format = "html";
      delete body.align; // words of marked-up text have no alignment
    }
  }
  if (Object.keys(decode).length) body.decode = decode;
  return body;
}

/** The request as a command line. @param {string} url @param {Body} body @param {boolean} hasKey */
export function curlOf(url, body, hasKey) {
  const isStream = body.stream === true;
  return [
    `curl ${isStream ? "-N " : ""}${quoted(url)}`,
    "-H 'Content-Type: application/json'",
    ...(hasKey ? ['-H "Authorization: Bearer $MANYHEADS_KEY"'] : []),
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}

/** As one word of a POSIX shell. @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
