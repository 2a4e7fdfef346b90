/** @import { Context, WalkRow } from "./types.js" */
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

/**
 * Weights by key as the tables show them: two digits, which add up to 100 %; never 100 % or 0 % for a weight that is not.
 * @param {WalkRow} walk @param {"weight" | "weight_unscaled"} [kind] @returns {string[]}
 */
export function weightTexts(walk, kind = "weight") {
  const shown = shownWeights(walk, kind);
  const hasOthers = walk.keys.filter((key) => (key[kind] ?? 0) > 0).length > 1; // double precision can round the largest to 1
  return walk.keys.map((key, i) => {
    if (hasOthers && shown[i] >= 99.995) return ">99.99\u00a0%";
    if ((key[kind] ?? 0) > 0 && shown[i] < 0.005) return "<0.01\u00a0%";
    return key[kind] ? `${decimal(shown[i], 2)}\u00a0%` : "0\u00a0%";
  });
}

/** @param {WalkRow} walk @param {"weight" | "weight_unscaled"} kind */
const shownWeights = (walk, kind) => roundToSum(walk.keys.map((key) => 100 * (key[kind] ?? 0)), 2);

/** Which keys a table shows: all, or the largest ones in the order of the text. @param {WalkRow} walk @param {boolean} isMasked whether the mask has been applied */
function chooseKeys(walk, isMasked) {
  const seen = [...walk.keys.keys()].filter((i) => walk.keys[i].visible || !isMasked);
  const largest = [...seen].sort((a, b) => walk.keys[b].weight - walk.keys[a].weight).slice(0, N_ROWS);
  const shown = seen.length <= N_ROWS ? seen : largest.sort((a, b) => a - b);
  return { shown, others: seen.filter((i) => !shown.includes(i)), n_masked: walk.keys.length - seen.length };
}

/** Index of the key with the largest weight. @param {WalkRow} walk @param {"weight" | "weight_unscaled"} [kind] */
export const strongestKey = (walk, kind = "weight") => walk.keys.reduce((best, key, i) => ((key[kind] ?? 0) > (walk.keys[best][kind] ?? 0) ? i : best), 0);

/**
 * @typedef {"products" | "scores" | "masked" | "contrast" | "weights"} Stage how far the computation has come
 * @typedef {{ name: string, cell: (i: number) => Node, sum?: (keys: number[]) => string, masked?: string }} Column
 */

/** @param {Context} context @param {WalkRow} walk @param {Stage} until @returns {Column[]} */
function columnsOf({ t }, walk, until) {
  const { keys } = walk;
  const isScaled = walk.scale !== 1;
  const hasBias = keys.some((key) => key.bias !== null);
  const scoreOf = (/** @type {number} */ i) => keys[i].product / walk.scale + (keys[i].bias ?? 0);
  const values = (/** @type {string} */ name, /** @type {(i: number) => string} */ text) => ({ name, cell: (/** @type {number} */ i) => number(text(i)) });
  const bars = (/** @type {(i: number) => Node} */ draw) => ({ name: "", cell: (/** @type {number} */ i) => el("td", { class: "bars" }, draw(i)) });
  /** @type {Column[]} */
  const columns = [values("q · k", (i) => decimal(keys[i].product, 3))];
  const signed = (/** @type {(i: number) => number} */ value) => {
    const largest = keys.reduce((most, _, i) => Math.max(most, Math.abs(value(i))), 0);
    return bars((i) => (until === "masked" && !keys[i].visible ? el("span") : signedBar(value(i), largest)));
  };
  if (until === "products") return [...columns, signed((i) => keys[i].product)];
  if (hasBias && isScaled) columns.push(values(t("n_scaled", { scale: decimal(walk.scale, 3) }), (i) => decimal(keys[i].product / walk.scale, 3)));
  if (hasBias) columns.push(values(t("n_bias"), (i) => decimal(keys[i].bias ?? 0, 3)));
  const scoreName = isScaled && !hasBias ? t("n_score_scaled", { scale: decimal(walk.scale, 3) }) : t("n_score");
  columns.push({ ...values(scoreName, (i) => (until === "masked" && !keys[i].visible ? "−∞" : decimal(scoreOf(i), 3))), masked: "−∞" });
  if (until === "scores" || until === "masked") return [...columns, signed(scoreOf)];
  const exponentials = roundToSum(keys.map((key) => key.exponential), 4);
  if (until === "weights") columns.push({ ...values("eˢ⁻ᵐᵃˣ", (i) => decimal(exponentials[i], 4)), sum: (some) => decimal(sumOf(exponentials, some), 4), masked: "0" });
  const hasOther = keys.some((key) => key.weight_unscaled !== null);
  const full = keys.reduce((most, key) => Math.max(most, key.weight, hasOther ? key.weight_unscaled ?? 0 : 0), 0) || 1; // of a bar
  const weights = (/** @type {string} */ name, /** @type {"weight" | "weight_unscaled"} */ kind, /** @type {string} */ look) => {
    const [texts, shown] = [weightTexts(walk, kind), shownWeights(walk, kind)];
    return [{ ...values(name, (i) => texts[i]), sum: (/** @type {number[]} */ some) => `${decimal(sumOf(shown, some), 2)}\u00a0%`, masked: "0\u00a0%" },
      bars((i) => bar((keys[i][kind] ?? 0) / full, look))];
  };
  return [...columns, ...weights(t("n_weight"), "weight", ""), ...(hasOther ? weights(t(isScaled ? "n_without" : "n_with"), "weight_unscaled", "soft") : [])];
}

