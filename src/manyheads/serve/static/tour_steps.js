/** @import { Context, HeadMap, Side, Trace, TracedAttention, WalkRow } from "./types.js" */
// What each step of the tour says and shows, with the numbers of the user's own text.
import { cssColor, decimal, el, fitCanvas, percent } from "./dom.js";
import { tokenName } from "./head_map.js";
import { colorTable } from "./matrix_paint.js";
import { headShares, keyName, keysTable, strip, strongestKey } from "./number_parts.js";

/**
 * @typedef {{ context: Context, trace: Trace, attention: TracedAttention, head: number, query: number, walk: WalkRow,
 *   maps: (HeadMap | null)[], choose: (query: number) => void }} Stop
 * @typedef {{ texts: string[], figure: Node | null }} Step
 */

const MAX_CHIPS = 120;
export const N_STEPS = 11;

/** @param {Stop} stop @returns {Step} */
export function stepOf(stop, /** @type {number} */ number) {
  return [tokens, vectors, projections, scores, scaling, mask, softmax, values, heads, output, next][number](stop);
}

/** @param {Stop} stop */
function names({ attention, trace, query, walk }) {
  const word = keyName(tokenName(trace.sides[attention.queries], query) || walk.query_name);
  return { word, key: keyName(walk.keys[strongestKey(walk)].name), isCross: attention.kind === "cross" };
}

/** @param {Side | null} side @param {(i: number) => string} look @param {((i: number) => void) | null} choose */
function chips(side, look, choose) {
  const units = side?.tokens ?? [];
  const list = el("div", { class: "chips" });
  units.slice(0, MAX_CHIPS).forEach((unit, i) => {
    const attributes = { class: `chip ${unit.kind} ${look(i)}`, dir: "auto", text: keyName(tokenName(side, i)) };
    list.append(choose ? el("button", { ...attributes, type: "button", "aria-pressed": String(look(i) === "here"), onclick: () => choose(i) }) : el("span", attributes));
  });
  if (units.length > MAX_CHIPS) list.append(el("span", { class: "faint", text: `… ${units.length - MAX_CHIPS}` }));
  return list;
}

/** @type {(stop: Stop) => Step} */
function tokens(stop) {
  const { context: { t }, trace, attention, query, choose } = stop;
  const { word, isCross } = names(stop);
  const [source, own] = [trace.sides[attention.keys], trace.sides[attention.queries]];
  const rows = isCross
    ? [el("p", { class: "side-name", text: t("side_source") }), chips(source, () => "", null), el("p", { class: "side-name", text: t("side_written") }), chips(own, (i) => (i === query ? "here" : ""), choose)]
    : [chips(own, (i) => (i === query ? "here" : ""), choose)];
  return {
    texts: [t(isCross ? "tour_1_text_cross" : attention.queries === "target" && trace.sides.source ? "tour_1_text_target" : "tour_1_text", { n: source?.tokens.length ?? 0, m: own?.tokens.length ?? 0 }), t(isCross ? "tour_1_more_cross" : "tour_1_more", { word })],
    figure: el("div", {}, ...rows),
  };
}

/** @type {(stop: Stop) => Step} */
function vectors({ context: { t, data }, trace, attention, query }) {
  const list = chips(trace.sides[attention.queries], (i) => (i === query ? "here" : ""), null);
  [...list.querySelectorAll(".chip")].forEach((chip, i) => { // each with its position below
    const place = el("span", { class: "chip-place" });
    chip.replaceWith(place);
    place.append(chip, String(i));
  });
  return { texts: [t("tour_2_text", { width: data.info.width }), t("tour_2_more")], figure: list };
}

/** @type {(stop: Stop) => Step} */
function projections(stop) {
  const { context: { t }, walk, query } = stop;
  const { word, key, isCross } = names(stop);
  const other = walk.keys[isCross ? strongestKey(walk) : query];
  return {
    texts: [t("tour_3_text", { d: walk.head_width, word }), t(isCross ? "tour_3_more_cross" : "tour_3_more_self", { word, key })],
    figure: strips([["q", walk.q], ["k", other.k], ["v", other.v]].filter(([, numbers]) => numbers.length)),
  };
}

/** @param {any[][]} rows */
function strips(rows) {
  return el("div", { class: "strips" }, ...rows.map(([name, numbers]) => el("figure", {}, el("figcaption", {}, el("span", { text: name })), strip(numbers, name))));
}

/** @type {(stop: Stop) => Step} */
function scores(stop) {
  const { context, walk } = stop;
  const { word } = names(stop);
  const best = walk.keys.reduce((most, key) => (key.visible && (!most.visible || key.product > most.product) ? key : most), walk.keys[0]);
  return {
    texts: [context.t("tour_4_text"), context.t("tour_4_more", { word, key: keyName(best.name), product: decimal(best.product, 2) })],
    figure: keysTable(context, walk, { chosen: walk.keys.indexOf(best), until: "products" }),
  };
}

/** @type {(stop: Stop) => Step} */
function scaling({ context, walk }) {
  const { t } = context;
  if (walk.form !== "scaled-dot") return { texts: [t("tour_5_plain", { form: walk.form })], figure: keysTable(context, walk, { chosen: null, until: "scores" }) };
  const largest = Math.max(...walk.keys.map((key) => key.weight));
  const other = Math.max(...walk.keys.map((key) => key.weight_unscaled ?? 0));
  return {
    texts: [t("tour_5_text", { d: walk.head_width, scale: decimal(walk.scale, 3) }), t(percent(largest) === percent(other) ? "n_contrast_same" : "tour_5_more", { largest: percent(largest), other: percent(other) })],
    figure: keysTable(context, walk, { chosen: null, until: "scores" }),
  };
}

