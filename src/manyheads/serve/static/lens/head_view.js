// One head: matrix, arcs and text, linked by one selection.
/** @import { Problem } from "../shared/types.js" */
/** @import { Context, HeadPart, Mount, Part, Scene, Selection, Side, Unit, UnitName } from "./lens_types.js" */
import { asProblem, choice, el, perFrame, setText } from "../shared/dom.js";
import { decimal, percent } from "../shared/figures.js";
import { mountArcs, strengthOf } from "./arcs.js";
import { makeScene, meanReceived, shownText, weightOf } from "./head_map.js";
import { colorScale } from "./matrix_paint.js";
import { mountMatrix } from "./matrix_view.js";
import { pictureButtons } from "./pictures.js";
import { createPager, createReadout, createSelection } from "./selection.js";

/** @type {Mount} */
export const mountHeadView = (root, context) => {
  const { store, data, t } = context;
  /** @type {Scene | null} */
  let scene = null;
  /** @type {Problem | null} */
  let problem = null;
  let wanted = "";
  const selection = createSelection(store, () => scene);
  const title = el("h2");
  const facts = el("p", { class: "faint facts" });
  const controls = headControls(context);
  const readout = createReadout(context, selection);
  const explained = el("p", { class: "hint kind-help" });
  const note = el("p", { class: "hint", role: "status" });
  const error = el("p", { class: "caution", role: "alert", hidden: true });
  const body = el("div", { class: "head-body" });
  root.classList.add("head-view");
  root.append(el("div", { class: "head-title" }, title, facts), controls.root, explained, readout.root, note, error, body);

  const makers = /** @type {const} */ ([["arcs", mountArcs], ["matrix", mountMatrix], ["text", mountText]]);
  const scale = colorScale(context);
  /** @type {{ name: string, heading: HTMLElement, part: HeadPart, buttons: ReturnType<typeof pictureButtons> }[]} */
  const parts = makers.map(([name, mount]) => {
    const heading = el("h3");
    const buttons = pictureButtons(context, name, () => scene, selection);
    const place = el("div", { class: "part-body" });
    const section = el("section", { class: `part part-${name}` }, el("div", { class: "part-head" }, heading, buttons.root), place);
    body.append(section);
    const part = mount(place, context, selection);
    if (name === "matrix") section.append(scale.root);
    return { name, heading, part, buttons };
  });
  const redraw = perFrame(() => {
    for (const { part } of parts) part.redraw();
    readout.update(scene);
  });
  const unsubscribe = selection.subscribe(redraw);

  /** What the scene is made of: if this is unchanged, so is the scene. */
  const keyOf = () => {
    const { attention, head, unit, kind, sinks } = store.state;
    return [data.trace?.id, attention, head, unit, kind, sinks].join("\n");
  };

  async function load() {
    const { trace } = data;
    const { attention, head, kind } = store.state;
    const traced = trace?.attentions.find((one) => one.name === attention);
    if (!trace || !traced || head >= traced.n_heads) return;
    const key = keyOf();
    if (key === wanted) return;
    wanted = key;
    body.classList.add("waiting");
    try {
      const map = await context.load.map(trace, attention, head, kind);
      if (wanted !== key) return;
      scene = makeScene(trace, traced, head, map, store.state);
      problem = null;
    } catch (thrown) {
      if (wanted !== key) return;
      problem = asProblem(thrown);
    }
    body.classList.remove("waiting");
    selection.hover(null, null);
    show(true);
  }

  let shown = "";
  /** @param {boolean} [isNew] */
  function show(isNew = false) {
    const { state } = store;
    setText(title, state.attention ? context.headTitle(state.attention, state.head) : "");
    setText(facts, factsOf());
    error.hidden = !problem;
    setText(error, problem?.detail ?? "");
    body.hidden = !scene;
    controls.update(scene);
    setText(explained, state.kind === "norms" ? t("kind_norms_help") : "");
    for (const { name, heading, buttons } of parts) {
      setText(heading, t(`part_${name}`));
      buttons.update();
    }
    if (!scene) setText(note, data.trace || data.busy ? "" : t("no_text"));
    if (!scene) return;
    setText(note, noteOf(scene));
    const look = [state.lang, state.theme, state.mass, matchMedia("(prefers-color-scheme: dark)").matches].join();
    if (isNew || look !== shown) for (const { part } of parts) part.setScene(scene);
    shown = look;
    scale.update(scene);
    redraw();
  }

  function factsOf() {
    const { attention, head } = store.state;
    const traced = data.trace?.attentions.find((one) => one.name === attention);
    const numbers = traced?.heads[head];
    const survey = data.heads?.heads.find((surveyed) => surveyed.head === `${attention}/${head}`);
    const found = [`${attention}/${head}`];
    if (survey) found.push(context.role(survey.role).name);
    if (traced && numbers) {
      found.push(t("fact_entropy", { value: decimal(numbers.entropy, 2) }));
      if (traced.kind !== "cross") found.push(t("fact_distance", { value: decimal(numbers.distance, 1) }));
      found.push(t("fact_sink", { value: percent(numbers.sink) }));
    }
    return found.join(" · ");
  }

  /** @param {Scene} current */
  function noteOf(current) {
    const notes = [];
    if (current.isEmpty) notes.push(t("sinks_only"));
    if (current.hidden) notes.push(t(current.kind === "weights" ? "sinks_hidden" : "sinks_hidden_norms", { n: current.hidden.n, share: percent(current.hidden.share) }));
    const bytes = [...current.queries, ...current.keys].filter((unit) => unit.kind === "byte").map((unit) => unit.text);
    const first = bytes.findIndex((text) => text.endsWith("₁"));
    if (bytes.length) notes.push(t("bytes", { example: [...new Set(bytes.filter((text) => text.slice(0, -1) === bytes[Math.max(0, first)].slice(0, -1)))].join(" ") }));
    return notes.join(" ");
  }

  return {
    update() {
      show();
      void load();
    },
    destroy() {
      unsubscribe();
      for (const { part } of parts) part.destroy();
    },
  };
};

