/** @import { Context, WalkKey, WalkRow } from "./types.js" */
// Small tables and bars of numbers, for the row in numbers and for the tour.
import { decimal, el, svg } from "./dom.js";

const N_ROWS = 30; // keys of a table; the others are summed up
const STRIP_HEIGHT = 54;

/**
 * Rounds so that the displayed terms add up to the displayed total (largest remainders).
 * @param {number[]} values @param {number} digits @returns {number[]}
 */
export function roundToSum(values, digits) {
  const unit = 10 ** digits;
  const scaled = values.map((value) => value * unit);
  const rounded = scaled.map(Math.floor);
  let left = Math.round(scaled.reduce((sum, x) => sum + x, 0)) - rounded.reduce((sum, x) => sum + x, 0);
  const order = [...scaled.keys()].sort((a, b) => (scaled[b] - rounded[b]) - (scaled[a] - rounded[a]));
  for (const i of order) {
    if (left <= 0) break;
    rounded[i] += 1;
    left -= 1;
  }
  return rounded.map((x) => x / unit);
}

/** @param {string} name */
export const keyName = (name) => name.replaceAll("▁", " ").trim() || "␣";

/** A bar from 0, as wide as the share. @param {number} share @param {string} [kind] */
export function bar(share, kind = "") {
  const fill = el("div");
  fill.style.setProperty("width", `${(100 * Math.max(0, Math.min(1, share))).toFixed(2)}%`);
  fill.hidden = share < 2e-3;
  return el("div", { class: `bar ${kind}`, "aria-hidden": "true" }, fill);
}

/** A bar to the left or to the right of the middle. @param {number} value @param {number} largest */
export function signedBar(value, largest) {
  const half = 50 * Math.min(1, Math.abs(value) / (largest || 1));
  const fill = el("div", { class: value < 0 ? "below" : "above" });
  fill.style.setProperty("width", `${half.toFixed(2)}%`);
  fill.style.setProperty("left", `${(value < 0 ? 50 - half : 50).toFixed(2)}%`);
  return el("div", { class: "bar signed", "aria-hidden": "true" }, fill);
}

/**
 * Numbers of a vector as thin bars above and below a line; the text names its length and range.
 * @param {number[]} values @param {string} label @param {number} [scale] the value of a full bar
 */
