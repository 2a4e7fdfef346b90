// Heads that are switched off, and the question which heads make the model say X instead of Y.
/** @import { Context, Contrast, View } from "./types.js" */
import { effectList } from "./bar_list.js";
import { button, dropdown, show } from "./controls.js";
import { asProblem, el, isTyping } from "./dom.js";
import { fixed, signed } from "./figures.js";
import { allHeads, headName, randomHeads, shortName, toggled } from "./head_names.js";
import { leastCertain } from "./step_panel.js";
import "./head_texts.js";

const MANY = 10; // heads switched off at once
const N_EFFECTS = 12;
const MAX_UNDO = 100;

/** @param {HTMLElement} root @param {Context} context @returns {View} */
export function mountAblationPanel(root, context) {
  const { store, t } = context;
  const chips = el("div", { class: "off-list" });
  const acts = el("div", { class: "ablation-acts" });
  const contrast = contrastPanel(context);
  const node = el("div", { class: "ablation" }, chips, acts, contrast.root);
  root.append(node);
  /** @type {string[][]} */
  const past = [];
  /** @type {readonly string[]} */
  let last = store.state.off;
  let isUndoing = false;
  let failure = "";

  /** @param {string[]} off */
  const setOff = (off) => store.set({ off });

  function undo() {
    const off = past.pop();
    if (off === undefined) return;
    isUndoing = true;
    setOff(off);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || isTyping(event.target) || past.length === 0) return;
    event.preventDefault();
    undo();
  }
  addEventListener("keydown", onKey);

  /** Changes made by any view are remembered. */
  function remember() {
    const { off } = store.state;
    if (off === last || (off.length === last.length && off.every((head, i) => head === last[i]))) return;
    if (!isUndoing) past.push([...last]);
    if (past.length > MAX_UNDO) past.shift();
    isUndoing = false;
    last = off;
  }

  /** At most ten, and never more than half of the heads. */
  function many() {
    return Math.max(1, Math.min(MANY, Math.floor(allHeads(context.data.info).length / 2)));
  }

  async function importantOff() {
    failure = "";
    try {
      await context.load.importance();
      const heads = [...(context.data.importance?.heads ?? [])].sort((a, b) => b.change - a.change).slice(0, many());
      if (heads.length) setOff(heads.map(({ head }) => head));
    } catch (thrown) {
      failure = asProblem(thrown).detail;
      view.update();
    }
  }

  function buildChips() {
    const { off } = store.state;
    if (off.length === 0) return [el("p", { class: "note-small" }, t("ablation_none"))];
    return [el("span", { class: "off-label" }, t("ablation_off")), ...off.map((head) => el("button", {
      type: "button", class: "off-chip", "data-key": head, "aria-label": t("ablation_on", { head: shortName(head, t) }), title: head,
      onclick: () => setOff(off.filter((one) => one !== head)),
    }, shortName(head, t), el("span", { class: "off-chip-x", "aria-hidden": "true" }, "×")))];
  }

  function buildActs() {
    const { off } = store.state;
    const { info } = context.data;
    /** @type {[string, string][]} */
    const layers = [["", t("ablation_layer_choose")], ...info.attentions.map(({ name }) => /** @type {[string, string]} */ ([name, context.headTitle(name, null)]))];
    return [
      button(t("ablation_undo"), undo, { class: "quiet", disabled: past.length === 0, title: "Ctrl+Z" }),
      button(t("ablation_all_on"), () => setOff([]), { class: "quiet", disabled: off.length === 0 }),
      button(t("ablation_important", { count: many() }), () => void importantOff(), { class: "quiet" }),
      button(t("ablation_random", { count: many() }), () => setOff(randomHeads(allHeads(info), many())), { class: "quiet", title: t("ablation_random_why") }),
      dropdown(t("ablation_layer"), layers, "", (name) => {
        const attention = info.attentions.find((one) => one.name === name);
        if (attention) setOff(toggled([...off], Array.from({ length: attention.n_heads }, (_, number) => headName(name, number))));
      }),
      failure ? el("p", { class: "caution", role: "alert" }, failure) : null,
    ];
  }

  const view = {
    update() {
      remember();
      const { state } = store;
      node.hidden = context.data.trace === null;
      show(chips, [state.off, state.lang], buildChips);
      show(acts, [state.off, state.lang, past.length, context.data.info, failure], buildActs);
      contrast.update();
    },
    destroy() { removeEventListener("keydown", onKey); node.remove(); },
  };
  return view;
}