// ---------------------------------------------------------------- the switches above

const UNITS = /** @type {const} */ (["tokens", "characters", "words"]);

/** The units that give the same picture as this one, for the text that is shown. @param {Scene | null} scene @param {UnitName} unit @returns {UnitName[]} */
function sameUnits(scene, unit) {
  if (!scene) return [];
  const look = (/** @type {UnitName} */ name) => JSON.stringify([scene.querySide, scene.keySide].map((side) => side[name].map(({ kind, parts }) => [kind === "byte" ? "text" : kind, parts])));
  const own = look(unit);
  return UNITS.filter((name) => name === unit || look(name) === own);
}

/** @param {Context} context */
function headControls({ store, t }) {
  const kind = choice({ values: /** @type {const} */ (["weights", "norms"]), choose: (value) => store.set({ kind: value }) });
  const unit = choice({ values: UNITS, choose: (value) => store.set({ unit: value }) });
  const sinks = el("input", { type: "checkbox", id: "lens-sinks", onchange: () => store.set({ sinks: sinks.checked }) });
  const sinksName = el("label", { for: "lens-sinks" });
  const mass = el("input", { type: "range", id: "lens-mass", min: 10, max: 100, step: 1, oninput: () => store.set({ mass: Number(mass.value) / 100 }) });
  const massName = el("label", { for: "lens-mass" });
  const massValue = el("output", { for: "lens-mass", class: "number" });
  const unpin = el("button", { type: "button", class: "plain", onclick: () => store.set({ pins: [], keyPins: [], at: null }) });
  const root = el("div", { class: "controls" }, kind.root, unit.root,
    el("span", { class: "control" }, sinks, sinksName), el("span", { class: "control" }, massName, mass, massValue), unpin);
  /** @type {Scene | null} */
  let compared = null;
  return {
    root,
    /** @param {Scene | null} scene */
    update(scene) {
      const { state } = store;
      kind.show(state.kind, t("kind"), (value) => t(`kind_${value}`));
      kind.root.title = t(`kind_${state.kind}_help`);
      unit.show(state.unit, t("unit"), (value) => t(`unit_${value}`));
      if (scene !== compared || unit.root.lang !== state.lang) {
        [compared, unit.root.lang] = [scene, state.lang];
        const same = sameUnits(scene, state.unit);
        unit.root.title = same.length > 1 ? t(same.length === UNITS.length ? "unit_all_same" : "unit_same", { units: same.map((name) => t(`unit_${name}`)).join(t("unit_and")) }) : "";
      }
      sinks.checked = state.sinks;
      setText(sinksName, t("sinks"));
      const percent = Math.round(100 * state.mass);
      if (Number(mass.value) !== percent) mass.value = String(percent);
      setText(massName, t("mass"));
      massName.title = t("mass_help");
      setText(massValue, `${percent} %`);
      unpin.hidden = !state.pins.length && !state.keyPins.length;
      setText(unpin, t("unpin"));
    },
  };
}

// ---------------------------------------------------------------- the text, colored: blue where the selected word looks, orange where it is looked at from

const MAX_UNITS = 240;

