/** @import { HeadMap, Unit } from "./types.js" */
// Which row the tour follows first: one whose weights change visibly if the scores were not divided.

const SHARP = 0.9; // a row with a larger weight shows little
const FRAGMENT = /^[\p{L}\p{N}]$/u; // one letter of a word that was split
const HAN = /\p{Script=Han}/u;

/**
 * Weights w of scores s / c become w^c / Σ w^c without the division by c.
 * @param {Float32Array} row @param {number} scale @returns {number} total variation between the two rows, from 0 to 1
 */
export function changeWithout(row, scale) {
  const largest = row.reduce((most, weight) => Math.max(most, weight), 0) || 1;
  const powers = row.map((weight) => (weight / largest) ** scale);
  const total = powers.reduce((sum, x) => sum + x, 0) || 1;
  return row.reduce((sum, weight, i) => sum + Math.abs(weight - powers[i] / total) / 2, 0);
}

/** @param {HeadMap} map @param {Unit[]} queries @param {Unit[]} keys @param {number} scale @returns {number} position of the row */
export function tellingRow(map, queries, keys, scale) {
  const words = [...queries.keys()].filter((i) => i < map.n_queries && queries[i].kind === "text");
  let [best, most] = [words[Math.floor(words.length / 2)] ?? 0, -1];
  for (const q of words) {
    const row = map.values.subarray(q * map.n_keys, (q + 1) * map.n_keys);
    const top = row.reduce((at, weight, k) => (weight > row[at] ? k : at), 0);
    const isWord = keys[top]?.kind === "text";
    const score = changeWithout(row, scale) * (isWord ? 1 : 0.5) * (row[top] > SHARP ? 0.2 : 1) * (FRAGMENT.test(queries[q].text) && !HAN.test(queries[q].text) ? 0.5 : 1);
    if (score > most) [best, most] = [q, score];
  }
  return best;
}
