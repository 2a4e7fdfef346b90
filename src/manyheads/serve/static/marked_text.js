// Texts with marks: entities of a tagger, filled masks, words that another answer does not have.
/** @import { Output } from "./types.js" */
import { changedParts, cutText } from "./changed_words.js";
import { el, percent } from "./dom.js";

const N_COLORS = 6;

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
 * @param {string} text @param {Output["spans"]} spans @param {Output["spans"] | null} others spans to compare with
 * @param {string[]} labels all labels, in the order of the colors
 */
export function entityText(text, spans, others, labels) {
  const key = (/** @type {Output["spans"][number]} */ span) => `${span.start} ${span.end} ${span.label}`;
  const known = others ? new Set(others.map(key)) : null;
  return el("p", { class: "entities", dir: "auto" }, ...cutText(text, spans.map((span) => [span.start, span.end])).map((piece) => {
    if (piece.spans.length === 0) return piece.text;
    const span = spans[piece.spans[0]];
    const isChanged = known !== null && !known.has(key(span));
    const color = labels.indexOf(span.label) % N_COLORS;
    return el("mark", { class: `entity label-${color}${isChanged ? " changed" : ""}` }, piece.text,
      el("span", { class: "entity-label" }, span.label, span.probability === null ? null : ` ${percent(span.probability)}`));
  }));
}

/**
 * Entities that only the other answer has.
 * @param {Output["spans"]} spans @param {Output["spans"]} others @param {string} text
 * @returns {string[]}
 */
export function lostEntities(spans, others, text) {
  const characters = [...text];
  return spans.filter((span) => !others.some((one) => one.start === span.start && one.end === span.end && one.label === span.label))
    .map((span) => `${characters.slice(span.start, span.end).join("")} (${span.label})`);
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
    if (!choose) return el("mark", { class: `filled${isChanged ? " changed" : ""}` }, best ? visible(best.text) : piece.text);
    return el("button", { type: "button", class: `filled${isChanged ? " changed" : ""}`, "aria-pressed": String(number === chosen), "data-key": `mask ${number}`, onclick: () => choose(number) },
      best ? visible(best.text) : piece.text);
  }));
}

/** @param {string} text */
function visible(text) {
  return text.trim() || "␣";
}
