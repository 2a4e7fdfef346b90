/** @import { HeadPart, Mount, Problem, Scene } from "./types.js" */
// One head: matrix, arcs and text, linked by one selection.
import { mountArcs } from "./arcs_view.js";
import { asProblem, decimal, el, percent, perFrame, setText } from "./dom.js";
import { headControls } from "./head_controls.js";
import { makeScene } from "./head_map.js";
import { colorScale } from "./color_scale.js";
import { mountMatrix } from "./matrix_view.js";
import { pictureButtons } from "./picture.js";
import { createReadout } from "./readout.js";
import { createSelection } from "./selection.js";
import { mountText } from "./text_view.js";
import "./view_texts.js";

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
    const survey = data.heads?.heads.find((one) => one.head === `${attention}/${head}`);
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
