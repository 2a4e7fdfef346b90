/** @import { Mount, Problem } from "./types.js" */
/** @import { Stop } from "./tour_steps.js" */
// A narrated tour: one sentence, one layer, one head, step by step.
import { asProblem, el, isTyping, setText } from "./dom.js";
import { tokenName, withNames } from "./head_map.js";
import { tellingRow } from "./tour_row.js";
import { N_STEPS, stepOf } from "./tour_steps.js";
import "./number_texts.js";
import "./tour_texts.js";
import "./view_texts.js";

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
    const width = info.attentions.find((one) => one.name === name)?.head_width ?? 1;
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
      attention.replaceChildren(...data.info.attentions.map((one) => el("option", { value: one.name, text: context.headTitle(one.name, null) })));
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
