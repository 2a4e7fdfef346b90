// Two texts or two bundles side by side, or one model over its training.
/** @import { Context, Data, State, Store, Trace, View } from "./lens_types.js" */
import { dropdown, show, switchGroup } from "../shared/controls.js";
import { asProblem, el } from "../shared/dom.js";
import { fixed, percent, signed } from "../shared/figures.js";
import { sentences } from "../shared/messages.js";
import { mountAnswerView } from "./answer_view.js";
import { headName, headTitle, parseHead, shortName } from "./heads.js";
import { mountTimeline } from "./timeline.js";

const N_DIFFERENT = 12; // heads in the list

/** @typedef {NonNullable<State["compare"]>} Mode */

/** @param {HTMLElement} root @param {Context} context @returns {View} */
export function mountComparePage(root, context) {
  const { store, t } = context;
  const top = el("div", { class: "row compare-top" });
  const body = el("div", { class: "compare-body" });
  const node = el("div", { class: "compare-page" }, top, body);
  root.append(node);
  /** @type {View | null} */
  let inner = null;
  /** @type {Mode | null} */
  let mounted = null;

  /** @returns {Mode} */
  function mode() {
    const { compare, step, text2 } = store.state;
    const hasTwo = can("bundles");
    if (compare && can(compare)) return compare;
    if (step !== null || !(hasTwo || can("texts"))) return "training";
    return hasTwo && (text2 === null || !can("texts")) ? "bundles" : "texts";
  }

  /** Whether there is something to compare: a saved page may hold one text only. @param {Mode} one */
  function can(one) {
    if (one === "bundles") return context.data.model.bundles.length > 1;
    return one === "training" || context.data.info.is_live || context.source.stored().length > 1;
  }

  function buildTop() {
    /** @type {[Mode, string][]} */
    const modes = [["bundles", t("compare_bundles")], ["texts", t("compare_texts")], ["training", t("compare_training")]];
    return [el("h2", {}, t("compare_title")), switchGroup(t("compare_mode"), modes.filter(([one]) => can(one)), mode(), (compare) => store.set({ compare }))];
  }

  const view = {
    update() {
      const now = mode();
      show(top, [now, store.state.lang, context.data.model], buildTop);
      if (mounted !== now) {
        inner?.destroy?.();
        body.replaceChildren();
        mounted = now;
        inner = now === "training" ? mountTimeline(body, context) : mountPair(body, context, now);
      }
      inner?.update();
    },
    destroy() { inner?.destroy?.(); node.remove(); },
  };
  return view;
}

