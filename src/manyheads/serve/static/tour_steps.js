/** @import { Context, HeadMap, Side, Trace, TracedAttention, WalkRow } from "./types.js" */
// What each step of the tour says and shows, with the numbers of the user's own text.
import { cssColor, decimal, el, fitCanvas, percent } from "./dom.js";
import { tokenName } from "./head_map.js";
import { colorTable } from "./matrix_paint.js";
import { headShares, keyName, keysTable, strip, strongestKey, weightTexts } from "./number_parts.js";
import { specialsOf, splittingOf } from "./tour_tokens.js";

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

/** The word that a row stands for (of cross-attention: the one to be written), the decoder's input there, the strongest key. @param {Stop} stop */
function names({ attention, trace, query, walk }) {
  const word = keyName(tokenName(trace.sides[attention.queries], query) || walk.query_name);
  const isCross = attention.kind === "cross";
  const input = isCross ? keyName(tokenName(trace.sides.target, query)) : word;
  return { word, input, key: keyName(walk.keys[strongestKey(walk)].name), isCross };
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
  const { context: { t, data }, trace, attention, query, choose } = stop;
  const { word, isCross } = names(stop);
  const [source, own] = [trace.sides[attention.keys], trace.sides[attention.queries]];
  const isAnswer = attention.queries === "target" && trace.sides.source !== null;
  const chosen = (/** @type {number} */ i) => (i === query ? "here" : "");
  const part = (/** @type {string} */ name, /** @type {Side | null} */ side, /** @type {Node} */ list) =>
    el("div", {}, name ? el("p", { class: "side-name", text: name }) : null, list, el("p", { class: "hint", text: splittingOf(t, side) }));
  const parts = isCross
    ? [part(t("side_source"), source, chips(source, () => "", null)), part(t("side_written"), own, chips(own, chosen, choose))]
    : [part("", own, chips(own, chosen, choose))];
  const kind = isCross ? "_cross" : isAnswer ? "_target" : data.info.task === "language" ? "_language" : "";
  return {
    texts: [t(`tour_1_text${kind}`, { n: source?.tokens.length ?? 0, m: own?.tokens.length ?? 0, specials: specialsOf(t, source) }), t(isCross ? "tour_1_more_cross" : "tour_1_more", { word })],
    figure: el("div", { class: "tour-sides" }, ...parts),
  };
}

/** @type {(stop: Stop) => Step} */
function vectors(stop) {
  const { context: { t, data }, trace, attention, query } = stop;
  const { word, input, isCross } = names(stop);
  const isDecoder = attention.queries !== "source";
  const list = chips(trace.sides[isCross ? "target" : attention.queries], (i) => (i === query ? "here" : ""), null);
  [...list.querySelectorAll(".chip")].forEach((chip, i) => { // each with its position below
    const place = el("span", { class: "chip-place" });
    chip.replaceWith(place);
    place.append(chip, String(i + 1));
  });
  const inputs = isCross ? [t("tour_2_inputs", { word, input })] : isDecoder && trace.sides.source ? [t("tour_2_inputs_self")] : [];
  return { texts: [t("tour_2_text", { width: data.info.width }), t("tour_2_more"), ...inputs], figure: list };
}

