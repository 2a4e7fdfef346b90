// The model's answer with its confidence, and beside it the answer without the heads that are switched off.
/** @import { AnswerForm } from "../shared/types.js" */
/** @import { Ablation, Context, Output, Trace, View } from "./lens_types.js" */
import { changedParts } from "../shared/changed_words.js";
import { button, show } from "../shared/controls.js";
import { el } from "../shared/dom.js";
import { percent, roundPercent, signed, tinyPercent } from "../shared/figures.js";
import { sentences } from "../shared/messages.js";
import { changedEntities, changedText, entityText, hasNewEntity, maskedText, probabilityTable, stepPanel, taggedWords, tokenLine, unionOfChoices, withRest } from "./answer_text.js";

const N_LABELS = 6; // shown until the reader asks for all
const NO_SHARE = 0.0005; // shown as 0.0 %

/** @param {HTMLElement} root @param {Context} context @returns {View} */
export function mountAnswerView(root, context) {
  const { store, t } = context;
  const top = el("div", { class: "row answer-top" });
  const main = el("div", { class: "answer-main" });
  const without = el("div", { class: "answer-without", "aria-live": "polite" });
  const leave = () => store.set({ at: null });
  const line = tokenLine({ point: pointAt, choose: chooseToken, move, leave });
  const steps = stepPanel(context, { move, leave });
  const caption = el("p", { class: "note-small line-caption" });
  const side = el("div", { class: "answer-side" });
  const body = el("div", { class: "answer-body" }, el("div", { class: "answer-texts" }, el("div", {}, line.root, caption, main), without), steps.root, side);
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

  /** The ablation of this text; while a new one is computed, that of the heads of a moment ago. @param {Trace} trace @returns {Ablation | null} */
  function ablationOf(trace) {
    const { ablation, busy } = context.data;
    const { off } = store.state;
    if (!ablation || ablation.trace !== trace.id || off.length === 0) return null;
    return busy || sameHeads(ablation.heads, off) ? ablation : null;
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
    const hasMean = output.tokens.length > 1;
    const confidence = total === null ? "" : !hasMean ? t(trace.answer_form === "spans" ? "answer_confidence_tags" : "answer_confidence", { value: percent(Math.exp(total)) })
      : t("answer_confidence_tokens", { value: percent(Math.exp(total)), mean: percent(Math.exp(total / output.tokens.length)) });
    show(top, [trace, store.state.lang], () => [el("h2", {}, t(`answer_title_${trace.answer_form}`)), el("p", { class: "faint", title: hasMean ? t("answer_mean") : null }, confidence)]);
    const forced = ablation?.forced ?? null;
    const isWritten = output.tokens.length > 0;
    line.root.hidden = !isWritten;
    const key = [trace, forced, store.state.lang];
    if (isWritten && key.some((part, i) => part !== built[i])) {
      built = key;
      line.build(trace, forced);
    }
    if (isWritten) line.mark(tokenAt(output));
    show(caption, [output, forced !== null, store.state.lang], () => [output.alignment.length ? t("answer_caption_lines") : "", forced ? t("answer_caption_changes") : ""].filter(Boolean)
      .map((text) => el("span", {}, text)));
    caption.hidden = !isWritten || !caption.hasChildNodes();
  }

  /** Everything but written tokens: labels, entities, masks. @param {Trace} trace @param {Ablation | null} ablation */
  function showMain(trace, ablation) {
    const { output } = trace;
    const free = ablation?.free ?? null;
    const { at, lang } = store.state;
    const isTagged = trace.answer_form === "spans";
    show(main, [trace, ablation, lang, mask, at, isOpen], () => [
      isTagged ? entityText(trace.text, output.spans, null, labelsOf(output, free), wordsOf(trace)) : null,
      isTagged && output.spans.length === 0 ? el("p", { class: "note-small" }, t("answer_no_entities")) : null,
      ...(trace.answer_form === "masks" ? masks(trace, free) : []),
      trace.answer_form === "vector" ? el("p", {}, (free ?? output).answer) : null,
      ...(isTagged ? [] : labels(output, free)),
      ngrams(trace),
    ]);
    side.hidden = !isTagged || output.labels.length === 0;
    show(side, [trace, ablation, lang, isOpen], () => (side.hidden ? [] : [el("h3", { class: "answer-part" }, t("answer_intent")), ...labels(output, free)]));
  }

  /** How much of the answer does not come from heads. @param {Trace} trace */
  function ngrams({ answer_form: form, output: { ngram_share: share } }) {
    if (share === null || share < NO_SHARE) return null;
    return el("p", { class: "note-small" }, t(form === "spans" ? "answer_ngrams_spans" : "answer_ngrams", { share: roundPercent(share), rest: roundPercent(1 - share) }));
  }

  /** The words of a tagged text: a click chooses one, as a step of generation is chosen. @param {Trace} trace */
  function wordsOf(trace) {
    const words = taggedWords(trace);
    const chosen = words.findIndex(({ position }) => position === store.state.at);
    const choose = (/** @type {number} */ word) => store.set({ at: word === chosen ? null : words[word].position });
    return { words, chosen: chosen < 0 ? null : chosen, choose, name: t("answer_choose_word") };
  }

  /** @param {Output} output @param {Output | null} free */
  function labels(output, free) {
    const others = new Map(free?.labels.map((label) => [label.name, label.probability]));
    const rows = [...output.labels].sort((a, b) => b.probability - a.probability).map(({ name, probability }, i) =>
      ({ text: name, value: probability, without: free ? (others.get(name) ?? null) : null, isChosen: i === 0 }));
    if (rows.length === 0) return [];
    const few = withRest(rows.slice(0, N_LABELS), t("steps_rest_labels"));
    const kept = isOpen ? rows : few;
    return [probabilityTable(t("answer_labels"), kept, t), few.filter((row) => !row.isFaint).length === rows.length ? null : button(
      isOpen ? t("answer_fewer") : t("answer_all_labels", { count: rows.length }), () => { isOpen = !isOpen; view.update(); }, { class: "quiet", "data-key": "labels" })];
  }

  /** @param {Trace} trace @param {Output | null} free */
  function masks(trace, free) {
    const all = trace.output.masks;
    if (all.length === 0) return [el("p", { class: "note-small" }, t("answer_no_masks"))];
    mask = Math.min(mask, all.length - 1);
    const rows = unionOfChoices(all[mask].alternatives, free?.masks[mask]?.alternatives ?? null).map((row, i) => ({ ...row, isChosen: i === 0 }));
    return [
      maskedText(trace.text, all, null, mask, (number) => { mask = number; view.update(); }),
      probabilityTable(t("answer_mask", { number: mask + 1, count: all.length }), withRest(rows, t("steps_rest")), t),
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
      return [title, ...answerWithout(trace, ablation, labelsOf(trace.output, ablation.free), context)];
    });
  }

  const view = {
    update() {
      const { trace } = context.data;
      node.hidden = trace === null;
      if (!trace) return;
      const ablation = ablationOf(trace);
      body.classList.toggle("is-short", trace.output.tokens.length === 0);
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

// ---------------------------------------------------------------- the answer without some heads

const NO_CHANGE = 5e-5; // nats; shown as 0

/**
 * @param {Trace} trace @param {Ablation} ablation @param {string[]} labels all labels of entities, in the order of the colors @param {Context} context
 * @returns {Node[]}
 */
function answerWithout(trace, { free, log_probability_change: change }, labels, { t }) {
  const { answer_form: form, output } = trace;
  const note = (/** @type {string} */ text) => el("p", { class: "note-small" }, text);
  const parts = [];
  if (output.tokens.length || free.tokens.length) parts.push(free.answer.trim() ? changedText(free.answer.trim(), output.answer.trim()) : note(t("answer_empty")));
  if (form === "spans") {
    parts.push(entityText(trace.text, free.spans, output.spans, labels));
    const { lost, changed } = changedEntities(output.spans, free.spans, trace.text);
    if (changed.length) parts.push(note(t("answer_changed", { entities: changed.join(t("list_semicolon")) })));
    if (lost.length) parts.push(note(t("answer_lost", { entities: lost.join(t("list_comma")) })));
  }
  if (form === "masks") parts.push(maskedText(trace.text, free.masks, output.masks, null, null));
  parts.push(note(sentences(t, [verdict(output, free), probability(output.log_probability, change)])));
  return parts;

  /** @param {Output} before @param {Output} after */
  function verdict(before, after) {
    const [best, bestWithout] = [before.labels, after.labels].map((list) => [...list].sort((a, b) => b.probability - a.probability)[0]?.name);
    if (best !== bestWithout) return t("answer_other_label", { label: bestWithout ?? "–" });
    if (before.answer === after.answer && !hasNewEntity(before.spans, after.spans) && !hasNewEntity(after.spans, before.spans)) return t("answer_same");
    return t(hasMarks(form, before, after) ? "answer_differs" : "answer_changes");
  }

  /** @param {number | null} before @param {number | null} by of log-probability */
  function probability(before, by) {
    if (by === null) return "";
    const nats = t("answer_nats", { change: signed(by, Math.abs(by) < 0.1 ? 4 : 2) });
    if (before === null) return nats;
    const [old, now] = [before, before + by].map((total) => tinyPercent(Math.exp(total)));
    if (Math.abs(by) < NO_CHANGE) return t("answer_as_probable", { before: old });
    const change = old === now ? nats : t("answer_from_to", { before: old, after: now, nats });
    return t(by < 0 ? "answer_less_probable" : "answer_more_probable", { change });
  }
}

/** Whether something new is marked. @param {AnswerForm} form @param {Output} before @param {Output} after */
function hasMarks(form, before, after) {
  if (form === "spans") return hasNewEntity(after.spans, before.spans);
  if (form === "masks") return after.masks.some((mask, i) => mask.alternatives[0]?.text !== before.masks[i]?.alternatives[0]?.text);
  return changedParts(after.answer.trim(), before.answer.trim()).some((part) => part.isChanged && part.text.trim());
}