/** @param {HTMLElement} root @param {Context} context @param {Selection} selection @returns {HeadPart} */
function mountText(root, context, selection) {
  const { t } = context;
  /** @type {Scene | null} */
  let scene = null;
  /** @type {{ queries: Map<number, HTMLElement>, keys: Map<number, HTMLElement> }} */
  let spans = { queries: new Map(), keys: new Map() };
  /** @type {Float32Array} */
  let received = new Float32Array();
  const pager = createPager(context, () => build());
  const body = el("div", { class: "texts", tabindex: 0, role: "application" });
  const hint = el("p", { class: "hint" });
  root.append(pager.root, body, hint);

  function build() {
    if (!scene) return;
    const parts = pager.parts(scene, MAX_UNITS);
    spans = { queries: new Map(), keys: new Map() };
    if (scene.isSelf) {
      const paragraph = write(scene.keySide, scene.keys, parts.keys, "both", spans.keys);
      spans.queries = spans.keys;
      body.replaceChildren(paragraph);
    } else {
      body.replaceChildren(
        el("p", { class: "side-name", text: t("side_source") }), write(scene.keySide, scene.keys, parts.keys, "key", spans.keys),
        el("p", { class: "side-name", text: t("side_written") }), write(scene.querySide, scene.queries, parts.queries, "query", spans.queries));
    }
    redraw();
  }

  function redraw() {
    if (!scene) return;
    if (pager.follow(selection)) return build();
    const shown = scene;
    const [outgoing, incoming] = [selection.outgoing(), selection.incoming()];
    const isQuiet = !outgoing.length && !incoming.length;
    const pinned = { query: new Set(selection.pinnedQueries()), key: new Set(selection.pinnedKeys()) };
    const [from, to] = [new Set(outgoing), new Set(incoming)];
    const share = (/** @type {number} */ value) => strengthOf(shown, value) ** 0.7;
    const largest = isQuiet ? received.reduce((a, b) => Math.max(a, b), 0) || 1 : 1;
    spans.keys.forEach((span, k) => {
      const out = outgoing.reduce((most, q) => Math.max(most, weightOf(shown, q, k)), 0);
      setShare(span, "--out", share(out));
      if (!shown.isSelf) setShare(span, "--in", isQuiet ? received[k] / largest : 0);
      span.classList.toggle("to", to.has(k));
      span.classList.toggle("pinned", pinned.key.has(k) || (shown.isSelf && pinned.query.has(k)));
    });
    spans.queries.forEach((span, q) => {
      const inward = incoming.reduce((most, k) => Math.max(most, weightOf(shown, q, k)), 0);
      setShare(span, "--in", isQuiet && shown.isSelf ? received[q] / largest : share(inward));
      span.classList.toggle("from", from.has(q));
      if (!shown.isSelf) span.classList.toggle("pinned", pinned.query.has(q));
    });
    setText(hint, t(isQuiet ? "text_quiet" : "text_selected"));
  }

  /** @param {Event} event @returns {[number | null, number | null]} */
  function ends(event) {
    const span = event.target instanceof HTMLElement ? event.target.closest("span[data-index]") : null;
    if (!(span instanceof HTMLElement)) return [null, null];
    const index = Number(span.dataset.index);
    return [span.dataset.row === "key" ? null : index, span.dataset.row === "query" ? null : index];
  }
  body.addEventListener("pointerover", (event) => selection.hover(...ends(event)));
  body.addEventListener("pointerleave", () => selection.hover(null, null));
  body.addEventListener("click", (event) => selection.toggle(...ends(event)));
  body.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !scene) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    const isKeyRow = !scene.isSelf && selection.query === null && selection.key !== null;
    if (step) {
      const now = isKeyRow ? selection.key : selection.query;
      const last = (isKeyRow ? scene.keys : scene.queries).length - 1;
      const next = Math.max(0, Math.min(last, now === null ? 0 : now + step));
      selection.hover(isKeyRow ? null : next, isKeyRow || scene.isSelf ? next : null);
      if (pager.show("keys", next)) build();
    } else if (event.key === "ArrowUp" && !scene.isSelf) selection.hover(null, Math.min(selection.query ?? 0, scene.keys.length - 1));
    else if (event.key === "ArrowDown" && !scene.isSelf) selection.hover(Math.min(selection.key ?? 0, scene.queries.length - 1), null);
    else if (event.key === "Enter" || event.key === " ") selection.toggle(selection.query, selection.key);
    else if (!pager.key(event.key)) return;
    event.preventDefault();
  });
  return {
    setScene(next) {
      scene = next;
      received = meanReceived(next);
      body.setAttribute("aria-label", t("text_name", { head: context.headTitle(next.attention.name, next.head) }));
      build();
    },
    redraw,
    destroy() {},
  };
}

/**
 * The units of a part of a side, with the spaces that the text has between them.
 * @param {Side} side @param {Unit[]} units @param {Part} part @param {"query" | "key" | "both"} row @param {Map<number, HTMLElement>} spans
 */
function write(side, units, part, row, spans) {
  const paragraph = el("p", { class: "colored", dir: "auto" });
  const characters = Array.from(side.text); // offsets count code points
  let end = part.start > 0 ? units[part.start - 1].end : 0;
  for (let i = part.start; i < part.end; i++) {
    const unit = units[i];
    // The space before a word belongs to its token, or lies between the units.
    const before = characters.slice(end, unit.start).join("") + (/^\s*/.exec(characters.slice(unit.start, unit.end).join(""))?.[0] ?? "");
    if (/\s/.test(before) || (unit.kind === "special" && i > part.start)) paragraph.append(" ");
    const span = el("span", { class: `unit ${unit.kind}`, "data-index": i, "data-row": row, text: shownText(unit) });
    paragraph.append(span);
    if (unit.kind === "special") paragraph.append(" ");
    spans.set(i, span);
    end = Math.max(end, unit.end);
  }
  return paragraph;
}

/** @param {HTMLElement} span @param {string} name @param {number} share */
function setShare(span, name, share) {
  const text = share < 0.02 ? "0" : share.toFixed(2); // coarse: a pointer that moves repaints few words
  if (span.style.getPropertyValue(name) !== text) span.style.setProperty(name, text);
}
