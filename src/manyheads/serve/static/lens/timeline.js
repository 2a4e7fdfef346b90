// The heads over training: the role of each head at every snapshot, and the head's map at one of them.
/** @import { Context, Timeline, View } from "./lens_types.js" */
import { progressBar, show } from "../shared/controls.js";
import { asProblem, cssColor, el, fitCanvas, perFrame } from "../shared/dom.js";
import { headName, headsByKind, parseHead, shortName } from "./heads.js";

const POLL = 2000; // milliseconds
const CELL = { height: 16, label: 96, top: 6, bottom: 22, widest: 72 };
const FEW = 6; // snapshots that show little of training

/** @param {HTMLElement} root @param {Context} context @returns {View} */
export function mountTimeline(root, context) {
  const { store, t } = context;
  const note = el("div", { class: "timeline-note" });
  const slider = el("input", { type: "range", min: 0, step: 1, class: "timeline-slider", oninput: () => choose(Number(slider.value)) });
  const at = el("output", { class: "timeline-at" });
  const control = el("div", { class: "timeline-control" }, slider, at);
  const canvas = el("canvas", { class: "timeline-canvas", role: "img" });
  const output = el("output", { class: "scatter-output" });
  const legend = el("div", { class: "role-legend" });
  const strips = el("figure", { class: "timeline-strips" }, canvas, el("figcaption", {}, output), legend);
  const answer = el("div", { class: "timeline-answer" });
  const map = el("div", { class: "head-map" });
  const node = el("div", { class: "timeline" }, note, control, el("div", { class: "timeline-columns" }, strips, el("div", {}, answer, map)));
  root.append(node);
  /** @type {Timeline | null} */
  let timeline = null;
  let problem = "";
  let asked = "";
  let isGone = false;
  /** @type {View[]} */
  const views = [];
  const draw = perFrame(paint);
  const watcher = new ResizeObserver(draw);
  watcher.observe(strips);
  Promise.all([import("./head_view.js"), import("./answer_view.js")]).then(([{ mountHeadView }, { mountAnswerView }]) => {
    if (isGone) return;
    views.push(mountAnswerView(answer, context), mountHeadView(map, context));
    view.update();
  }).catch((thrown) => map.replaceChildren(el("p", { class: "caution" }, asProblem(thrown).detail)));

  canvas.addEventListener("pointermove", (event) => {
    const cell = cellAt(event.offsetX, event.offsetY);
    canvas.classList.toggle("is-pointing", cell !== null);
    output.textContent = cell ? `${shortName(cell.head, t)} · ${t("timeline_step", { step: cell.step.toLocaleString("en-US") })} · ${roleOf(cell.role).name}` : "";
  });
  canvas.addEventListener("click", (event) => {
    const cell = cellAt(event.offsetX, event.offsetY);
    if (!cell) return;
    const { attention, number } = parseHead(cell.head);
    store.set({ attention, head: number, step: cell.step });
  });

  /** @param {number} index of a snapshot; the last is the finished model */
  function choose(index) {
    const { steps } = context.data.info;
    store.set({ step: steps[index] ?? null, at: null }, { isMinor: true });
  }

  /** @param {string} name */
  function roleOf(name) {
    const known = timeline?.roles[name];
    return known ? { name: context.pick(known.names), color: known.color } : context.role(name);
  }

  async function ask() {
    const { bundle } = store.state;
    if (asked === bundle || context.data.info.steps.length < 2) return;
    asked = bundle;
    try {
      while (!isGone && asked === bundle) {
        const found = await context.source.timeline(bundle);
        if (isGone || asked !== bundle) return;
        timeline = found;
        view.update();
        if (found.state !== "running") return;
        await new Promise((resolve) => setTimeout(resolve, POLL));
      }
    } catch (thrown) {
      if (asked !== bundle) return;
      problem = asProblem(thrown).detail;
      view.update();
    }
  }

  /** @param {number} x @param {number} y */
  function cellAt(x, y) {
    const entries = timeline?.entries ?? [];
    const heads = headsByKind(context.data.info);
    const column = Math.floor((x - CELL.label) / cellWidth());
    const row = Math.floor((y - CELL.top) / CELL.height);
    const entry = entries[column];
    return entry && heads[row] && x >= CELL.label ? { head: heads[row], step: entry.step, role: entry.roles[heads[row]] ?? "unknown" } : null;
  }

  function cellWidth() {
    const n = Math.max(1, timeline?.entries.length ?? 1);
    return Math.min(CELL.widest, (strips.clientWidth - CELL.label - 8) / n);
  }

  function paint() {
    const entries = timeline?.entries ?? [];
    if (!strips.isConnected || strips.hidden || entries.length === 0) return;
    const heads = headsByKind(context.data.info);
    const width = strips.clientWidth;
    const pen = fitCanvas(canvas, width, CELL.top + heads.length * CELL.height + CELL.bottom);
    const cell = cellWidth();
    const selected = headName(store.state.attention, store.state.head);
    pen.font = `12px ${getComputedStyle(root).fontFamily}`;
    pen.textBaseline = "middle";
    heads.forEach((head, row) => {
      const y = CELL.top + row * CELL.height;
      pen.textAlign = "left";
      pen.fillStyle = head === selected ? cssColor("--ink") : cssColor("--soft");
      pen.fillText(shortName(head, t), 0, y + CELL.height / 2);
      entries.forEach((entry, column) => {
        const role = entry.roles[head] ?? "unknown";
        pen.fillStyle = role === "unknown" ? cssColor("--line") : roleOf(role).color;
        pen.fillRect(CELL.label + column * cell, y + 1, Math.max(1, cell - 1), CELL.height - 2);
      });
      if (head === selected) {
        pen.strokeStyle = cssColor("--ink");
        pen.strokeRect(CELL.label - 1.5, y - 0.5, entries.length * cell + 1, CELL.height);
      }
    });
    paintAxis(pen, entries, cell, CELL.top + heads.length * CELL.height);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Timeline["entries"]} entries @param {number} cell @param {number} y */
  function paintAxis(pen, entries, cell, y) {
    const here = entries.findIndex((entry) => entry.step === store.state.step);
    const column = here < 0 ? entries.length - 1 : here;
    pen.fillStyle = cssColor("--ink");
    pen.fillRect(CELL.label + column * cell, y + 1, Math.max(1, cell - 1), 2);
    pen.fillStyle = cssColor("--soft");
    const steps = entries.map((entry) => entry.step.toLocaleString("en-US"));
    const hasRoom = steps.every((step) => pen.measureText(step).width + 6 <= cell);
    pen.textAlign = hasRoom ? "center" : "left";
    if (hasRoom) return steps.forEach((step, i) => pen.fillText(step, CELL.label + (i + 0.5) * cell, y + 13));
    pen.fillText(steps[0], CELL.label, y + 13);
    pen.textAlign = "right";
    if (entries.length > 1) pen.fillText(steps[steps.length - 1], CELL.label + entries.length * cell, y + 13);
  }

  function buildNote() {
    const { steps, is_live: isLive, is_private: isPrivate } = context.data.info;
    if (!isLive) return [el("p", {}, t("not_in_file"))];
    if (isPrivate) return [el("p", {}, t("timeline_private"))];
    if (steps.length < 2) {
      return [el("p", {}, t("timeline_none")), el("pre", {}, "[train]\nkeep_all_snapshots = true"), el("p", { class: "note-small" }, t("timeline_none_why"))];
    }
    const failure = timeline?.state === "failed" && timeline.message ? context.pick(timeline.message) : problem;
    if (failure) return [el("p", { class: "caution" }, failure)];
    const isRunning = timeline === null || timeline.state === "running";
    return [
      el("p", { class: "note-small" }, isRunning ? (timeline?.message ? context.pick(timeline.message) : t("timeline_running")) : t("timeline_note")),
      isRunning ? progressBar(t("timeline_running"), timeline?.done ?? null) : null,
      steps.length < FEW ? el("p", { class: "note-small" }, t("timeline_few", { count: steps.length, setting: "train.keep_all_snapshots = true" })) : null,
    ];
  }

  function buildLegend() {
    const names = [...new Set((timeline?.entries ?? []).flatMap((entry) => Object.values(entry.roles)))].sort((a, b) => Number(a === "unknown") - Number(b === "unknown") || a.localeCompare(b));
    return names.map((name) => {
      const swatch = el("span", { class: "swatch" });
      if (name !== "unknown") swatch.style.setProperty("background-color", roleOf(name).color);
      return el("span", { class: "role-entry" }, swatch, roleOf(name).name);
    });
  }

  const view = {
    update() {
      const { state } = store;
      const { steps } = context.data.info;
      void ask();
      const hasSteps = steps.length > 1;
      show(note, [steps, problem, timeline, state.lang], buildNote);
      control.hidden = !hasSteps;
      strips.hidden = (timeline?.entries.length ?? 0) === 0;
      for (const part of [answer, map]) part.hidden = !hasSteps;
      slider.max = String(steps.length);
      const index = state.step === null ? steps.length : steps.indexOf(state.step);
      if (document.activeElement !== slider) slider.value = String(index);
      slider.setAttribute("aria-label", t("timeline_slider"));
      at.textContent = state.step === null ? t("timeline_final") : t("timeline_step", { step: state.step.toLocaleString("en-US") });
      slider.setAttribute("aria-valuetext", at.textContent);
      canvas.setAttribute("aria-label", t("timeline_label"));
      show(legend, [timeline, state.lang, context.data.heads], buildLegend);
      draw();
      if (hasSteps) for (const one of views) one.update();
    },
    destroy() { isGone = true; watcher.disconnect(); for (const one of views) one.destroy?.(); node.remove(); },
  };
  return view;
}
