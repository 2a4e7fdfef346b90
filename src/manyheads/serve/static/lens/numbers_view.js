// One row of a head in numbers: every step from q · k to what the head adds to the output.
/** @import { Problem } from "../shared/types.js" */
/** @import { Context, Mount, Side, Trace, WalkRow } from "./lens_types.js" */
import { asProblem, el, setText, svg } from "../shared/dom.js";
import { decimal } from "../shared/figures.js";
import { sentences } from "../shared/messages.js";
import { shownText, tokenName, withNames } from "./head_map.js";

const N_SHORT = 14; // keys of a table as high as the strips beside it

/** @type {Mount} */
export const mountNumbersView = (root, context) => {
  const { store, data, t } = context;
  /** @type {WalkRow | null} */
  let walk = null;
  /** @type {Problem | null} */
  let problem = null;
  let wanted = "";
  let drawn = "";
  /** @type {number | null} the key chosen in the table; null: the pinned or the strongest one */
  let chosen = null;
  let lastPinned = "";
  const title = el("h2");
  const lead = el("p", { class: "hint" });
  const rows = el("div", { class: "row-choice" });
  const error = el("p", { class: "caution", role: "alert", hidden: true });
  const body = el("div", { class: "numbers-body" });
  root.classList.add("numbers-view");
  root.append(el("div", { class: "head-title" }, title, lead), rows, error, body);

  /** The row in question: the newest pin, or the step of generation that is looked at. */
  function query() {
    const { pins, at, attention } = store.state;
    const traced = data.trace?.attentions.find((one) => one.name === attention);
    if (!traced) return null;
    const found = pins.at(-1) ?? (traced.queries === "source" ? null : at);
    return found !== null && found < traced.n_queries ? found : null;
  }
  function querySide() {
    const traced = data.trace?.attentions.find((one) => one.name === store.state.attention);
    return (traced && data.trace?.sides[traced.queries]) ?? null;
  }

  /** The key whose numbers are shown. @param {WalkRow} row */
  function keyOf(row) {
    const pinned = store.state.keyPins.at(-1);
    // A word that is pinned in the arcs or the text of self-attention is pinned as query and as key.
    const isItself = !row.attention.endsWith("cross") && pinned === row.query;
    return chosen ?? (pinned !== undefined && pinned < row.keys.length && !isItself ? pinned : strongestKey(row));
  }

  async function load() {
    const { attention, head } = store.state;
    const position = query();
    const key = [data.trace?.id, attention, head, position].join("\n");
    if (key === wanted) return;
    wanted = key;
    chosen = null;
    problem = null;
    if (!data.trace || position === null) {
      walk = null;
      show();
      return;
    }
    body.classList.add("waiting");
    try {
      const { trace } = data;
      const found = await context.load.walk(trace, attention, head, position);
      if (wanted !== key) return;
      walk = withNames(found, trace);
    } catch (thrown) {
      if (wanted !== key) return;
      walk = null;
      problem = asProblem(thrown);
    }
    body.classList.remove("waiting");
    show();
  }

  function show() {
    setText(title, t("n_title"));
    error.hidden = !problem;
    setText(error, problem?.detail ?? "");
    setText(lead, walk ? t("n_lead", { query: keyName(walk.query_name) }) : t("n_pin_first"));
    showChoice();
    const pinned = String(store.state.keyPins);
    if (pinned !== lastPinned) [chosen, lastPinned] = [null, pinned];
    const key = [wanted, walk && keyOf(walk), store.state.lang, walk !== null].join("\n");
    if (key === drawn) return;
    drawn = key;
    body.classList.toggle("long", walk !== null && walk.keys.length > N_SHORT);
    // What was open stays open, and the focus stays on the key that was chosen.
    const open = new Set([...body.querySelectorAll("details")].filter((one) => one.open).map((one) => one.dataset.key));
    const focused = [...body.querySelectorAll(".key-name")].findIndex((one) => one === document.activeElement);
    body.replaceChildren(...(walk ? stages(walk) : []));
    for (const one of body.querySelectorAll("details")) one.open = open.has(one.dataset.key);
    const again = focused < 0 ? null : body.querySelectorAll(".key-name")[focused];
    if (again instanceof HTMLElement) again.focus({ preventScroll: true });
  }

  /** The pinned rows, or a button that pins the first one. */
  function showChoice() {
    const side = querySide();
    const units = side?.tokens ?? [];
    const { pins } = store.state;
    const position = query();
    const key = [data.trace?.id, store.state.attention, pins, position, store.state.lang, store.state.unit].join("|");
    if (rows.dataset.key === key) return;
    rows.dataset.key = key;
    const label = el("label", { class: "faint", for: "lens-row", text: t("n_choose") });
    const select = el("select", { id: "lens-row", onchange: () => {
      const value = Number(select.value);
      store.set({ pins: value < 0 ? [] : [...pins.filter((pin) => pin !== value), value] });
    } }, el("option", { value: -1, text: "—" }), ...units.map((_, i) => el("option", { value: i, text: `${i + 1}  ${tokenName(side, i)}` })));
    select.value = String(position ?? -1);
    rows.replaceChildren(label, select, ...(side && position !== null ? [tokenChoice(side, position)] : []));
  }

  /** A word of several tokens has several rows: which one is shown, and a switch. @param {Side} side @param {number} position */
  function tokenChoice(side, position) {
    const { unit, pins } = store.state;
    const word = unit === "tokens" ? undefined : side[unit].find((one) => one.parts.length > 1 && one.parts.some(([part]) => part === position));
    if (!word) return "";
    const name = (/** @type {number} */ i) => keyName(tokenName(side, i));
    const choose = (/** @type {number} */ i) => store.set({ pins: pins.length ? pins.map((pin) => (pin === position ? i : pin)) : [i] });
    const note = t("n_parts", { word: shownText(word), n: word.parts.length, token: name(position) });
    return el("span", { class: "token-choice" }, el("span", { class: "hint", text: note }),
      el("span", { class: "switch", role: "group", "aria-label": note }, ...word.parts.map(([i]) => el("button", { type: "button", dir: "auto", "aria-pressed": String(i === position), text: name(i), onclick: () => choose(i) }))));
  }

  /** @param {WalkRow} row @returns {HTMLElement[]} */
  function stages(row) {
    const at = keyOf(row);
    const choose = (/** @type {number} */ i) => { chosen = i; show(); };
    return [
      stage("1", t("n_stage_scores"), t(row.scale === 1 ? "n_scores_plain" : "n_scores", { d: row.head_width, scale: decimal(row.scale, 3) }),
        keysTable(context, row, { chosen: at, choose }), contrast(row)),
      stage("2", t("n_stage_terms", { query: keyName(row.query_name), key: keyName(row.keys[at].name) }), t("n_terms"), terms(row, at)),
      stage("3", t("n_stage_values"), t("n_values", { n: row.weighted_sum.length }), values(row, at)),
      stage("4", t("n_stage_output"), t("n_output", { n: row.contribution.length, norm: decimal(row.contribution_norm, 3) }),
        strip(row.contribution, t("n_strip_output", { n: row.contribution.length })),
        vectorDetails(context, "output", t("n_all_numbers", { n: row.contribution.length }), [{ name: t("n_head", { head: row.head }), values: row.contribution }]),
        headShares(context, row), el("p", { class: "hint", text: t("n_norms_note") }), data.trace && row.shares.length > 1 ? headSum(context, data.trace, row) : null),
    ];
  }

  /** @param {WalkRow} row */
  function contrast(row) {
    if (row.keys.every((key) => key.weight_unscaled === null)) return null;
    const largest = weightTexts(row)[strongestKey(row)];
    const other = weightTexts(row, "weight_unscaled")[strongestKey(row, "weight_unscaled")];
    const message = largest === other ? "n_contrast_same" : row.scale === 1 ? "n_contrast_with" : "n_contrast_without";
    return el("p", { class: "hint", text: sentences(t, [t(message, { largest, other }), t(row.scale === 1 ? "n_trained_plain" : "n_trained"), t("n_rounded")]) });
  }

  /** @param {WalkRow} row @param {number} at */
  function terms(row, at) {
    const key = row.keys[at];
    const isDot = row.q.length === key.terms.length && key.k.length === key.terms.length;
    const rounded = roundToSum(key.terms, 3);
    const columns = isDot ? [{ name: "qᵢ", values: row.q }, { name: "kᵢ", values: key.k }] : [];
    const table = vectorDetails(context, "terms", t("n_all_terms", { n: key.terms.length }), [...columns, { name: isDot ? "qᵢ kᵢ" : t("n_term"), values: rounded, total: key.product }], 3);
    const strips = isDot ? [["q", row.q], ["k", key.k], ["q · k", key.terms]] : [[t("n_term"), key.terms]];
    return el("div", {}, el("div", { class: "strips" }, ...strips.map(([name, numbers]) => el("figure", {}, el("figcaption", {}, el("span", { text: String(name) }), el("span", { class: "faint", text: name === "q · k" ? `Σ = ${decimal(key.product, 3)}` : "" })), strip(/** @type {number[]} */ (numbers), String(name))))), table);
  }

  /** @param {WalkRow} row @param {number} at */
  function values(row, at) {
    const key = row.keys[at];
    const largest = Math.max(...row.weighted_sum.map(Math.abs), ...key.v.map(Math.abs), 1e-9);
    const figure = (/** @type {string} */ name, /** @type {number[]} */ numbers) => el("figure", {}, el("figcaption", {}, el("span", { text: name })), strip(numbers, name, largest));
    const [name, weighted] = [keyName(key.name), key.v.map((x) => x * key.weight)];
    return el("div", {}, el("div", { class: "strips" }, figure(t("n_v_of", { key: name }), key.v),
      figure(t("n_weighted", { weight: weightTexts(row)[at], key: name }), weighted), figure(t("n_sum_values"), row.weighted_sum)),
    vectorDetails(context, "values", t("n_all_values", { n: key.v.length }), [{ name: "vᵢ", values: key.v }, { name: "w vᵢ", values: weighted }, { name: t("n_sum_values"), values: row.weighted_sum }]));
  }

  return {
    update() {
      show();
      void load();
    },
  };
};

