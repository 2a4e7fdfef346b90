// The model's answer with its confidence, and beside it the answer without the heads that are switched off.
/** @import { Ablation, Context, Output, Trace, View } from "./types.js" */
import { probabilityTable } from "./bar_list.js";
import { button, show } from "./controls.js";
import { el, percent } from "./dom.js";
import { signed } from "./figures.js";
import { changedText, entityText, lostEntities, maskedText } from "./marked_text.js";
import { stepPanel } from "./step_panel.js";
import { tokenLine } from "./token_line.js";
import "./head_texts.js";

const N_LABELS = 6; // shown until the reader asks for all

/** @param {HTMLElement} root @param {Context} context @returns {View} */
export function mountAnswerView(root, context) {
  const { store, t } = context;
  const top = el("div", { class: "row answer-top" });
  const main = el("div", { class: "answer-main" });
  const without = el("div", { class: "answer-without", "aria-live": "polite" });
  const leave = () => store.set({ at: null });
  const line = tokenLine({ point: pointAt, choose: chooseToken, move, leave });
  const steps = stepPanel(context, { move, leave });
  const body = el("div", { class: "answer-body" }, el("div", { class: "answer-texts" }, line.root, main, without), steps.root);
  const node = el("div", { class: "answer" }, top, body);
  root.append(node);
  /** @type {number | null} */
  let pointed = null;
  let isOpen = false; // all labels are shown
  let mask = 0;
  /** @type {unknown[]} */
  let built = [];

  /** @param {number | null} token */
  function pointAt(token) {
    pointed = token;
    updateSteps();
  }

  /** @param {number} token */
  function chooseToken(token) {
    const { trace } = context.data;
    if (!trace) return;
    const at = trace.output.first + token;
    store.set({ at: store.state.at === at ? null : at });
  }

  /** @param {number} by */
  function move(by) {
    const { trace } = context.data;
    if (!trace) return;
    const { first, tokens } = trace.output;
    const now = tokenAt(trace.output);
    const next = now === null ? (by > 0 ? 0 : tokens.length - 1) : Math.min(tokens.length - 1, Math.max(0, now + by));
    const hadFocus = line.hasFocus();
    pointed = null;
    store.set({ at: first + next });
    if (hadFocus) queueMicrotask(() => line.focus(next));
  }

  /** @param {Output} output @returns {number | null} */
  function tokenAt(output) {
    const { at } = store.state;
    const token = at === null ? -1 : at - output.first;
    return token >= 0 && token < output.tokens.length ? token : null;
  }

  /** The ablation of this text; its heads may be those of a moment ago. @param {Trace} trace @returns {Ablation | null} */
  function ablationOf(trace) {
    const { ablation } = context.data;
    return ablation && ablation.trace === trace.id && store.state.off.length > 0 ? ablation : null;
  }

  function updateSteps() {
    const { trace } = context.data;
    if (!trace) return;
    steps.update(trace.output, ablationOf(trace)?.forced ?? null, tokenAt(trace.output), pointed);
  }

  /** @param {Trace} trace @param {Ablation | null} ablation */
  function showTop(trace, ablation) {
    const { output } = trace;
    const total = output.log_probability;
    const confidence = total === null ? "" : output.tokens.length < 2 ? t("answer_confidence", { value: percent(Math.exp(total)) })
      : t("answer_confidence_tokens", { value: percent(Math.exp(total)), mean: percent(Math.exp(total / output.tokens.length)) });
    show(top, [trace, store.state.lang], () => [el("h2", {}, t(`answer_title_${output.task}`)), el("p", { class: "faint" }, confidence)]);
    const forced = ablation?.forced ?? null;
    const isWritten = output.tokens.length > 0;
    line.root.hidden = !isWritten;
    const key = [trace, forced, store.state.lang];
    if (isWritten && key.some((part, i) => part !== built[i])) {
      built = key;
      line.build(trace, forced);
    }
    if (isWritten) line.mark(tokenAt(output));
  }

  /** Everything but written tokens: labels, entities, masks. @param {Trace} trace @param {Ablation | null} ablation */
  function showMain(trace, ablation) {
    const { output } = trace;
    const free = ablation?.free ?? null;
    show(main, [trace, ablation, store.state.lang, isOpen, mask], () => [
      output.task === "tag" ? entityText(trace.text, output.spans, null, labelsOf(output, free)) : null,
      output.task === "tag" && output.spans.length === 0 ? el("p", { class: "note-small" }, t("answer_no_entities")) : null,
      ...(output.task === "masked" ? masks(trace, free) : []),
      output.task === "tag" && output.labels.length ? el("h3", { class: "answer-part" }, t("answer_intent")) : null,
      ...(output.labels.length ? labels(output, free) : []),
      output.ngram_share === null ? null : el("p", { class: "note-small" }, t("answer_ngrams", { share: percent(output.ngram_share) })),
    ]);
  }

  /** @param {Output} output @param {Output | null} free */
  function labels(output, free) {
    const others = new Map(free?.labels.map((label) => [label.name, label.probability]));
    const rows = [...output.labels].sort((a, b) => b.probability - a.probability).map(({ name, probability }, i) =>
      ({ text: name, value: probability, without: free ? (others.get(name) ?? null) : null, isChosen: i === 0 }));
    const kept = isOpen ? rows : rows.slice(0, N_LABELS);
    return [probabilityTable(t("answer_labels"), kept, t), rows.length <= N_LABELS ? null : button(
      isOpen ? t("answer_fewer") : t("answer_all_labels", { count: rows.length }), () => { isOpen = !isOpen; view.update(); }, { class: "quiet", "data-key": "labels" })];
  }

  /** @param {Trace} trace @param {Output | null} free */
  function masks(trace, free) {
    const all = trace.output.masks;
    if (all.length === 0) return [el("p", { class: "note-small" }, t("answer_no_masks"))];
    mask = Math.min(mask, all.length - 1);
    const others = free?.masks[mask]?.alternatives;
    return [
      maskedText(trace.text, all, null, mask, (number) => { mask = number; view.update(); }),
      probabilityTable(t("answer_mask", { number: mask + 1, count: all.length }), all[mask].alternatives.map((one, i) =>
        ({ text: one.text, value: one.probability, without: others ? (others.find((other) => other.id === one.id)?.probability ?? null) : null, isChosen: i === 0 })), t),
    ];
  }

  /** @param {Trace} trace @param {Ablation | null} ablation */
  function showWithout(trace, ablation) {
    const { off } = store.state;
    without.hidden = off.length === 0;
    without.classList.toggle("is-stale", ablation !== null && !sameHeads(ablation.heads, off));
    const { error, busy } = context.data;
    show(without, [trace, ablation, off.length, store.state.lang, error, busy], () => {
      const title = el("h3", {}, t(off.length === 1 ? "answer_without_one" : "answer_without", { count: off.length }));
      if (off.length === 0) return [];
      if (!ablation) return [title, el("p", { class: "note-small" }, error && !busy ? error.detail : t("answer_without_coming"))];
      return [title, ...answerWithout(trace, ablation)];
    });
  }

  /** @param {Trace} trace @param {Ablation} ablation */
  function answerWithout(trace, { free, log_probability_change: change }) {
    const { output } = trace;
    const parts = [];
    if (output.tokens.length || free.tokens.length) parts.push(changedText(free.answer.trim(), output.answer.trim()));
    if (output.task === "tag") {
      parts.push(entityText(trace.text, free.spans, output.spans, labelsOf(output, free)));
      const lost = lostEntities(output.spans, free.spans, trace.text);
      if (lost.length) parts.push(el("p", { class: "note-small" }, t("answer_lost", { entities: lost.join(t("list_comma")) })));
    }
    if (output.task === "masked") parts.push(maskedText(trace.text, free.masks, output.masks, null, null));
    parts.push(el("p", { class: "note-small" }, verdict(output, free, change)));
    return parts;
  }

  /** @param {Output} output @param {Output} free @param {number | null} change */
  function verdict(output, free, change) {
    const [best, bestWithout] = [output.labels, free.labels].map((list) => [...list].sort((a, b) => b.probability - a.probability)[0]?.name);
    const isSame = output.answer === free.answer && best === bestWithout && lostEntities(output.spans, free.spans, "").length === 0
      && lostEntities(free.spans, output.spans, "").length === 0;
    const parts = [isSame ? t("answer_same") : best !== bestWithout ? t("answer_other_label", { label: bestWithout ?? "–" }) : t("answer_differs")];
    if (change !== null) parts.push(t("answer_change_nats", { change: signed(change, Math.abs(change) < 0.1 ? 4 : 2) }));
    return parts.join(t("list_space"));
  }

  const view = {
    update() {
      const { trace } = context.data;
      node.hidden = trace === null;
      if (!trace) return;
      const ablation = ablationOf(trace);
      showTop(trace, ablation);
      showMain(trace, ablation);
      showWithout(trace, ablation);
      updateSteps();
    },
    destroy() { line.destroy(); node.remove(); },
  };
  return view;
}

/** @param {Output} output @param {Output | null} free */
function labelsOf(output, free) {
  return [...new Set([...output.spans, ...(free?.spans ?? [])].map((span) => span.label))].sort();
}

/** @param {readonly string[]} one @param {readonly string[]} other */
function sameHeads(one, other) {
  return one.length === other.length && one.every((head) => other.includes(head));
}