/** "Which heads make it say X instead of Y?" @param {Context} context */
function contrastPanel(context) {
  const { store, t } = context;
  const form = el("div", { class: "contrast-form" });
  const result = el("div", { class: "contrast-result", "aria-live": "polite" });
  const root = el("div", { class: "contrast" }, form, result);
  let traceId = "";
  let chosen = 0; // a token, or 0 for labels
  let instead = "";
  /** @type {Contrast | null} */
  let answer = null;
  let status = "";

  /** The candidates for "instead", as value and text. @returns {[string, string][]} */
  function candidates() {
    const { output } = /** @type {import("./types.js").Trace} */ (context.data.trace);
    if (output.tokens.length) {
      const token = output.tokens[chosen];
      return token.alternatives.filter((one) => one.text !== token.text).map((one) => [String(one.id), quoted(one.text)]);
    }
    return best(output.labels).slice(1).map(({ name }) => [name, name]);
  }

  /** @param {string} text */
  const quoted = (text) => text.trim() || "␣";

  async function ask() {
    const { trace } = context.data;
    if (!trace) return;
    const { output } = trace;
    status = t("contrast_coming");
    answer = null;
    update();
    try {
      const isWritten = output.tokens.length > 0;
      const found = await context.source.contrast(trace.id, isWritten ? output.first + chosen : -1, isWritten ? Number(instead) : instead);
      if (traceId !== trace.id) return;
      answer = found;
      status = "";
    } catch (thrown) {
      status = asProblem(thrown).detail;
    }
    update();
  }

  function buildForm() {
    const { trace } = context.data;
    if (!trace) return [];
    const { output } = trace;
    const others = candidates();
    if (!others.some(([value]) => value === instead)) instead = others[0]?.[0] ?? "";
    const reset = () => { answer = null; status = ""; update(); };
    const first = output.tokens.length
      ? dropdown(t("contrast_says"), output.tokens.map((token, k) => [String(k), `${k + 1} · ${quoted(token.text)}`]), String(chosen), (value) => { chosen = Number(value); reset(); })
      : el("span", { class: "field" }, el("span", {}, t("contrast_says")), el("b", {}, best(output.labels)[0]?.name ?? ""));
    return [el("h3", {}, t("contrast_title")), first, dropdown(t("contrast_instead"), others, instead, (value) => { instead = value; reset(); }),
      button(t("contrast_ask"), () => void ask(), { class: "plain", disabled: others.length === 0 })];
  }

  function buildResult() {
    if (!answer) return [status ? el("p", { class: "note-small" }, status) : null];
    const { off } = store.state;
    const heads = [...answer.heads].sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect)).slice(0, N_EFFECTS);
    const roles = new Map((context.data.heads?.heads ?? []).map((head) => [head.head, head]));
    return [
      el("p", { class: "note-small" }, t("contrast_result", { chosen: quoted(answer.chosen), instead: quoted(answer.instead), difference: fixed(answer.difference) })),
      effectList(t("contrast_title"), heads.map(({ head, effect }) => {
        const role = roles.get(head);
        return { name: shortName(head, t), value: effect, text: signed(effect), note: role && role.role !== "unknown" ? context.pick(role.names) : "",
          isOff: off.includes(head), act: () => store.set({ off: toggled([...off], [head]) }) };
      })),
    ];
  }

  function update() {
    const { trace } = context.data;
    const output = trace?.output;
    root.hidden = !output || (output.tokens.length === 0 && output.labels.length < 2);
    if (!trace || !output || root.hidden) return;
    if (traceId !== trace.id) {
      traceId = trace.id;
      chosen = output.tokens.length ? leastCertain(output) : 0;
      answer = null;
      status = "";
    }
    show(form, [trace, chosen, instead, store.state.lang], buildForm);
    show(result, [answer, status, store.state.off, store.state.lang, context.data.heads], buildResult);
  }
  return { root, update };
}

/** @param {{ name: string, probability: number }[]} labels */
function best(labels) {
  return [...labels].sort((a, b) => b.probability - a.probability);
}
