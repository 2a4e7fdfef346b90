/** @import { Mount, Problem, Side, WalkRow } from "./types.js" */
// One row of a head in numbers: every step from q · k to what the head adds to the output.
import { asProblem, decimal, el, setText } from "./dom.js";
import { shownText, tokenName, withNames } from "./head_map.js";
import { headShares, keyName, keysTable, roundToSum, strip, strongestKey, weightTexts } from "./number_parts.js";
import { headSum, vectorDetails } from "./number_vectors.js";
import "./number_texts.js";

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
    return el("p", { class: "hint", text: [t(message, { largest, other }), t(row.scale === 1 ? "n_trained_plain" : "n_trained"), t("n_rounded")].join(t("n_space")) });
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
