// A text of the corpus with the query and the key that a head links.
/** @import { HeadExamples } from "./types.js" */
import { el } from "./dom.js";

/** @typedef {HeadExamples["examples"][number]} Example */
/** @typedef {{ start: number, end: number, kind: "query" | "key" }} Place */

/**
 * The text and the answer as parts. Queries of decoder and cross-attention are words of the answer, so are keys of the decoder's.
 * @param {Example} example @param {string} kind of attention
 */
export function markedExample(example, kind) {
  const hasAnswer = Boolean(example.answer);
  const isInAnswer = { query: hasAnswer && kind !== "encoder", key: hasAnswer && kind === "decoder" };
  const sides = { text: example.text, answer: example.answer ?? "" };
  /** @type {Record<"text" | "answer", Place[]>} */
  const places = { text: [], answer: [] };
  for (const one of /** @type {const} */ (["query", "key"])) {
    const side = isInAnswer[one] ? "answer" : "text";
    const span = example[`${one}_span`];
    if (span) places[side].push({ start: span[0], end: span[1], kind: one });
  }
  return { text: markedParts(sides.text, places.text), answer: hasAnswer ? markedParts(sides.answer, places.answer) : null };
}

/** @param {string} text @param {Place[]} places @returns {(Node | string)[]} */
function markedParts(text, places) {
  const characters = [...text];
  /** @type {(Node | string)[]} */
  const parts = [];
  let end = 0;
  for (const place of [...places].sort((a, b) => a.start - b.start)) {
    if (place.start < end) continue; // a head may link a word to itself
    const kinds = places.filter((one) => one.start === place.start && one.end === place.end).map(({ kind }) => `is-${kind}`);
    parts.push(characters.slice(end, place.start).join(""), el("mark", { class: kinds.join(" ") }, characters.slice(place.start, place.end).join("")));
    end = place.end;
  }
  return [...parts, characters.slice(end).join("")];
}
