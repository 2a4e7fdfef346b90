/** @import { Parts, Scene, Unit } from "./types.js" */
// Where words and arcs are, for the canvas and for saved pictures.
import { largestLinks, shownText, weightOf } from "./head_map.js";

export const WORD_SIZE = 14; // font size in pixels
export const PITCH = 18; // least room of one word, in pixels
const GAP = [6, 22]; // least and largest room between words
const CROSS_HEIGHT = 132;
const MAX_ARC = 150;
const SLANT = 0.96;

/**
 * @typedef {{ row: "query" | "key" | "both", index: number, unit: Unit, text: string, x: number, y: number, half: number,
 *   turn: number, isStacked: boolean }} Word
 * x is the middle of the word, y its middle (level words) or where it starts (turned ones), half half its width.
 * @typedef {{ words: Word[], width: number, height: number, keyLine: number, queryLine: number, aboveLine: number, belowLine: number,
 *   keyX: Map<number, number>, queryX: Map<number, number>, bands: { key: [number, number], query: [number, number] } }} ArcsLayout
 * @typedef {{ query: number, key: number, value: number }} Link
 */

const CJK = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{1,4}$/u;

/** @param {Unit} unit */
const shortText = (unit) => (unit.text.length > 16 ? `${shownText(unit).slice(0, 15)}…` : shownText(unit));

/**
 * Positions of the words of one row; null if they do not fit side by side.
 * @param {number[]} widths @param {number} width @returns {number[] | null}
 */
function sideBySide(widths, width) {
  const total = widths.reduce((sum, one) => sum + one, 0);
  const gap = Math.min(GAP[1], (width - total) / Math.max(1, widths.length));
  if (gap < GAP[0]) return null;
  let x = (width - total - gap * (widths.length - 1)) / 2;
  return widths.map((one) => {
    const center = x + one / 2;
    x += one + gap;
    return center;
  });
}

/** @param {number} n @param {number} width */
function evenly(n, width) {
  const pitch = Math.min(40, width / n);
  return Array.from({ length: n }, (_, i) => (width - pitch * n) / 2 + pitch * (i + 0.5));
}

/**
 * @param {Scene} scene @param {Parts} parts @param {Link[]} links @param {number} width @param {(text: string) => number} measure
 * @returns {ArcsLayout}
 */
export function layOutArcs(scene, parts, links, width, measure) {
  return scene.isSelf ? layOutSelf(scene, parts, links, width, measure) : layOutCross(scene, parts, width, measure);
}

/** @param {Scene} scene @param {Parts} parts @param {Link[]} links @param {number} width @param {(text: string) => number} measure @returns {ArcsLayout} */
function layOutSelf(scene, parts, links, width, measure) {
  const units = scene.keys.slice(parts.keys.start, parts.keys.end);
  const widths = units.map((unit) => measure(shortText(unit)));
  const level = sideBySide(widths, width);
  const xs = level ?? evenly(units.length, width);
  const widest = Math.max(WORD_SIZE, ...widths);
  const band = level ? 26 : Math.min(widest, 110) + 12;
  const longest = (/** @type {boolean} */ isBack) => links.reduce((most, { query, key }) => {
    const [from, to] = [xs[query - parts.keys.start], xs[key - parts.keys.start]];
    return from === undefined || to === undefined || query > key !== isBack ? most : Math.max(most, Math.abs(from - to));
  }, 0);
  const aboveLine = Math.max(24, arcHeight(longest(true)) + 6); // 24: a link of a word to itself
  const belowLine = aboveLine + band;
  const below = longest(false);
  const words = units.map((unit, i) => {
    const isStacked = !level && CJK.test(unit.text);
    return /** @type {Word} */ ({
      row: "both", index: parts.keys.start + i, unit, text: shortText(unit), x: xs[i], y: aboveLine + band / 2,
      half: level ? widths[i] / 2 + 3 : PITCH / 2, turn: level || isStacked ? 0 : -Math.PI / 2, isStacked,
    });
  });
  const x = new Map(words.map((word) => [word.index, word.x]));
  return {
    words, width, height: belowLine + (below ? arcHeight(below) + 6 : 4), keyLine: aboveLine, queryLine: aboveLine, aboveLine, belowLine,
    keyX: x, queryX: x, bands: { key: [aboveLine - 6, belowLine + 6], query: [aboveLine - 6, belowLine + 6] },
  };
}

