// Arcs between words: the source over the target for cross-attention, one row of words for self-attention.
/** @import { Context, HeadPart, Parts, Scene, Selection, Unit } from "./lens_types.js" */
import { cssColor, el, fitCanvas } from "../shared/dom.js";
import { largestLinks, shownText, weightOf } from "./head_map.js";
import { createPager } from "./selection.js";

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
const MAX_WORDS = 120;

/** @param {HTMLElement} root @param {Context} context @param {Selection} selection @returns {HeadPart} */
export function mountArcs(root, context, selection) {
  const { t, store } = context;
  /** @type {Scene | null} */
  let scene = null;
  /** @type {ArcsLayout | null} */
  let layout = null;
  /** @type {Link[]} */
  let links = [];
  let row = /** @type {"query" | "key"} */ ("query");
  const pager = createPager(context, () => draw());
  const base = el("canvas", { "aria-hidden": "true" });
  const over = el("canvas", { class: "over", tabindex: 0, role: "application" });
  const stage = el("div", { class: "stage arcs" }, base, over);
  const legend = el("p", { class: "hint" });
  root.append(pager.root, stage, legend);

  function draw() {
    if (!scene) return;
    const width = Math.max(240, Math.floor(stage.clientWidth));
    const parts = pager.parts(scene, Math.min(MAX_WORDS, Math.floor((width - 48) / PITCH)));
    const ruler = /** @type {CanvasRenderingContext2D} */ (base.getContext("2d"));
    ruler.font = `${WORD_SIZE}px ${FAMILY}`;
    links = linksOf(scene, parts, store.state.mass);
    layout = layOutArcs(scene, parts, links, width, (text) => ruler.measureText(text).width);
    const pen = fitCanvas(base, width, layout.height);
    const color = cssColor("--main");
    for (const link of links) drawLink(pen, scene, layout, link, color, 0.8);
    redraw();
  }

  function redraw() {
    if (!scene || !layout) return;
    if (pager.follow(selection)) return draw();
    const pen = fitCanvas(over, layout.width, layout.height);
    const [main, accent, ink, soft, paper] = ["--main", "--accent", "--ink", "--soft", "--paper"].map(cssColor);
    const [outgoing, incoming] = [new Set(selection.outgoing()), new Set(selection.incoming())];
    const isQuiet = outgoing.size === 0 && incoming.size === 0;
    base.style.setProperty("opacity", isQuiet ? "1" : "0.13");
    /** @type {Map<number, number>} strength of the words that are looked at, and of those that look */
    const seen = new Map();
    const seeing = new Map();
    for (const link of links) {
      const strength = strengthOf(scene, link.value);
      if (incoming.has(link.key) && !outgoing.has(link.query)) {
        drawLink(pen, scene, layout, link, accent, 1);
        seeing.set(link.query, Math.max(strength, seeing.get(link.query) ?? 0));
      }
    }
    for (const link of links) {
      if (!outgoing.has(link.query)) continue;
      drawLink(pen, scene, layout, link, main, 1);
      seen.set(link.key, Math.max(strengthOf(scene, link.value), seen.get(link.key) ?? 0));
    }
    const pinned = { query: new Set(selection.pinnedQueries()), key: new Set(selection.pinnedKeys()) };
    for (const word of layout.words) {
      const isQuery = word.row !== "key" && outgoing.has(word.index);
      const isKey = word.row !== "query" && incoming.has(word.index);
      const strength = Math.max(word.row !== "query" ? seen.get(word.index) ?? 0 : 0, word.row !== "key" ? seeing.get(word.index) ?? 0 : 0);
      const isPinned = (word.row !== "key" && pinned.query.has(word.index)) || (word.row !== "query" && pinned.key.has(word.index));
      const color = isQuery ? main : isKey ? accent : word.unit.kind === "text" ? ink : soft;
      drawWord(pen, word, color, { opacity: isQuiet || isQuery || isKey ? 1 : 0.45 + 0.55 * Math.sqrt(strength), isBold: isQuery || isKey, isPinned, paper });
    }
  }

  /** @param {PointerEvent} event @returns {Word | null} */
  function wordAt(event) {
    if (!layout) return null;
    const box = over.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const { key, query } = layout.bands;
    let best = null;
    let distance = 14;
    for (const word of layout.words) {
      const band = word.row === "key" ? key : query;
      if (y < band[0] || y > band[1]) continue;
      // A slanted word leans to the right, away from its row.
      const lean = word.turn && word.row !== "both" ? Math.abs(y - word.y) / Math.tan(Math.abs(word.turn)) : 0;
      const gap = Math.max(0, Math.abs(x - word.x - lean) - word.half);
      if (gap < distance) [best, distance] = [word, gap];
    }
    return best;
  }
  /** @param {Word | null} word @returns {[number | null, number | null]} */
  const ends = (word) => (!word ? [null, null] : word.row === "both" ? [word.index, word.index] : word.row === "query" ? [word.index, null] : [null, word.index]);

  over.addEventListener("pointermove", (event) => selection.hover(...ends(wordAt(event))));
  over.addEventListener("pointerleave", () => selection.hover(null, null));
  over.addEventListener("click", (event) => {
    const word = wordAt(/** @type {PointerEvent} */ (event));
    if (word) selection.toggle(...ends(word));
  });
  over.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !scene) return;
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step || event.key === "ArrowUp" || event.key === "ArrowDown") {
      if (event.key === "ArrowUp") row = "key";
      if (event.key === "ArrowDown") row = "query";
      const last = (scene.isSelf || row === "query" ? scene.queries : scene.keys).length - 1;
      const now = row === "query" ? selection.query : selection.key;
      const next = Math.max(0, Math.min(last, now === null ? 0 : now + step));
      selection.hover(scene.isSelf || row === "query" ? next : null, scene.isSelf || row === "key" ? next : null);
      if (pager.show(scene.isSelf || row === "query" ? "queries" : "keys", next)) draw();
    } else if (event.key === "Enter" || event.key === " ") selection.toggle(selection.query, selection.key);
    else if (!pager.key(event.key)) return;
    event.preventDefault();
  });

  const watcher = new ResizeObserver(() => { if (layout && Math.floor(stage.clientWidth) !== layout.width) draw(); });
  watcher.observe(stage);
  return {
    setScene(next) {
      scene = next;
      over.setAttribute("aria-label", t(scene.isSelf ? "arcs_name_self" : "arcs_name_cross", { head: context.headTitle(next.attention.name, next.head) }));
      legend.textContent = !scene.isSelf ? t("arcs_cross") : t(scene.attention.kind === "decoder" ? "arcs_causal" : "arcs_self");
      draw();
    },
    redraw,
    destroy: () => watcher.disconnect(),
  };
}