/** @param {HTMLElement} root @param {Context} context @param {"texts" | "bundles"} mode @returns {View} */
function mountPair(root, context, mode) {
  const { store, t } = context;
  const { bundles } = context.data.model;
  const isTexts = mode === "texts";
  const suggested = () => (context.data.info.is_live ? context.data.info.examples : context.source.stored().map((trace) => trace.text));
  const text2 = () => store.state.text2 ?? suggested().find((text) => text !== store.state.text) ?? "";
  const sides = [
    sideContext(context, () => ({ bundle: isTexts ? store.state.bundle : bundles[0].id, text: store.state.text }), update),
    sideContext(context, () => ({ bundle: isTexts ? store.state.bundle : bundles[1].id, text: isTexts ? text2() : store.state.text }), update),
  ];
  const makeField = context.data.info.is_live ? textField : storedField(context);
  const inputs = [
    makeField((text) => store.set({ text, answer: null, pins: [], keyPins: [], at: null })),
    makeField((text2) => store.set({ text2 })),
  ];
  const shared = el("div", { class: "compare-shared" });
  const list = el("div", { class: "compare-list" });
  const columns = sides.map(() => ({ title: el("div", { class: "compare-title" }), answer: el("div"), problem: el("p", { class: "caution", role: "alert" }), none: el("p", { class: "note-small" }), head: el("div") }));
  const [left, right] = columns.map(({ title, answer, problem }) => el("div", { class: "compare-side" }, title, problem, answer));
  const node = el("div", { class: "compare" }, shared, el("div", { class: "compare-columns" }, left, right), list, el("div", { class: "compare-columns compare-heads" }, ...columns.map(({ head, none }) => el("div", {}, none, head))));
  root.append(node);
  /** @type {View[]} */
  const views = sides.map((side, i) => mountAnswerView(columns[i].answer, side.context));
  let isGone = false;
  let isChosen = false; // a head that both sides have, once
  import("./head_view.js").then(({ mountHeadView }) => {
    if (isGone) return;
    sides.forEach((side, i) => views.push(mountHeadView(columns[i].head, side.context)));
    update();
  }).catch((thrown) => columns[0].head.replaceChildren(el("p", { class: "caution" }, asProblem(thrown).detail)));

  /** @param {number} i */
  function buildTitle(i) {
    if (isTexts) return [inputs[i].root];
    const info = sides[i].context.data.info;
    return [el("h3", {}, info.name), el("p", { class: "note-small" }, t("parameters", { n: (info.n_parameters / 1e6).toFixed(1) }))];
  }

  function buildList() {
    const [one, other] = sides.map((side) => side.trace);
    const title = el("h3", {}, t("compare_differ"));
    if (!one || !other) return [title, el("p", { class: "note-small" }, t(isTexts && !text2().trim() ? "compare_second_missing" : "compare_coming"))];
    const by = store.state.differBy;
    const differences = compareTraces(one, other);
    if (differences.length === 0) return [title, el("p", { class: "note-small" }, t("compare_nothing"))];
    const amount = (/** @type {HeadDifference} */ one) => (by === "map" ? one.map : Math.abs(one[by][1] - one[by][0]));
    const rows = [...differences].sort((a, b) => amount(b) - amount(a)).slice(0, N_DIFFERENT);
    const roles = new Map((context.data.heads?.heads ?? []).map((head) => [head.head, context.pick(head.names)]));
    const selected = `${store.state.attention}/${store.state.head}`;
    return [
      el("div", { class: "row" }, title, dropdown(t("compare_by"), [["map", t("compare_by_map")], ["entropy", t("compare_by_entropy")], ["sink", t("compare_by_sink")]], by, (value) => store.set({ differBy: value === "entropy" || value === "sink" ? value : "map" }))),
      el("div", { class: "differences" }, ...rows.map((row) => {
        const { attention, number } = parseHead(row.head);
        return el("button", { type: "button", class: "difference", "aria-pressed": String(row.head === selected), "data-key": row.head, onclick: () => store.set({ attention, head: number }) },
          el("b", {}, shortName(row.head, t)), el("span", { class: "faint" }, roles.get(row.head) ?? ""), el("span", { class: "num" }, differenceText(row)));
      })),
      el("p", { class: "note-small" }, sentences(t, [t(`compare_note_${by}`), isTexts ? "" : t("compare_numbering")])),
    ];
  }

  /** @param {HeadDifference} row */
  function differenceText(row) {
    const by = store.state.differBy;
    if (by === "map") return fixed(row.map, 3);
    if (by === "sink") return `${percent(row.sink[0])} → ${percent(row.sink[1])}`;
    return `${fixed(row.entropy[0])} → ${fixed(row.entropy[1])} (${signed(row.entropy[1] - row.entropy[0])})`;
  }

  /** Two models open on a head that both of them have. */
  function chooseCommon() {
    const [one, other] = sides.map((side) => side.trace);
    if (isChosen || isTexts || !one || !other) return;
    isChosen = true;
    const common = compareTraces(one, other).sort((a, b) => b.map - a.map);
    const selected = `${store.state.attention}/${store.state.head}`;
    if (common.length === 0 || common.some(({ head }) => head === selected)) return;
    const { attention, number } = parseHead(common[0].head);
    store.set({ attention, head: number }, { isMinor: true });
  }

  function update() {
    for (const side of sides) side.follow();
    chooseCommon();
    const { state } = store;
    inputs[0].update(state.text, t("compare_first"));
    inputs[1].update(text2(), t("compare_second"));
    show(shared, [isTexts], () => (isTexts ? [] : [inputs[0].root]));
    columns.forEach(({ title, problem }, i) => {
      show(title, [state.lang, sides[i].context.data.info], () => buildTitle(i));
      problem.hidden = sides[i].problem === "";
      problem.textContent = sides[i].problem;
      const hasHead = sides[i].trace?.attentions.some((traced) => traced.name === state.attention && traced.n_heads > state.head) ?? true;
      columns[i].head.hidden = !hasHead;
      columns[i].none.hidden = hasHead;
      columns[i].none.textContent = t("compare_no_head", { model: sides[i].context.data.info.name, head: shortName(`${state.attention}/${state.head}`, t) });
    });
    show(list, [sides[0].trace, sides[1].trace, text2() === "", state.lang, state.differBy, state.attention, state.head, context.data.heads], buildList);
    for (const view of views) view.update();
  }
  return { update, destroy() { isGone = true; for (const view of views) view.destroy?.(); node.remove(); } };
}

/** A field for a text; Enter or leaving it shows the text. @param {(text: string) => void} change */
function textField(change) {
  const label = el("span", { class: "unseen" });
  const field = el("textarea", { rows: 1, dir: "auto", spellcheck: "false", onchange: () => change(field.value), onkeydown: (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    change(field.value);
  } });
  return {
    root: el("label", { class: "compare-field" }, label, field),
    /** @param {string} text @param {string} name */
    update(text, name) {
      label.textContent = name;
      if (document.activeElement !== field) field.value = text;
    },
  };
}

/** In a saved page: one of the texts that it holds. @param {Context} context */
function storedField(context) {
  return (/** @type {(text: string) => void} */ change) => {
    const root = el("div", { class: "compare-field" });
    return {
      root,
      /** @param {string} text @param {string} name */
      update(text, name) {
        const texts = context.source.stored().map((trace) => /** @type {const} */ ([trace.text, trace.text]));
        show(root, [text, name], () => [dropdown(name, text ? texts : [["", "–"], ...texts], text, change)]);
      },
    };
  };
}

