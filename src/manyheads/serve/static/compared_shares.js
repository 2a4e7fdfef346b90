// Rows of a table of probabilities: what was likely with all heads, and what is likely without some of them.
/** @import { Alternative } from "./types.js" */
/** @import { Share } from "./bar_list.js" */

const VISIBLE = 0.001; // smaller probabilities are counted under "all others"
const NO_REST = 0.0005; // too little to be worth a line

/** @param {string} text */
export const visibleText = (text) => text.trim() || "␣";

/**
 * The union of two lists of the most probable tokens. A token that one of the lists lacks is less probable there than the
 * last one of that list: its value is this limit.
 * @param {readonly Alternative[]} before with all heads @param {readonly Alternative[] | null} after without some of them
 * @returns {(Share & { id: number })[]}
 */
export function unionOfChoices(before, after) {
  const limit = { before: smallest(before), after: smallest(after ?? []) };
  const rows = before.map((one) => {
    const found = after?.find((other) => other.id === one.id);
    return { id: one.id, text: visibleText(one.text), value: one.probability, without: after ? (found?.probability ?? limit.after) : null, isWithoutLimit: after !== null && !found };
  });
  const added = (after ?? []).filter((one) => !before.some((other) => other.id === one.id)).map((one) =>
    ({ id: one.id, text: visibleText(one.text), value: limit.before, isValueLimit: true, without: one.probability }));
  return [...rows, ...added];
}

/**
 * The rows that are worth a line, and one for all the others; the chosen one always is.
 * @param {Share[]} rows @param {string} rest the name of all the others
 * @returns {Share[]}
 */
export function withRest(rows, rest) {
  const kept = rows.filter((row) => row.isChosen || (!row.isValueLimit && row.value >= VISIBLE) || (!row.isWithoutLimit && (row.without ?? 0) >= VISIBLE));
  const hasWithout = kept.some((row) => typeof row.without === "number");
  const value = left(kept.map((row) => (row.isValueLimit ? 0 : row.value)));
  const without = hasWithout ? left(kept.map((row) => (row.isWithoutLimit ? 0 : (row.without ?? 0)))) : null;
  if (value < NO_REST && (without ?? 0) < NO_REST) return kept;
  // The two columns leave out different tokens where one of them is a limit: no difference then.
  const isComparable = !kept.some((row) => row.isValueLimit || row.isWithoutLimit);
  return [...kept, { text: rest, value, without, isFaint: true, isComparable }];
}

/** @param {number[]} shares */
function left(shares) {
  return Math.max(0, 1 - shares.reduce((sum, share) => sum + share, 0));
}

/** @param {readonly Alternative[]} choices */
function smallest(choices) {
  return choices.reduce((least, one) => Math.min(least, one.probability), 1);
}
