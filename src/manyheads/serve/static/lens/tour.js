// A narrated tour: one sentence, one layer, one head, step by step.
/** @import { Problem, Translate } from "../shared/types.js" */
/** @import { Context, HeadMap, Mount, Side, Trace, TracedAttention, Unit, WalkRow } from "./lens_types.js" */
import { asProblem, cssColor, el, fitCanvas, isTyping, setText } from "../shared/dom.js";
import { decimal, percent } from "../shared/figures.js";
import { sentences } from "../shared/messages.js";
import { shownText, tokenName, withNames } from "./head_map.js";
import { colorTable } from "./matrix_paint.js";
import { headShares, keyName, keysTable, strip, strongestKey, weightTexts } from "./numbers_view.js";

const MAX_MAPS = 16; // heads shown side by side

/** @type {Mount} */
export const mountTourView = (root, context) => {
  const { store, data, t } = context;
  /** @type {Stop | null} */
  let stop = null;
  /** @type {Problem | null} */
  let problem = null;
  let wanted = "";
  let drawn = "";
  /** Rows to start with, by trace and head. @type {Map<string, number>} */
  const rows = new Map();
  const title = el("h2", { class: "tour-title" });
  const attention = el("select", { id: "tour-attention", onchange: () => store.set({ attention: attention.value, head: 0, pins: [], keyPins: [] }) });
  const head = el("select", { id: "tour-head", onchange: () => store.set({ head: Number(head.value) }) });
  const word = el("select", { id: "tour-word", onchange: () => store.set({ pins: [Number(word.value)] }) });
  const labels = [attention, head, word].map((field) => el("label", { for: field.id, class: "faint" }));
  const fields = el("div", { class: "tour-fields" }, ...[attention, head, word].map((field, i) => el("span", { class: "control" }, labels[i], field)));
  const list = el("ol", { class: "tour-list" });
  const steps = el("select", { class: "tour-choose", onchange: () => store.set({ tour: Number(steps.value) }) }); // instead of the list, on a narrow page
  const count = el("p", { class: "faint tour-count" });
  const heading = el("h3", { class: "tour-heading", tabindex: -1 });
  const body = el("div", { class: "tour-body" });
  const error = el("p", { class: "caution", role: "alert", hidden: true });
  const before = el("button", { type: "button", class: "plain", onclick: () => go(-1) });
  const after = el("button", { type: "button", class: "primary", onclick: () => go(1) });
  const buttons = el("div", { class: "tour-buttons" }, before, after);
  const nav = el("nav", {}, list);
  root.classList.add("tour");
  root.append(el("div", { class: "tour-top" }, title, fields), error,
    el("div", { class: "tour-columns" }, nav, el("article", {}, steps, count, heading, body, buttons)));

  const number = () => Math.min(store.state.tour, N_STEPS - 1);
  /** @param {number} step */
  function go(step) {
    const next = Math.max(0, Math.min(N_STEPS - 1, number() + step));
    if (next === number()) return;
    store.set({ tour: next });
    heading.focus({ preventScroll: true });
  }
  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    go(step);
  }
  addEventListener("keydown", onKey);

  const traced = () => data.trace?.attentions.find((one) => one.name === store.state.attention);
  const rowKey = () => [data.trace?.id, store.state.attention, store.state.head].join();

  /** The row to follow: the newest pin, or a telling one as soon as the map is there. */
  function query() {
    const { pins } = store.state;
    const pin = pins.at(-1);
    return pin !== undefined && pin < (traced()?.n_queries ?? 0) ? pin : rows.get(rowKey()) ?? null;
  }

  /** Finds a telling row of the selected head. */
  async function findRow() {
    const { trace, info } = data;
    const { attention: name, head: n } = store.state;
    const own = traced();
    const key = rowKey();
    if (!trace || !own || n >= own.n_heads || rows.has(key)) return;
    const width = info.attentions.find((attention) => attention.name === name)?.head_width ?? 1;
    const map = await context.load.map(trace, name, n, "weights").catch(() => null);
    const [queries, keys] = [trace.sides[own.queries]?.tokens ?? [], trace.sides[own.keys]?.tokens ?? []];
    rows.set(key, map ? tellingRow(map, queries, keys, Math.sqrt(width)) : 0);
  }

  async function load() {
    const { trace } = data;
    const { attention: name, head: n } = store.state;
    if (query() === null) {
      await findRow();
      if (trace !== data.trace || name !== store.state.attention || n !== store.state.head) return;
      showFields();
    }
    const [own, position] = [traced(), query()];
    if (!trace || !own || position === null) return;
    const key = [trace.id, name, n, position].join("\n");
    if (key === wanted) return;
    wanted = key;
    body.classList.add("waiting");
    try {
      const maps = Promise.all(Array.from({ length: Math.min(own.n_heads, MAX_MAPS) }, (_, i) => context.load.map(trace, name, i, "weights").catch(() => null)));
      const walk = await context.load.walk(trace, name, n, position);
      const all = await maps;
      if (wanted !== key) return;
      stop = { context, trace, attention: own, head: n, query: position, walk: withNames(walk, trace), maps: all, choose: (i) => store.set({ pins: [i] }) };
      problem = null;
    } catch (thrown) {
      if (wanted !== key) return;
      problem = asProblem(thrown);
    }
    body.classList.remove("waiting");
    show();
  }

  function showFields() {
    const { state } = store;
    [t("tour_layer"), t("tour_head"), t("tour_word")].forEach((name, i) => setText(labels[i], name));
    const own = traced();
    const side = (own && data.trace?.sides[own.queries]) ?? null;
    const key = [data.trace?.id, state.attention, state.lang].join();
    if (fields.dataset.key !== key) {
      fields.dataset.key = key;
      attention.replaceChildren(...data.info.attentions.map((traced) => el("option", { value: traced.name, text: context.headTitle(traced.name, null) })));
      head.replaceChildren(...Array.from({ length: own?.n_heads ?? 0 }, (_, i) => el("option", { value: i, text: String(i) })));
      word.replaceChildren(...(side?.tokens ?? []).map((_, i) => el("option", { value: i, text: `${i + 1}  ${tokenName(side, i)}` })));
    }
    attention.value = state.attention;
    head.value = String(state.head);
    word.value = String(query() ?? 0);
  }

  function show() {
    const current = number();
    setText(title, t("tour_title"));
    showFields();
    nav.setAttribute("aria-label", t("tour_steps"));
    if (list.dataset.lang !== store.state.lang) {
      list.dataset.lang = store.state.lang;
      list.replaceChildren(...Array.from({ length: N_STEPS }, (_, i) => el("li", {}, el("button", { type: "button", class: "plain", text: t(`tour_${i + 1}`), onclick: () => store.set({ tour: i }) }))));
      steps.replaceChildren(...Array.from({ length: N_STEPS }, (_, i) => el("option", { value: i, text: `${i + 1}  ${t(`tour_${i + 1}`)}` })));
      steps.setAttribute("aria-label", t("tour_choose"));
    }
    [...list.querySelectorAll("button")].forEach((button, i) => (i === current ? button.setAttribute("aria-current", "step") : button.removeAttribute("aria-current")));
    steps.value = String(current);
    setText(count, t("tour_step", { step: current + 1, n: N_STEPS }));
    setText(heading, t(`tour_${current + 1}`));
    setText(before, t("tour_previous"));
    setText(after, t("tour_next"));
    before.disabled = current === 0;
    after.hidden = current === N_STEPS - 1;
    error.hidden = !problem;
    setText(error, problem?.detail ?? "");
    const key = [stop && [stop.trace.id, stop.attention.name, stop.head, stop.query], current, store.state.lang, store.state.theme, matchMedia("(prefers-color-scheme: dark)").matches].join("\n");
    if (key === drawn) return;
    drawn = key;
    if (!stop) {
      body.replaceChildren(el("p", { class: "faint", text: problem ? "" : t("tour_wait") }));
      return;
    }
    const { texts, figure } = stepOf(stop, current);
    body.replaceChildren(...texts.map((text) => el("p", { class: "tour-text" }, ...withMatrices(text))), ...(figure ? [el("div", { class: "tour-figure" }, figure)] : []));
  }

  return {
    update() {
      show();
      void load();
    },
    destroy: () => removeEventListener("keydown", onKey),
  };
};

