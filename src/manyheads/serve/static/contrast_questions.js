// What the model chose for a text, and what it could have chosen instead.
/** @import { Output, Trace } from "./types.js" */
import { visibleText } from "./compared_shares.js";
import { isEveryWordTagged, taggedWords } from "./tagged_words.js";

/**
 * Something the model chose at a position, and what it could have chosen instead (value, text).
 * @typedef {{ kind: "token" | "mask" | "label" | "tag", text: string, subject: string, position: number, others: (readonly [string, string])[] }} Question
 */

/** @typedef {readonly [string, string]} Choice */

/**
 * Everything that the model chose for a text: tokens, masks, labels, tags of words.
 * @param {Trace} trace @param {Iterable<string>} kinds of entities that are known @param {string} noEntity
 * @returns {Question[]}
 */
export function questionsOf(trace, kinds, noEntity) {
  const { output, sides } = trace;
  const labels = [...output.labels].sort((a, b) => b.probability - a.probability).map(({ name }) => name);
  /** @type {Question[]} */
  const all = output.tokens.map((token, k) => (
    { kind: "token", text: `${k + 1} · ${visibleText(token.text)}`, subject: String(k + 1), position: output.first + k, others: tokensBut(token.alternatives, token.text) }));
  output.masks.forEach((mask, i) => {
    const chosen = mask.alternatives[0]?.text ?? "";
    const position = sides.source?.tokens.findIndex((token) => token.start <= mask.start && mask.start < token.end) ?? -1;
    all.push({ kind: "mask", text: visibleText(chosen), subject: String(i + 1), position, others: tokensBut(mask.alternatives, chosen) });
  });
  if (labels.length > 1) all.push({ kind: "label", text: labels[0], subject: "", position: -1, others: labels.slice(1).map((name) => /** @type {Choice} */ ([name, name])) });
  if (output.task === "tag") all.push(...tagQuestions(trace, [...kinds], noEntity));
  return all.filter((question) => question.others.length > 0);
}

/** @param {readonly { id: number, text: string }[]} alternatives @param {string} chosen @returns {Choice[]} */
function tokensBut(alternatives, chosen) {
  return alternatives.filter((one) => one.text !== chosen).map((one) => [String(one.id), visibleText(one.text)]);
}

/** Entities first, then the other words. @param {Trace} trace @param {string[]} kinds @param {string} noEntity @returns {Question[]} */
function tagQuestions(trace, kinds, noEntity) {
  const words = taggedWords(trace);
  const isEvery = isEveryWordTagged(words);
  const characters = [...trace.text];
  const questions = words.map((word) => {
    const { span, form } = word;
    const isWhole = span !== null && (form === "S" || form === "B");
    const name = isWhole ? characters.slice(span.start, span.end).join("") : word.text;
    /** @type {Choice[]} */
    const others = kinds.filter((kind) => kind !== span?.label).sort().map((kind) => [isEvery ? kind : `${form || "S"}-${kind}`, kind]);
    if (span && !isEvery) others.unshift(["O", noEntity]);
    return { isWhole, question: { kind: /** @type {const} */ ("tag"), text: `${name} · ${span?.label ?? noEntity}`, subject: word.text, position: word.position, others } };
  });
  return [...questions.filter(({ isWhole }) => isWhole), ...questions.filter(({ isWhole }) => !isWhole)].map(({ question }) => question);
}

/** @type {Map<string, Set<string>>} kinds of entities that were met in this session, by model */
const met = new Map();

/** The kinds of entities that are known of a model; those of these answers are remembered. @param {string} model @param {(Output | null | undefined)[]} outputs */
export function knownKinds(model, outputs) {
  const kinds = met.get(model) ?? new Set();
  for (const output of outputs) for (const span of output?.spans ?? []) kinds.add(span.label);
  met.set(model, kinds);
  return kinds;
}