/** @param {string} number @param {string} title @param {string} text @param {...(Node | null)} content */
function stage(number, title, text, ...content) {
  return el("section", { class: "number-stage" }, el("h3", {}, el("span", { class: "stage-number", text: number }), title), el("p", { class: "hint", text }), ...content);
}

// ---------------------------------------------------------------- vectors, in tables that open on demand

const DIGITS = 4;

/**
 * One line per dimension, one column per vector.
 * @param {Context} context @param {string} name @param {{ name: string, values: number[], total?: number }[]} columns a total: displayed terms add up to it
 * @param {number} [digits]
 */
function vectorTable({ t }, name, columns, digits = DIGITS) {
  const cell = (/** @type {number | undefined} */ value) => el("td", { class: "number", text: value === undefined ? "" : decimal(value, digits) });
  const head = el("tr", {}, ...["i", ...columns.map((column) => column.name)].map((text) => el("th", { scope: "col", class: "number", text })));
  const lines = (columns[0]?.values ?? []).map((_, i) => el("tr", {}, el("th", { scope: "row", class: "number", text: String(i) }), ...columns.map(({ values }) => cell(values[i]))));
  const hasTotal = columns.some((column) => column.total !== undefined);
  return el("div", { class: "wide tall", tabindex: 0, role: "region", "aria-label": name }, el("table", { class: "numbers narrow" }, el("thead", {}, head), el("tbody", {}, ...lines),
    hasTotal ? el("tfoot", {}, el("tr", {}, el("th", { scope: "row", text: t("n_sum") }), ...columns.map((column) => cell(column.total)))) : null));
}

