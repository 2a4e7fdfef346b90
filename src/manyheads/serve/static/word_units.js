/** @import { Side, Trace, Unit } from "./types.js" */
// Words of text that is written without spaces. The browser's segmenter has a dictionary of Chinese, Japanese and Thai;
// the server splits such text into characters.

const NO_SPACES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;

/** Joins the characters of each word. @param {Side} side @returns {Unit[]} */
function wordsOf(side) {
  const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
  // Offsets of units count code points, those of the segmenter UTF-16 units.
  /** @type {number[]} */
  const segmentAt = [];
  let segment = 0;
  for (const { segment: text } of segmenter.segment(side.text)) {
    for (const _ of text) segmentAt.push(segment);
    segment++;
  }
  const characters = Array.from(side.text);
  /** @type {Unit[]} */
  const words = [];
  let last = -1;
  for (const unit of side.characters) {
    const here = unit.kind === "special" || unit.end <= unit.start ? -1 : segmentAt[unit.start] ?? -1;
    const word = words.at(-1);
    if (word && here >= 0 && here === last) {
      word.end = unit.end;
      word.text = characters.slice(word.start, word.end).join("");
      word.parts = merged([...word.parts, ...unit.parts]);
      if (unit.kind === "text") word.kind = "text";
    } else {
      words.push({ ...unit, parts: [...unit.parts] });
    }
    last = here;
  }
  return words;
}

/** Adds up the shares of each token. @param {[number, number][]} parts @returns {[number, number][]} */
function merged(parts) {
  /** @type {Map<number, number>} */
  const shares = new Map();
  for (const [position, share] of parts) shares.set(position, (shares.get(position) ?? 0) + share);
  return [...shares];
}

/** Replaces the words of every side whose script has no spaces. @param {Trace} trace @returns {Trace} */
export function withWords(trace) {
  if (!("Segmenter" in Intl)) return trace;
  const { source, target, written } = trace.sides;
  for (const side of [source, target, written]) {
    if (side && NO_SPACES.test(side.text)) side.words = wordsOf(side);
  }
  return trace;
}