/** @param {number[]} values @param {number[]} some */
const sumOf = (values, some) => some.reduce((sum, i) => sum + values[i], 0);

/**
 * The row as a table: product, score, exponential, weight. A click anywhere in the line of a key chooses it.
 * @param {Context} context @param {WalkRow} walk @param {{ chosen: number | null, choose?: (key: number) => void, until?: Stage }} options
 */
export function keysTable(context, walk, { chosen, choose, until = "weights" }) {
  const { t } = context;
  const hasWeights = until === "weights" || until === "contrast";
  const { shown, others, n_masked } = chooseKeys(walk, hasWeights);
  const columns = columnsOf(context, walk, until);
  const line = (/** @type {string} */ name, /** @type {(column: Column) => string | undefined} */ text, /** @type {string | null} */ look) =>
    el("tr", { class: look }, el("th", { scope: "row", text: name }), ...columns.map((column) => (column.name ? number(text(column) ?? "") : el("td", { class: "bars" }))));
  const body = el("tbody");
  for (const i of shown) {
    const name = keyName(walk.keys[i].name);
    const heading = choose
      ? el("button", { type: "button", class: "plain key-name", dir: "auto", "aria-pressed": String(chosen === i), text: name })
      : el("span", { dir: "auto", text: name });
    const look = [chosen === i ? "chosen" : "", choose ? "choosable" : "", until === "masked" && !walk.keys[i].visible ? "faint" : ""].filter(Boolean).join(" ");
    body.append(el("tr", { class: look || null, onclick: () => choose?.(i) }, el("th", { scope: "row" }, heading), ...columns.map((column) => column.cell(i))));
  }
  if (others.length) body.append(line(t("n_others", { n: others.length }), (column) => column.sum?.(others), "faint"));
  if (n_masked) body.append(line(t("n_masked", { n: n_masked }), (column) => column.masked, "faint"));
  const foot = hasWeights ? el("tfoot", {}, line(t("n_sum"), (column) => column.sum?.([...shown, ...others]), null)) : null;
  const heads = [t("n_key"), ...columns.map((column) => column.name)];
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": t("n_table") },
    el("table", { class: hasWeights ? "numbers many" : "numbers" }, el("thead", {}, el("tr", {}, ...heads.map((head, i) => el(head ? "th" : "td", { scope: head ? "col" : null, class: i ? (head ? "number" : "bars") : null, text: head })))), body, foot));
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
