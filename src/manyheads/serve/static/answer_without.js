// The answer without the heads that are switched off, and what has changed.
/** @import { Ablation, Context, Output, Trace } from "./types.js" */
import { changedParts } from "./changed_words.js";
import { el } from "./dom.js";
import { signed, tinyPercent } from "./figures.js";
import { changedEntities, changedText, entityText, hasNewEntity, maskedText } from "./marked_text.js";

const NO_CHANGE = 5e-5; // nats; shown as 0

/**
 * @param {Trace} trace @param {Ablation} ablation @param {string[]} labels all labels of entities, in the order of the colors @param {Context} context
 * @returns {Node[]}
 */
export function answerWithout(trace, { free, log_probability_change: change }, labels, { t }) {
  const { output } = trace;
  const note = (/** @type {string} */ text) => el("p", { class: "note-small" }, text);
  const parts = [];
  if (output.tokens.length || free.tokens.length) parts.push(free.answer.trim() ? changedText(free.answer.trim(), output.answer.trim()) : note(t("answer_empty")));
  if (output.task === "tag") {
    parts.push(entityText(trace.text, free.spans, output.spans, labels));
    const { lost, changed } = changedEntities(output.spans, free.spans, trace.text);
    if (changed.length) parts.push(note(t("answer_changed", { entities: changed.join(t("list_semicolon")) })));
    if (lost.length) parts.push(note(t("answer_lost", { entities: lost.join(t("list_comma")) })));
  }
  if (output.task === "masked") parts.push(maskedText(trace.text, free.masks, output.masks, null, null));
  parts.push(note([verdict(output, free), probability(output.log_probability, change)].filter(Boolean).join(t("list_space"))));
  return parts;

  /** @param {Output} before @param {Output} after */
  function verdict(before, after) {
    const [best, bestWithout] = [before.labels, after.labels].map((list) => [...list].sort((a, b) => b.probability - a.probability)[0]?.name);
    if (best !== bestWithout) return t("answer_other_label", { label: bestWithout ?? "–" });
    if (before.answer === after.answer && !hasNewEntity(before.spans, after.spans) && !hasNewEntity(after.spans, before.spans)) return t("answer_same");
    return t(hasMarks(before, after) ? "answer_differs" : "answer_changes");
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

/** Whether something new is marked. @param {Output} before @param {Output} after */
function hasMarks(before, after) {
  if (after.task === "tag") return hasNewEntity(after.spans, before.spans);
  if (after.task === "masked") return after.masks.some((mask, i) => mask.alternatives[0]?.text !== before.masks[i]?.alternatives[0]?.text);
  return changedParts(after.answer.trim(), before.answer.trim()).some((part) => part.isChanged && part.text.trim());
}