/**
 * @param {Context} context @param {string} key stays the same when the page is drawn again @param {string} summary
 * @param {{ name: string, values: number[], total?: number }[]} columns @param {number} [digits]
 */
function vectorDetails(context, key, summary, columns, digits) {
  return el("details", { "data-key": key }, el("summary", { text: summary }), vectorTable(context, summary, columns, digits));
}

/** What each head adds at this position, and the sum; the rows of the other heads are loaded when it is opened. @param {Context} context @param {Trace} trace @param {WalkRow} walk */
function headSum(context, trace, walk) {
  const { t, load } = context;
  const content = el("div", {});
  let isAsked = false;
  async function open() {
    if (isAsked) return;
    isAsked = true;
    content.replaceChildren(el("p", { class: "hint", text: t("n_heads_wait") }));
    try {
      const rows = await Promise.all(walk.shares.map((_, head) => (head === walk.head ? walk : load.walk(trace, walk.attention, head, walk.query))));
      const sum = walk.contribution.map((_, i) => rows.reduce((total, row) => total + row.contribution[i], 0));
      const name = t("n_heads_sum");
      content.replaceChildren(
        el("p", { class: "hint", text: t("n_heads_norm", { norm: decimal(Math.hypot(...sum), 3), norms: decimal(walk.shares.reduce((total, x) => total + x, 0), 3) }) }),
        strip(sum, name), vectorTable(context, name, [...rows.map((row, head) => ({ name: t("n_head", { head }), values: row.contribution })), { name: "Σ", values: sum }]));
    } catch {
      content.replaceChildren(el("p", { class: "hint", text: t("not_in_file") }));
    }
  }
  const details = el("details", { "data-key": "heads", ontoggle: () => { if (details.open) void open(); } }, el("summary", { text: t("n_heads_sum") }), content);
  return details;
}

// ---------------------------------------------------------------- small tables and bars, for the tour too

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
function bar(share, kind = "") {
  const fill = el("div");
  fill.style.setProperty("width", `${(100 * Math.max(0, Math.min(1, share))).toFixed(2)}%`);
  fill.hidden = share < 2e-3;
  return el("div", { class: `bar ${kind}`, "aria-hidden": "true" }, fill);
}

/** A bar to the left or to the right of the middle. @param {number} value @param {number} largest */
function signedBar(value, largest) {
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
