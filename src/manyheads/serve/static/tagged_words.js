// The words of a text that a tagger reads: where they stand, and the tag of each.
/** @import { Output, Trace } from "./types.js" */

/**
 * A word with the position of its first token; `form` is its part of a span: S alone, B first, I inside, E last; "" outside of spans.
 * @typedef {{ text: string, start: number, end: number, position: number, span: Output["spans"][number] | null, form: "" | "S" | "B" | "I" | "E" }} TaggedWord
 */

/** @param {Trace} trace @returns {TaggedWord[]} */
export function taggedWords({ text, output, sides }) {
  const { tokens = [], words = [] } = sides.source ?? {};
  const characters = [...text];
  const real = words.filter((word) => word.kind !== "special" && word.end > word.start);
  return real.flatMap((word) => {
    const position = tokens.findIndex((token) => token.start <= word.start && word.start < token.end);
    if (position < 1) return [];
    const span = output.spans.find((one) => one.start <= word.start && word.start < one.end) ?? null;
    return [{ text: characters.slice(word.start, word.end).join(""), start: word.start, end: word.end, position, span, form: formOf(word, span) }];
  });
}

/** @param {{ start: number, end: number }} word @param {{ start: number, end: number } | null} span */
function formOf(word, span) {
  if (!span) return "";
  const [isFirst, isLast] = [word.start <= span.start, word.end >= span.end];
  return isFirst ? (isLast ? "S" : "B") : isLast ? "E" : "I";
}

/** Whether every word has a tag of its own, as parts of speech: there are no spans of several words, and no O. @param {TaggedWord[]} words */
export function isEveryWordTagged(words) {
  return words.length > 1 && words.every((word) => word.form === "S");
}