/** @param {CanvasRenderingContext2D} pen @param {Scene} scene @param {ArcsLayout} layout @param {Link} link @param {string} color @param {number} opacity */
function drawLink(pen, scene, layout, link, color, opacity) {
  const curve = curveOf(scene, layout, link);
  if (!curve) return;
  const strength = strengthOf(scene, link.value);
  pen.globalAlpha = opacity * lineOpacity(strength);
  pen.strokeStyle = color;
  pen.lineWidth = lineWidth(strength);
  pen.beginPath();
  pen.moveTo(curve[0], curve[1]);
  pen.bezierCurveTo(curve[2], curve[3], curve[4], curve[5], curve[6], curve[7]);
  pen.stroke();
  pen.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} pen @param {Word} word @param {string} color @param {{ opacity: number, isBold: boolean, isPinned: boolean, paper: string }} look */
function drawWord(pen, word, color, { opacity, isBold, isPinned }) {
  pen.save();
  pen.font = `${isBold ? "600 " : ""}${word.unit.kind === "special" ? WORD_SIZE - 3 : WORD_SIZE}px ${FAMILY}`;
  pen.fillStyle = color;
  pen.strokeStyle = color;
  pen.globalAlpha = opacity;
  pen.textBaseline = "middle";
  pen.translate(word.x, word.y);
  if (word.isStacked) {
    const characters = [...word.text];
    pen.textAlign = "center";
    characters.forEach((character, i) => pen.fillText(character, 0, (i - (characters.length - 1) / 2) * (WORD_SIZE + 1)));
  } else {
    pen.rotate(word.turn);
    pen.textAlign = word.turn && word.row !== "both" ? "start" : "center";
    pen.fillText(word.text, 0, 0, word.turn ? 112 : undefined);
    if (isPinned) {
      const half = pen.measureText(word.text).width / 2;
      const from = pen.textAlign === "start" ? 0 : -half;
      pen.fillRect(from, WORD_SIZE / 2 + 2, 2 * half, 2);
    }
  }
  pen.restore();
}

// ---------------------------------------------------------------- where words and arcs are, for the canvas and for saved pictures

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