export function strip(values, label, scale) {
  const largest = scale || values.reduce((most, x) => Math.max(most, Math.abs(x)), 0) || 1;
  const n = Math.max(1, values.length);
  const step = 10;
  const middle = STRIP_HEIGHT / 2;
  const node = svg("svg", { class: "strip", viewBox: `0 0 ${n * step} ${STRIP_HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  node.append(svg("line", { class: "axis", x1: 0, x2: n * step, y1: middle, y2: middle }));
  values.forEach((value, i) => {
    const height = Math.max(0.4, (middle - 1) * Math.min(1, Math.abs(value) / largest));
    node.append(svg("rect", { class: value < 0 ? "below" : "above", x: i * step + 1.5, width: step - 3, y: value < 0 ? middle : middle - height, height },
      svg("title", { text: `${i}: ${decimal(value, 4)}` })));
  });
  return node;
}

/** Which keys a table shows: all, or the largest ones in the order of the text. @param {WalkRow} walk @param {boolean} isMasked whether the mask has been applied */
function chooseKeys(walk, isMasked) {
  const seen = [...walk.keys.keys()].filter((i) => walk.keys[i].visible || !isMasked);
  const largest = [...seen].sort((a, b) => walk.keys[b].weight - walk.keys[a].weight).slice(0, N_ROWS);
  const shown = seen.length <= N_ROWS ? seen : largest.sort((a, b) => a - b);
  return { shown, others: seen.filter((i) => !shown.includes(i)), n_masked: walk.keys.length - seen.length };
}

/** Index of the key with the largest weight. @param {WalkRow} walk */
export const strongestKey = (walk) => walk.keys.reduce((best, key, i) => (key.weight > walk.keys[best].weight ? i : best), 0);

/**
 * The row as a table: product, score, exponential, weight.
 * @param {Context} context @param {WalkRow} walk @param {{ chosen: number | null, choose?: (key: number) => void, until?: "products" | "scores" | "weights" }} options
 */
export function keysTable({ t }, walk, { chosen, choose, until = "weights" }) {
  const { shown, others, n_masked } = chooseKeys(walk, until === "weights");
  const isScaled = walk.scale !== 1;
  const hasBias = walk.keys.some((key) => key.bias !== null);
  const hasOther = until === "weights" && walk.keys.some((key) => key.weight_unscaled !== null);
  const order = [...shown, ...others];
  const rounded = (/** @type {(key: WalkKey) => number} */ value, /** @type {number} */ digits) => {
    const all = roundToSum(order.map((i) => value(walk.keys[i])), digits);
    return new Map(order.map((i, n) => [i, all[n]]));
  };
  const exponentials = rounded((key) => key.exponential, 4);
  const weights = rounded((key) => 100 * key.weight, 2);
  const unscaled = rounded((key) => 100 * (key.weight_unscaled ?? 0), 2);
  const sumOf = (/** @type {Map<number, number>} */ values, /** @type {number[]} */ keys) => keys.reduce((sum, i) => sum + (values.get(i) ?? 0), 0);
  const n_stages = { products: 1, scores: 2, weights: 3 }[until];
  const full = order.reduce((most, i) => Math.max(most, walk.keys[i].weight, hasOther ? walk.keys[i].weight_unscaled ?? 0 : 0), 0) || 1; // of a bar
  const shownScore = (/** @type {WalkKey} */ key) => (n_stages > 1 ? key.product / walk.scale + (key.bias ?? 0) : key.product);
  const largest = order.reduce((most, i) => Math.max(most, Math.abs(shownScore(walk.keys[i]))), 0);
  const heads = [t("n_key"), "q · k"];
  if (n_stages > 1 && isScaled) heads.push(t("n_scaled", { scale: decimal(walk.scale, 3) }));
  if (n_stages > 1 && hasBias) heads.push(t("n_bias"), t("n_score"));
  if (n_stages < 3) heads.push("");
  if (n_stages > 2) heads.push("eˢ⁻ᵐᵃˣ", t("n_weight"), "");
  if (hasOther) heads.push(t(isScaled ? "n_without" : "n_with"), "");
  const cells = (/** @type {WalkKey} */ key, /** @type {number} */ i) => {
    const found = [number(decimal(key.product, 3))];
    if (n_stages > 1 && isScaled) found.push(number(decimal(key.product / walk.scale, 3)));
    if (n_stages > 1 && hasBias) found.push(number(decimal(key.bias ?? 0, 3)), number(decimal(key.product / walk.scale + (key.bias ?? 0), 3)));
    if (n_stages < 3) found.push(el("td", { class: "bars" }, signedBar(shownScore(key), largest)));
    if (n_stages > 2) found.push(number(decimal(exponentials.get(i) ?? 0, 4)), number(`${decimal(weights.get(i) ?? 0, 2)} %`), el("td", { class: "bars" }, bar(key.weight / full)));
    if (hasOther) found.push(number(`${decimal(unscaled.get(i) ?? 0, 2)} %`), el("td", { class: "bars" }, bar((key.weight_unscaled ?? 0) / full, "soft")));
    return found;
  };
  const body = el("tbody");
  for (const i of shown) {
    const key = walk.keys[i];
    const name = choose
      ? el("button", { type: "button", class: "plain key-name", dir: "auto", "aria-pressed": String(chosen === i), text: keyName(key.name), onclick: () => choose(i) })
      : el("span", { dir: "auto", text: keyName(key.name) });
    body.append(el("tr", { class: chosen === i ? "chosen" : null }, el("th", { scope: "row" }, name), ...cells(key, i)));
  }
  const blank = (/** @type {number} */ n) => Array.from({ length: n }, () => el("td"));
  const n_middle = heads.length - 2 - (n_stages > 2 ? 3 : 0) - (hasOther ? 2 : 0);
  const sums = (/** @type {number[]} */ keys) => [
    ...blank(1 + n_middle),
    ...(n_stages > 2 ? [number(decimal(sumOf(exponentials, keys), 4)), number(`${decimal(sumOf(weights, keys), 2)} %`), el("td")] : []),
    ...(hasOther ? [number(`${decimal(sumOf(unscaled, keys), 2)} %`), el("td")] : []),
  ];
  if (others.length) body.append(el("tr", { class: "faint" }, el("th", { scope: "row", text: t("n_others", { n: others.length }) }), ...sums(others)));
  if (n_masked) body.append(el("tr", { class: "faint" }, el("th", { scope: "row", text: t("n_masked", { n: n_masked }) }), ...blank(1 + n_middle), ...(n_stages > 2 ? [number("0"), number("0 %"), el("td")] : []), ...(hasOther ? [number("0 %"), el("td")] : [])));
  const foot = n_stages > 2 ? el("tfoot", {}, el("tr", {}, el("th", { scope: "row", text: t("n_sum") }), ...sums(order))) : null;
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": t("n_table") },
    el("table", { class: "numbers" }, el("thead", {}, el("tr", {}, ...heads.map((head, i) => el(head ? "th" : "td", { scope: head ? "col" : null, class: i ? "number" : null, text: head })))), body, foot));
}

/** @param {string} text */
const number = (text) => el("td", { class: "number", text });

/** ‖head_i W^O‖ of every head of the attention. @param {Context} context @param {WalkRow} walk */
export function headShares({ t }, walk) {
  const total = walk.shares.reduce((sum, x) => sum + x, 0) || 1;
  const shares = roundToSum(walk.shares.map((x) => (100 * x) / total), 1);
  const largest = Math.max(...walk.shares, 1e-9);
  const rows = walk.shares.map((share, i) => el("tr", { class: i === walk.head ? "chosen" : null },
    el("th", { scope: "row", text: t("n_head", { head: i }) }), number(decimal(share, 3)), number(`${decimal(shares[i], 1)} %`),
    el("td", { class: "bars" }, bar(share / largest, i === walk.head ? "" : "soft"))));
  return el("table", { class: "numbers shares" }, el("thead", {}, el("tr", {}, el("th", { scope: "col", text: t("n_heads") }), el("th", { scope: "col", class: "number", text: "‖headᵢ Wᴼ‖" }), el("th", { scope: "col", class: "number", text: t("n_share") }), el("td"))), el("tbody", {}, ...rows));
}
