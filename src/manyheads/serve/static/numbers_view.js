/** @import { Mount, Problem, WalkRow } from "./types.js" */
// One row of a head in numbers: every step from q · k to what the head adds to the output.
import { asProblem, decimal, el, percent, setText } from "./dom.js";
import { tokenName, withNames } from "./head_map.js";
import { headShares, keyName, keysTable, roundToSum, strip, strongestKey } from "./number_parts.js";
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
  /** @type {number | null} the key whose terms are shown; null: the strongest */
  let chosen = null;
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
    const key = [wanted, chosen, store.state.lang, walk !== null].join("\n");
    if (key === drawn) return;
    drawn = key;
    body.classList.toggle("long", walk !== null && walk.keys.length > N_SHORT);
    body.replaceChildren(...(walk ? stages(walk) : []));
  }

  /** The pinned rows, or a button that pins the first one. */
  function showChoice() {
    const side = querySide();
    const units = side?.tokens ?? [];
    const { pins } = store.state;
    const position = query();
    const key = [data.trace?.id, store.state.attention, pins, position, store.state.lang].join("|");
    if (rows.dataset.key === key) return;
    rows.dataset.key = key;
    const label = el("label", { class: "faint", for: "lens-row", text: t("n_choose") });
    const select = el("select", { id: "lens-row", onchange: () => {
      const value = Number(select.value);
      store.set({ pins: value < 0 ? [] : [...pins.filter((pin) => pin !== value), value] });
    } }, el("option", { value: -1, text: "—" }), ...units.map((_, i) => el("option", { value: i, text: `${i + 1}  ${tokenName(side, i)}` })));
    select.value = String(position ?? -1);
    rows.replaceChildren(label, select);
  }

  /** @param {WalkRow} row @returns {HTMLElement[]} */
  function stages(row) {
    const at = chosen ?? strongestKey(row);
    const choose = (/** @type {number} */ i) => { chosen = i; show(); };
    return [
      stage("1", t("n_stage_scores"), t(row.scale === 1 ? "n_scores_plain" : "n_scores", { d: row.head_width, scale: decimal(row.scale, 3) }),
        keysTable(context, row, { chosen: at, choose }), contrast(row)),
      stage("2", t("n_stage_terms", { query: keyName(row.query_name), key: keyName(row.keys[at].name) }), t("n_terms"), terms(row, at)),
      stage("3", t("n_stage_values"), t("n_values", { n: row.weighted_sum.length }), values(row, at)),
      stage("4", t("n_stage_output"), t("n_output", { n: row.contribution.length, norm: decimal(row.contribution_norm, 3) }),
        strip(row.contribution, t("n_strip_output", { n: row.contribution.length })), headShares(context, row), el("p", { class: "hint", text: t("n_norms_note") })),
    ];
  }

  /** @param {WalkRow} row */
  function contrast(row) {
    if (row.keys.every((key) => key.weight_unscaled === null)) return null;
    const largest = Math.max(...row.keys.map((key) => key.weight));
    const other = Math.max(...row.keys.map((key) => key.weight_unscaled ?? 0));
    const isSame = percent(largest) === percent(other);
    const message = isSame ? "n_contrast_same" : row.scale === 1 ? "n_contrast_with" : "n_contrast_without";
    return el("p", { class: "hint", text: `${t(message, { largest: percent(largest), other: percent(other) })} ${t("n_rounded")}` });
  }

  /** @param {WalkRow} row @param {number} at */
  function terms(row, at) {
    const key = row.keys[at];
    const isDot = row.q.length === key.terms.length && key.k.length === key.terms.length;
    const rounded = roundToSum(key.terms, 3);
    const table = el("details", {}, el("summary", { text: t("n_all_terms", { n: key.terms.length }) }), el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": t("n_terms_table") },
      el("table", { class: "numbers narrow" },
        el("thead", {}, el("tr", {}, ...(isDot ? ["i", "qᵢ", "kᵢ", "qᵢ kᵢ"] : ["i", t("n_term")]).map((name) => el("th", { scope: "col", class: "number", text: name })))),
        el("tbody", {}, ...rounded.map((term, i) => el("tr", {}, el("th", { scope: "row", class: "number", text: String(i) }),
          ...(isDot ? [cell(row.q[i]), cell(key.k[i])] : []), cell(term)))),
        el("tfoot", {}, el("tr", {}, el("th", { scope: "row", text: t("n_sum") }), ...(isDot ? [el("td"), el("td")] : []), cell(key.product))))));
    const strips = isDot ? [["q", row.q], ["k", key.k], ["q · k", key.terms]] : [[t("n_term"), key.terms]];
    return el("div", {}, el("div", { class: "strips" }, ...strips.map(([name, numbers]) => el("figure", {}, el("figcaption", {}, el("span", { text: String(name) }), el("span", { class: "faint", text: name === "q · k" ? `Σ = ${decimal(key.product, 3)}` : "" })), strip(/** @type {number[]} */ (numbers), String(name))))), table);
  }

  /** @param {WalkRow} row @param {number} at */
  function values(row, at) {
    const key = row.keys[at];
    const largest = Math.max(...row.weighted_sum.map(Math.abs), ...key.v.map(Math.abs), 1e-9);
    const figure = (/** @type {string} */ name, /** @type {number[]} */ numbers) => el("figure", {}, el("figcaption", {}, el("span", { text: name })), strip(numbers, name, largest));
    return el("div", { class: "strips" }, figure(t("n_v_of", { key: keyName(key.name) }), key.v),
      figure(t("n_weighted", { weight: percent(key.weight), key: keyName(key.name) }), key.v.map((x) => x * key.weight)), figure(t("n_sum_values"), row.weighted_sum));
  }

  return {
    update() {
      show();
      void load();
    },
  };
};

/** @param {number} value */
const cell = (value) => el("td", { class: "number", text: decimal(value, 3) });

/** @param {string} number @param {string} title @param {string} text @param {...(Node | null)} content */
function stage(number, title, text, ...content) {
  return el("section", { class: "number-stage" }, el("h3", {}, el("span", { class: "stage-number", text: number }), title), el("p", { class: "hint", text }), ...content);
}