// ---------------------------------------------------------------- how much two traces differ, head by head

const SIDE = 16; // maps of different sizes are compared on a grid of this many cells

/** @typedef {{ head: string, map: number, entropy: [number, number], sink: [number, number] }} HeadDifference */

/**
 * The heads that both traces have, with how much they differ. `map`: 0 the same map, 1 nothing in common.
 * @param {Trace} one @param {Trace} other
 * @returns {HeadDifference[]}
 */
export function compareTraces(one, other) {
  return one.attentions.flatMap((attention) => {
    const twin = other.attentions.find((candidate) => candidate.name === attention.name);
    if (!twin) return [];
    return attention.heads.slice(0, twin.heads.length).map((facts, number) => ({
      head: headName(attention.name, number),
      map: mapDifference(
        gridOf(attention.thumbnails[number], attention.thumbnail_shape), gridOf(twin.thumbnails[number], twin.thumbnail_shape)),
      entropy: /** @type {[number, number]} */ ([facts.entropy, twin.heads[number].entropy]),
      sink: /** @type {[number, number]} */ ([facts.sink, twin.heads[number].sink]),
    }));
  });
}

/**
 * A thumbnail on a square grid: the mean of what falls into each cell.
 * @param {string} base64 @param {[number, number]} shape
 */
function gridOf(base64, [height, width]) {
  const bytes = atob(base64);
  const grid = new Float32Array(SIDE * SIDE);
  if (height < 1 || width < 1) return grid;
  for (let row = 0; row < SIDE; row++) {
    const rows = range(row, height);
    for (let column = 0; column < SIDE; column++) {
      const columns = range(column, width);
      let sum = 0;
      for (let i = rows[0]; i < rows[1]; i++) for (let j = columns[0]; j < columns[1]; j++) sum += bytes.charCodeAt(i * width + j);
      grid[row * SIDE + column] = sum / ((rows[1] - rows[0]) * (columns[1] - columns[0]) * 255);
    }
  }
  return grid;
}

/** @param {number} cell @param {number} size @returns {[number, number]} */
function range(cell, size) {
  const start = Math.floor((cell * size) / SIDE);
  return [start, Math.max(start + 1, Math.ceil(((cell + 1) * size) / SIDE))];
}

/** The sum of the differences, as a share of the sum of both maps. @param {Float32Array} one @param {Float32Array} other */
function mapDifference(one, other) {
  const total = one.reduce((sum, value, i) => sum + value + other[i], 0);
  return total > 0 ? one.reduce((sum, value, i) => sum + Math.abs(value - other[i]), 0) / total : 0;
}

// ---------------------------------------------------------------- one side: a view on the page's state with a text, a bundle and pins of its own

/** Changes of these stay within the side. */
const OWN = /** @type {const} */ (["pins", "keyPins", "at"]);

/**
 * @param {Context} context
 * @param {() => { bundle: string, text: string }} chosen what this side shows
 * @param {() => void} changed
 */
export function sideContext(context, chosen, changed) {
  /** @type {Partial<State>} */
  let own = { pins: [], keyPins: [], at: null };
  /** @type {Trace | null} */
  let trace = null;
  let key = "";
  let problem = "";
  /** @type {Store} */
  const store = {
    get state() { return { ...context.store.state, ...chosen(), answer: null, step: null, off: [], ...own }; },
    set(change, options) {
      const mine = Object.fromEntries(OWN.flatMap((name) => (name in change ? [[name, change[name]]] : [])));
      const others = Object.fromEntries(Object.entries(change).filter(([name]) => !OWN.some((one) => one === name)));
      own = { ...own, ...mine };
      if (Object.keys(others).length) context.store.set(others, options);
      else changed();
    },
    subscribe: (listener) => context.store.subscribe(listener),
    address: (change) => context.store.address({ page: "text", ...chosen(), ...change }),
  };
  /** @type {Data} */
  const data = {
    model: context.data.model,
    get info() { return context.data.model.bundles.find((one) => one.id === chosen().bundle) ?? context.data.info; },
    get trace() { return trace; },
    busy: false, error: null, ablation: null, importance: null,
    get heads() { return chosen().bundle === context.store.state.bundle ? context.data.heads : null; },
  };
  /** @type {Context} */
  const side = { ...context, store, data, headTitle: (attention, head) => headTitle(attention, head, data.info) };
  return {
    context: side,
    get trace() { return trace; },
    get problem() { return problem; },
    /** Load what this side shows, if it is not there. */
    follow() {
      const { bundle, text } = chosen();
      const now = JSON.stringify([bundle, text]);
      if (now === key) return;
      key = now;
      problem = "";
      own = { pins: [], keyPins: [], at: null };
      if (!text.trim()) {
        trace = null;
        return;
      }
      context.load.trace({ bundle, text, answer: null, step: null }).then((found) => {
        if (key !== now) return;
        trace = found;
        changed();
      }).catch((thrown) => {
        if (key !== now) return;
        trace = null;
        problem = asProblem(thrown).detail;
        changed();
      });
    },
  };
}
