// Texts with marks: entities of a tagger, filled masks, words that another answer does not have.
/** @import { Output } from "./types.js" */
import { changedParts, cutText } from "./changed_words.js";
import { visibleText } from "./compared_shares.js";
import { el, percent } from "./dom.js";

const N_COLORS = 6;

/** @typedef {Output["spans"][number]} Entity */

/**
 * Words that can be chosen: their places in the text, the chosen one, and what to do.
 * @typedef {{ words: { start: number, end: number }[], chosen: number | null, choose: (word: number) => void, name: string }} Words
 */

/**
 * The answer with what the other answer does not have marked.
 * @param {string} answer @param {string} other
 */
export function changedText(answer, other) {
  return el("p", { class: "line-target", dir: "auto" }, ...changedParts(answer, other).map((part) =>
    part.isChanged && part.text.trim() ? el("mark", { class: "changed" }, part.text) : part.text));
}

/**
 * The text with its entities: a color and a name for each.
 * @param {string} text @param {readonly Entity[]} spans @param {readonly Entity[] | null} others spans to compare with
 * @param {string[]} labels all labels, in the order of the colors @param {Words | null} [words]
 */
export function entityText(text, spans, others, labels, words = null) {
  const places = words?.words ?? [];
  /** @type {Map<number, (Node | string)[]>} parts of each entity; those of −1 − i stand between entities */
  const groups = new Map();
  cutText(text, [...spans, ...places].map((one) => [one.start, one.end])).forEach((piece, i) => {
    const span = piece.spans.find((number) => number < spans.length) ?? -1 - i;
    const word = piece.spans.find((number) => number >= spans.length);
    groups.set(span, [...(groups.get(span) ?? []), words && word !== undefined ? wordButton(piece.text, word - spans.length, span >= 0, words) : piece.text]);
  });
  return el("p", { class: "entities", dir: "auto" }, ...[...groups].flatMap(([number, parts]) => {
    if (number < 0) return parts;
    const span = spans[number];
    const isChanged = others !== null && !others.some((one) => isSame(one, span));
    const color = labels.indexOf(span.label) % N_COLORS;
    return [el("mark", { class: `entity label-${color}${isChanged ? " changed" : ""}` }, ...parts,
      el("span", { class: "entity-label" }, span.label, span.probability === null ? null : ` ${percent(span.probability)}`))];
  }));
}

/** @param {string} text @param {number} word @param {boolean} isEntity @param {Words} words */
function wordButton(text, word, isEntity, { chosen, choose, name }) {
  return el("button", { type: "button", class: "word", title: name, "data-key": `word ${word}`, tabindex: isEntity || word === chosen ? 0 : -1,
    "aria-pressed": String(word === chosen), onclick: () => choose(word) }, text);
}

/** @param {Entity} one @param {Entity} other */
function isSame(one, other) {
  return one.start === other.start && one.end === other.end && one.label === other.label;
}

/**
 * What became of the entities that the other answer does not have as they are.
 * @param {readonly Entity[]} spans @param {readonly Entity[]} others @param {string} text
 * @returns {{ lost: string[], changed: string[] }} `changed`: other entities cover the same words now
 */
export function changedEntities(spans, others, text) {
  const characters = [...text];
  const words = (/** @type {Entity} */ span) => characters.slice(span.start, span.end).join("");
  /** @type {{ lost: string[], changed: string[] }} */
  const found = { lost: [], changed: [] };
  for (const span of spans.filter((one) => !others.some((other) => isSame(one, other)))) {
    const now = others.filter((one) => one.start < span.end && span.start < one.end);
    if (now.length === 0) found.lost.push(`${words(span)} (${span.label})`);
    else if (now.length === 1 && now[0].start === span.start && now[0].end === span.end) found.changed.push(`${words(span)} ${span.label} → ${now[0].label}`);
    else if (now.length === 1 && now[0].label === span.label) found.changed.push(`${words(span)} → ${words(now[0])} (${span.label})`);
    else found.changed.push(`${words(span)} (${span.label}) → ${now.map((one) => `${words(one)} (${one.label})`).join(" + ")}`);
  }
  return found;
}

/** Whether the first list has an entity that the second does not have. @param {readonly Entity[]} spans @param {readonly Entity[]} others */
export function hasNewEntity(spans, others) {
  return spans.some((span) => !others.some((other) => isSame(span, other)));
}

/**
 * The text with its masks filled in by the most probable token.
 * @param {string} text @param {Output["masks"]} masks @param {Output["masks"] | null} others @param {number | null} chosen @param {((mask: number) => void) | null} choose
 */
export function maskedText(text, masks, others, chosen, choose) {
  return el("p", { class: "line-target", dir: "auto" }, ...cutText(text, masks.map((mask) => [mask.start, mask.end])).map((piece) => {
    const number = piece.spans[0];
    if (number === undefined) return piece.text;
    const best = masks[number].alternatives[0];
    const isChanged = others !== null && others[number]?.alternatives[0]?.text !== best?.text;
    if (!choose) return el("mark", { class: `filled${isChanged ? " changed" : ""}` }, best ? visibleText(best.text) : piece.text);
    return el("button", { type: "button", class: `filled${isChanged ? " changed" : ""}`, "aria-pressed": String(number === chosen), "data-key": `mask ${number}`, onclick: () => choose(number) },
      best ? visibleText(best.text) : piece.text);
  }));
}