/** The names of matrices with their superscripts: W^Q. @param {string} text @returns {(Node | string)[]} */
function withMatrices(text) {
  return text.split(/(W\^[QKVO])/).map((part) => (/^W\^[QKVO]$/.test(part) ? el("span", { class: "matrix-name" }, "W", el("sup", { text: part[2] })) : part));
}

// ---------------------------------------------------------------- the row that is followed first

const SHARP = 0.9; // a row with a larger weight shows little
const FRAGMENT = /^[\p{L}\p{N}]$/u; // one letter of a word that was split
const HAN = /\p{Script=Han}/u;

/**
 * Weights w of scores s / c become w^c / Σ w^c without the division by c.
 * @param {Float32Array} row @param {number} scale @returns {number} total variation between the two rows, from 0 to 1
 */
function changeWithout(row, scale) {
  const largest = row.reduce((most, weight) => Math.max(most, weight), 0) || 1;
  const powers = row.map((weight) => (weight / largest) ** scale);
  const total = powers.reduce((sum, x) => sum + x, 0) || 1;
  return row.reduce((sum, weight, i) => sum + Math.abs(weight - powers[i] / total) / 2, 0);
}

/** @param {HeadMap} map @param {Unit[]} queries @param {Unit[]} keys @param {number} scale @returns {number} position of the row */
function tellingRow(map, queries, keys, scale) {
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

// ---------------------------------------------------------------- what each step says and shows, with the numbers of the user's own text

/**
 * @typedef {{ context: Context, trace: Trace, attention: TracedAttention, head: number, query: number, walk: WalkRow,
 *   maps: (HeadMap | null)[], choose: (query: number) => void }} Stop
 * @typedef {{ texts: string[], figure: Node | null }} Step
 */

const MAX_CHIPS = 120;
const N_STEPS = 11;

/** @param {Stop} stop @returns {Step} */
function stepOf(stop, /** @type {number} */ number) {
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
  const kind = isCross ? "_cross" : isAnswer ? "_target" : data.info.answer_form === "continuation" ? "_continuation" : "";
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
  const own = trace.sides[attention.queries];
  const words = (own?.tokens ?? []).flatMap((unit, i) => (unit.kind === "text" ? [i] : []));
  const found = compareTargets(maps, query, words);
  if (!found) return { texts: [t("tour_9_one")], figure: el("div", { class: "head-cards" }, ...cards) };
  const verdict = found.targets.length === 1 ? t("tour_9_same", { word, key: keyName(tokenName(keys, found.targets[0])) })
    : found.targets.length === found.n ? t("tour_9_differ", { word }) : t("tour_9_some", { word, m: found.targets.length, n: found.n });
  const other = found.best === null ? null
    : el("p", {}, el("button", { type: "button", class: "plain", text: t("tour_9_row", { word: keyName(tokenName(own, found.best)), m: found.most }), onclick: () => stop.choose(found.best ?? query) }));
  return { texts: [t("tour_9_text", { n: attention.n_heads }), verdict], figure: el("div", {}, el("div", { class: "head-cards" }, ...cards), other) };
}

/**
 * Where the heads look mostly from one row, and a row from which they look at more tokens, if there is one.
 * @param {(HeadMap | null)[]} maps @param {number} query @param {number[]} rows
 * @returns {{ n: number, targets: number[], best: number | null, most: number } | null} null for fewer than two maps
 */
export function compareTargets(maps, query, rows) {
  const known = maps.filter((map) => map !== null);
  if (known.length < 2) return null;
  const targetsAt = (/** @type {number} */ q) => [...new Set(known.map((map) => {
    const row = map.values.subarray(q * map.n_keys, (q + 1) * map.n_keys);
    return row.reduce((most, value, k) => (value > row[most] ? k : most), 0);
  }))];
  const targets = targetsAt(query);
  let [best, most] = [/** @type {number | null} */ (null), targets.length];
  for (const q of rows) {
    const count = q < known[0].n_queries ? targetsAt(q).length : 0;
    if (count > most) [best, most] = [q, count];
  }
  return { n: known.length, targets, best, most };
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
  const n = info.attentions.filter((traced) => traced.kind === attention.kind).length;
  const isBoth = info.shape === "encoder-decoder";
  const isEncoder = attention.kind === "encoder";
  const isLast = info.attentions.every((traced) => traced.kind !== attention.kind || traced.layer <= attention.layer);
  const end = isBoth && isEncoder ? "tour_11_encoder" : `tour_11_end_${info.answer_form}`;
  const layers = isLast ? t(isBoth ? (isEncoder ? "tour_11_last_encoder" : "tour_11_last_decoder") : "tour_11_last", { n }) : t("tour_11_layers", { n, layer: attention.layer });
  return {
    texts: [t("tour_11_text"), t(isBoth && attention.kind === "decoder" ? "tour_11_then_cross" : "tour_11_then"), sentences(t, [layers, t(isLast ? `${end}_last` : end)])],
    figure: el("p", {}, el("button", { type: "button", class: "plain", text: t("tour_open"), onclick: () => store.set({ page: "text", pins: [stop.query] }) })),
  };
}

// ---------------------------------------------------------------- what is true of the tokens at hand

const SPACE = "▁";
const MAX_PARTS = 6; // of a split word that is shown

/** Special tokens of a side in brackets, such as "(with EOS, which marks the end)"; "" if there are none. @param {Translate} t @param {Side | null} side */
export function specialsOf(t, side) {
  const names = [...new Set((side?.tokens ?? []).filter((unit) => unit.kind === "special").map((unit) => unit.text))];
  if (!names.length) return "";
  const known = names.filter((name) => name === "BOS" || name === "EOS").sort().join("_");
  return names.length === known.split("_").length && known ? t(`tour_1_${known}`) : t("tour_1_specials", { names: names.join(t("tour_1_comma")) });
}

/** How the words and characters of a side became tokens. @param {Translate} t @param {Side | null} side */
export function splittingOf(t, side) {
  if (!side) return "";
  return sentences(t, [words(t, side), characters(t, side), spaces(t, side)]);
}

/** The tokens of a unit; a space that is a token of its own is not counted as a part of the word. @param {Side} side @param {Unit} unit */
const partsOf = (side, unit) => unit.parts.filter(([position]) => side.tokens[position]?.text !== SPACE);

/** @param {Translate} t @param {Side} side */
function words(t, side) {
  const all = side.words.filter((unit) => unit.kind === "text" && !HAN.test(unit.text));
  const split = all.filter((unit) => partsOf(side, unit).length > 1);
  if (!all.length) return "";
  if (!split.length) return t(all.length === 1 ? "tour_1_word" : "tour_1_words", { n: all.length });
  const shortest = split.reduce((best, unit) => (partsOf(side, unit).length < partsOf(side, best).length ? unit : best));
  const parts = partsOf(side, shortest).map(([position]) => tokenName(side, position));
  const shown = parts.length > MAX_PARTS ? [...parts.slice(0, MAX_PARTS), "…"] : parts;
  return t(split.length === all.length ? "tour_1_split_all" : "tour_1_split", { n: all.length, whole: all.length - split.length, split: split.length, word: shownText(shortest), parts: shown.join(" + ") });
}

/** @param {Translate} t @param {Side} side */
function characters(t, side) {
  const all = side.characters.filter((unit) => HAN.test(unit.text));
  if (!all.length) return "";
  const bytes = all.filter((unit) => partsOf(side, unit).some(([position]) => side.tokens[position]?.kind === "byte"));
  const joined = all.filter((unit) => !bytes.includes(unit) && partsOf(side, unit).some(([, share]) => share < 1));
  const n = { n: all.length, one: all.length - bytes.length - joined.length, joined: joined.length, bytes: bytes.length };
  if (!joined.length && !bytes.length) return t("tour_1_characters", n);
  const found = [t("tour_1_some", n)];
  if (joined.length) found.push(t("tour_1_joined", n));
  if (bytes.length) found.push(t("tour_1_bytes", { ...n, character: bytes[0].text }));
  return `${found.join(t("tour_1_comma_long"))}${t("tour_1_stop")}`;
}

/** @param {Translate} t @param {Side} side */
function spaces(t, side) {
  const found = side.tokens.filter((unit) => unit.text === SPACE);
  if (!found.length) return "";
  return t(found.every((unit) => unit.start === unit.end) ? "tour_1_space_first" : "tour_1_space_own");
}
