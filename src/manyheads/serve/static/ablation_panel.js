// Heads that are switched off: one by one, whole layers, the most important ones, random ones; undo.
/** @import { Context, View } from "./types.js" */
import { contrastPanel } from "./contrast_panel.js";
import { button, dropdown, show } from "./controls.js";
import { asProblem, el, isTyping } from "./dom.js";
import { allHeads, headName, randomHeads, shortName, toggled } from "./head_names.js";
import "./head_texts.js";

const MANY = 10; // heads switched off at once
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
    if (off.length === 0) return [el("p", { class: "note-small" }, t("ablation_none"), el("span", { class: "key-hint" }, t("list_space"), t("ablation_key")))];
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
      !info.is_live ? null : button(t("ablation_random", { count: many() }), () => setOff(randomHeads(allHeads(info), many())), { class: "quiet", title: t("ablation_random_why") }),
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