/** @param {Scene} scene @param {Parts} parts @param {number} width @param {(text: string) => number} measure @returns {ArcsLayout} */
function layOutCross(scene, parts, width, measure) {
  const keys = scene.keys.slice(parts.keys.start, parts.keys.end);
  const queries = scene.queries.slice(parts.queries.start, parts.queries.end);
  const [keyWidths, queryWidths] = [keys, queries].map((units) => units.map((unit) => measure(shortText(unit))));
  const levelKeys = sideBySide(keyWidths, width);
  const levelQueries = sideBySide(queryWidths, width);
  const room = (/** @type {number[]} */ widths, /** @type {number[] | null} */ level) => (level ? 26 : Math.min(110, Math.max(...widths)) * Math.sin(SLANT) + 18);
  const keyBand = room(keyWidths, levelKeys);
  const queryBand = room(queryWidths, levelQueries);
  const keyLine = keyBand;
  const queryLine = keyBand + CROSS_HEIGHT;
  const slanted = (/** @type {number} */ n) => evenly(n, width - 40).map((x) => x + (n * PITCH > width - 60 ? 0 : 10));
  const keyXs = levelKeys ?? slanted(keys.length);
  const queryXs = levelQueries ?? slanted(queries.length);
  /** @type {Word[]} */
  const words = [];
  keys.forEach((unit, i) => words.push({
    row: "key", index: parts.keys.start + i, unit, text: shortText(unit), x: keyXs[i], y: levelKeys ? keyLine - 14 : keyLine - 8,
    half: levelKeys ? keyWidths[i] / 2 + 3 : PITCH / 2, turn: levelKeys ? 0 : -SLANT, isStacked: false,
  }));
  queries.forEach((unit, i) => words.push({
    row: "query", index: parts.queries.start + i, unit, text: shortText(unit), x: queryXs[i], y: levelQueries ? queryLine + 14 : queryLine + 8,
    half: levelQueries ? queryWidths[i] / 2 + 3 : PITCH / 2, turn: levelQueries ? 0 : SLANT, isStacked: false,
  }));
  return {
    words, width, height: queryLine + queryBand, keyLine, queryLine, aboveLine: keyLine, belowLine: queryLine,
    keyX: new Map(keys.map((_, i) => [parts.keys.start + i, keyXs[i]])),
    queryX: new Map(queries.map((_, i) => [parts.queries.start + i, queryXs[i]])),
    bands: { key: [0, keyLine + 10], query: [queryLine - 10, queryLine + queryBand] },
  };
}

/** @param {number} distance in pixels */
const arcHeight = (distance) => Math.min(MAX_ARC, 8 + 5.2 * Math.sqrt(Math.abs(distance)));

/** The curve of a link as points of a cubic Bézier curve; null if one of its ends is out of sight. @param {Scene} scene @param {ArcsLayout} layout @param {Link} link */
export function curveOf(scene, layout, { query, key }) {
  const [from, to] = [layout.queryX.get(query), layout.keyX.get(key)];
  if (from === undefined || to === undefined) return null;
  if (!scene.isSelf) {
    const middle = (layout.keyLine + layout.queryLine) / 2;
    return [from, layout.queryLine, from, middle, to, middle, to, layout.keyLine];
  }
  if (query === key) return [from - 3, layout.aboveLine, from - 13, layout.aboveLine - 22, from + 13, layout.aboveLine - 22, from + 3, layout.aboveLine];
  const isBack = query > key;
  const y = isBack ? layout.aboveLine : layout.belowLine;
  const bend = y + (isBack ? -1 : 1) * 1.33 * arcHeight(from - to);
  return [from, y, from + 0.16 * (to - from), bend, to - 0.16 * (to - from), bend, to, y];
}

/** The links to draw of the rows in sight. @param {Scene} scene @param {Parts} parts @param {number} mass @returns {Link[]} */
export function linksOf(scene, parts, mass) {
  const links = [];
  for (let query = parts.queries.start; query < parts.queries.end; query++) {
    for (const key of largestLinks(scene, query, mass)) links.push({ query, key, value: weightOf(scene, query, key) });
  }
  return links.sort((a, b) => a.value - b.value);
}

/** Strength of a link between 0 and 1: weights as they are, norms by the largest. @param {Scene} scene @param {number} value */
export const strengthOf = (scene, value) => Math.min(1, scene.kind === "weights" ? value : value / (scene.largest || 1));

/** @param {number} strength */
export const lineWidth = (strength) => 0.7 + 5 * strength;

/** @param {number} strength */
export const lineOpacity = (strength) => 0.14 + 0.76 * strength ** 0.7;