/** @type {(stop: Stop) => Step} */
function projections(stop) {
  const { context: { t }, walk, query } = stop;
  const { word, input, key, isCross } = names(stop);
  const other = walk.keys[isCross ? strongestKey(walk) : query];
  const sizes = walk.q.length === other.v.length || !walk.q.length ? t("tour_3_size", { d: other.v.length }) : t("tour_3_sizes", { d: walk.head_width, v: other.v.length });
  return {
    texts: [t("tour_3_text", { sizes }), t(isCross ? "tour_3_query_cross" : "tour_3_query", { word }), t(isCross ? "tour_3_more_cross" : "tour_3_more_self", { word, input, key })],
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
  const isDot = walk.form === "scaled-dot" || walk.form === "dot";
  return {
    texts: [context.t(isDot ? "tour_4_text" : "tour_4_other", { form: walk.form }), context.t(isDot ? "tour_4_more" : "tour_4_more_other", { word, key: keyName(best.name), product: decimal(best.product, 3) })],
    figure: keysTable(context, walk, { chosen: walk.keys.indexOf(best), until: "products" }),
  };
}

/** @type {(stop: Stop) => Step} */
function scaling({ context, walk }) {
  const { t } = context;
  if (walk.form !== "scaled-dot") return { texts: [t(walk.form === "dot" ? "tour_5_dot" : "tour_5_plain", { form: walk.form })], figure: keysTable(context, walk, { chosen: null, until: walk.form === "dot" ? "contrast" : "scores" }) };
  const largest = weightTexts(walk)[strongestKey(walk)];
  const other = weightTexts(walk, "weight_unscaled")[strongestKey(walk, "weight_unscaled")];
  return {
    texts: [t("tour_5_why"), t("tour_5_text", { d: walk.head_width, scale: decimal(walk.scale, 3) }), t(largest === other ? "tour_5_same" : "tour_5_more", { largest, other })],
    figure: keysTable(context, walk, { chosen: null, until: "contrast" }),
  };
}

/** @type {(stop: Stop) => Step} */
function mask(stop) {
  const { context, walk, attention, trace, query } = stop;
  const { t } = context;
  const { word, isCross } = names(stop);
  const n = walk.keys.filter((key) => key.visible).length;
  const isCausal = attention.kind === "decoder";
  return {
    texts: [t(isCausal ? "tour_6_text_causal" : isCross ? "tour_6_text_cross" : "tour_6_text_free"), t(isCross ? "tour_6_more_cross" : "tour_6_more", { word, n, total: walk.keys.length })],
    figure: el("div", {}, chips(trace.sides[attention.keys], (i) => (walk.keys[i]?.visible === false ? "masked" : !isCross && i === query ? "here" : ""), null),
      isCausal ? keysTable(context, walk, { chosen: query, until: "masked" }) : null),
  };
}

/** @type {(stop: Stop) => Step} */
function softmax(stop) {
  const { context, walk } = stop;
  const at = strongestKey(walk);
  const { word, key, isCross } = names(stop);
  return {
    texts: [context.t("tour_7_text"), context.t("tour_7_largest"), context.t(isCross ? "tour_7_more_cross" : "tour_7_more", { word, key, weight: weightTexts(walk)[at] })],
    figure: keysTable(context, walk, { chosen: at }),
  };
}

/** @type {(stop: Stop) => Step} */
function values({ context: { t }, walk }) {
  const top = [...walk.keys.keys()].sort((a, b) => walk.keys[b].weight - walk.keys[a].weight).slice(0, 3);
  const weights = weightTexts(walk);
  const largest = Math.max(...walk.weighted_sum.map(Math.abs), ...top.flatMap((i) => walk.keys[i].v.map(Math.abs)), 1e-9);
  const figure = (/** @type {string} */ name, /** @type {number[]} */ numbers) => el("figure", {}, el("figcaption", {}, el("span", { text: name })), strip(numbers, name, largest));
  return {
    texts: [t("tour_8_text")],
    figure: el("div", { class: "strips" }, ...top.map((i) => figure(t("n_weighted", { weight: weights[i], key: keyName(walk.keys[i].name) }), walk.keys[i].v.map((x) => x * walk.keys[i].weight))),
      figure(t("n_sum_values"), walk.weighted_sum)),
  };
}

/** @type {(stop: Stop) => Step} */
function heads(stop) {
  const { context, attention, maps, query, trace, head } = stop;
  const { t, store } = context;
  const { word, isCross } = names(stop);
  const keys = trace.sides[attention.keys];
  const cards = maps.map((map, i) => {
    const canvas = el("canvas", { role: "img", "aria-label": t("n_head", { head: i }) });
    let says = "";
    if (map) {
      drawMap(canvas, map, query);
      const row = map.values.subarray(query * map.n_keys, (query + 1) * map.n_keys);
      const best = row.reduce((most, value, k) => (value > row[most] ? k : most), 0);
      says = `${t(isCross ? "tour_9_looks_cross" : "tour_9_looks", { word, key: keyName(tokenName(keys, best)) })} · ≈ ${percent(row[best])}`;
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
  const { context: { t, data: { info }, store }, attention } = stop;
  const n = info.attentions.filter((one) => one.kind === attention.kind).length;
  const isBoth = info.shape === "encoder-decoder";
  const isEncoder = attention.kind === "encoder";
  const isLast = info.attentions.every((one) => one.kind !== attention.kind || one.layer <= attention.layer);
  const end = isBoth && isEncoder ? "tour_11_encoder" : `tour_11_${info.task}`;
  const layers = isLast ? t(isBoth ? (isEncoder ? "tour_11_last_encoder" : "tour_11_last_decoder") : "tour_11_last", { n }) : t("tour_11_layers", { n, layer: attention.layer });
  return {
    texts: [t("tour_11_text"), t(isBoth && attention.kind === "decoder" ? "tour_11_then_cross" : "tour_11_then"), `${layers}${t("tour_1_space")}${t(isLast ? `${end}_last` : end)}`],
    figure: el("p", {}, el("button", { type: "button", class: "plain", text: t("tour_open"), onclick: () => store.set({ page: "text", pins: [stop.query] }) })),
  };
}