/** @type {(stop: Stop) => Step} */
function mask(stop) {
  const { context: { t }, walk, attention, trace, query } = stop;
  const { word, isCross } = names(stop);
  const n = walk.keys.filter((key) => key.visible).length;
  const isCausal = attention.kind === "decoder";
  return {
    texts: [t(isCausal ? "tour_6_text_causal" : isCross ? "tour_6_text_cross" : "tour_6_text_free"), t("tour_6_more", { word, n, total: walk.keys.length })],
    figure: chips(trace.sides[attention.keys], (i) => (walk.keys[i]?.visible === false ? "masked" : !isCross && i === query ? "here" : ""), null),
  };
}

/** @type {(stop: Stop) => Step} */
function softmax(stop) {
  const { context, walk } = stop;
  const at = strongestKey(walk);
  const { word, key } = names(stop);
  return {
    texts: [context.t("tour_7_text"), context.t("tour_7_more", { word, key, weight: percent(walk.keys[at].weight) })],
    figure: keysTable(context, walk, { chosen: at }),
  };
}

/** @type {(stop: Stop) => Step} */
function values({ context: { t }, walk }) {
  const top = [...walk.keys.keys()].sort((a, b) => walk.keys[b].weight - walk.keys[a].weight).slice(0, 3);
  const largest = Math.max(...walk.weighted_sum.map(Math.abs), ...top.flatMap((i) => walk.keys[i].v.map(Math.abs)), 1e-9);
  const figure = (/** @type {string} */ name, /** @type {number[]} */ numbers) => el("figure", {}, el("figcaption", {}, el("span", { text: name })), strip(numbers, name, largest));
  return {
    texts: [t("tour_8_text")],
    figure: el("div", { class: "strips" }, ...top.map((i) => figure(t("n_weighted", { weight: percent(walk.keys[i].weight), key: keyName(walk.keys[i].name) }), walk.keys[i].v.map((x) => x * walk.keys[i].weight))),
      figure(t("n_sum_values"), walk.weighted_sum)),
  };
}

/** @type {(stop: Stop) => Step} */
function heads(stop) {
  const { context, attention, maps, query, trace, head } = stop;
  const { t, store } = context;
  const { word } = names(stop);
  const keys = trace.sides[attention.keys];
  const cards = maps.map((map, i) => {
    const canvas = el("canvas", { role: "img", "aria-label": t("n_head", { head: i }) });
    let says = "";
    if (map) {
      drawMap(canvas, map, query);
      const row = map.values.subarray(query * map.n_keys, (query + 1) * map.n_keys);
      const best = row.reduce((most, value, k) => (value > row[most] ? k : most), 0);
      says = `${t("tour_9_looks", { word, key: keyName(tokenName(keys, best)) })} · ≈ ${percent(row[best])}`;
    }
    return el("figure", { class: i === head ? "head-card here" : "head-card" }, el("figcaption", {}, el("button", { type: "button", class: "plain", text: t("n_head", { head: i }), onclick: () => store.set({ head: i }) })), canvas, el("p", { class: "hint", dir: "auto", text: says }));
  });
  return { texts: [attention.n_heads > 1 ? t("tour_9_text", { n: attention.n_heads }) : t("tour_9_one")], figure: el("div", { class: "head-cards" }, ...cards) };
}

/** @param {HTMLCanvasElement} canvas @param {HeadMap} map @param {number} query */
function drawMap(canvas, map, query) {
  const cell = Math.min(10, 168 / Math.max(map.n_keys, map.n_queries));
  const [width, height] = [cell * map.n_keys, cell * map.n_queries];
  const pen = fitCanvas(canvas, Math.max(1, width), Math.max(1, height));
  const table = colorTable();
  for (let q = 0; q < map.n_queries; q++) {
    for (let k = 0; k < map.n_keys; k++) {
      const step = 3 * Math.round(255 * Math.sqrt(Math.min(1, map.values[q * map.n_keys + k])));
      if (!step) continue;
      pen.fillStyle = `rgb(${table[step]}, ${table[step + 1]}, ${table[step + 2]})`;
      pen.fillRect(k * cell, q * cell, cell + 0.3, cell + 0.3);
    }
  }
  pen.strokeStyle = cssColor("--line");
  pen.strokeRect(0.5, 0.5, width - 1, height - 1);
  pen.strokeStyle = cssColor("--main");
  pen.lineWidth = 1.5;
  pen.strokeRect(0.75, query * cell + 0.25, width - 1.5, Math.max(2, cell - 0.5));
}

/** @type {(stop: Stop) => Step} */
function output({ context, walk }) {
  const { t } = context;
  return {
    texts: [t("tour_10_text", { width: walk.contribution.length }), t("tour_10_more")],
    figure: el("div", {}, strip(walk.contribution, t("n_strip_output", { n: walk.contribution.length })), headShares(context, walk)),
  };
}

/** @type {(stop: Stop) => Step} */
function next(stop) {
  const { context: { t, data, store }, attention } = stop;
  const { word } = names(stop);
  const n = data.info.attentions.filter((one) => one.kind === attention.kind).length;
  return {
    texts: [t("tour_11_text", { word }), t("tour_11_layers", { n }), t(`tour_11_${data.info.task}`)],
    figure: el("p", {}, el("button", { type: "button", class: "plain", text: t("tour_open"), onclick: () => store.set({ page: "text", pins: [stop.query] }) })),
  };
}
