// The question which heads make the model say X instead of Y.
/** @import { Context, Contrast, Trace } from "./types.js" */
import { effectList } from "./bar_list.js";
import { button, dropdown, show } from "./controls.js";
import { asProblem, el } from "./dom.js";
import { fixed, signed } from "./figures.js";
import { shortName, toggled } from "./head_names.js";
import { leastCertain } from "./step_panel.js";

const N_EFFECTS = 12;

/**
 * Something the model chose, and what it could have chosen instead (value, text).
 * @typedef {{ text: string, position: number, isToken: boolean, others: (readonly [string, string])[] }} Question
 */

/** @param {string} text */
const visible = (text) => text.trim() || "␣";

/**
 * Everything that the model chose for a text: tokens, labels, entities.
 * @param {Trace} trace @param {string} noEntity
 * @returns {Question[]}
 */
export function questionsOf({ text, output, sides }, noEntity) {
  const characters = [...text];
  const labels = [...output.labels].sort((a, b) => b.probability - a.probability).map(({ name }) => name);
  const positionAt = (/** @type {number} */ start) => sides.source?.tokens.findIndex((token) => token.start <= start && start < token.end) ?? -1;
  /** @type {(alternatives: { id: number, text: string }[], chosen: string) => (readonly [string, string])[]} */
  const others = (alternatives, chosen) => alternatives.filter((one) => one.text !== chosen).map((one) => /** @type {const} */ ([String(one.id), visible(one.text)]));
  /** @type {Question[]} */
  const all = [
    ...output.tokens.map((token, k) => ({ text: `${k + 1} · ${visible(token.text)}`, position: output.first + k, isToken: true, others: others(token.alternatives, token.text) })),
    ...output.masks.map((mask) => {
      const chosen = mask.alternatives[0]?.text ?? "";
      return { text: visible(chosen), position: positionAt(mask.start), isToken: true, others: others(mask.alternatives, chosen) };
    }),
    ...(labels.length > 1 ? [{ text: labels[0], position: -1, isToken: false, others: labels.slice(1).map((name) => /** @type {const} */ ([name, name])) }] : []),
    ...output.spans.map((span) => ({ text: `${characters.slice(span.start, span.end).join("")} · ${span.label}`, position: positionAt(span.start), isToken: false, others: [/** @type {const} */ (["O", noEntity])] }))
      .filter((question) => question.position > 0),
  ];
  return all.filter((question) => question.others.length > 0);
}

/** @param {Context} context */
export function contrastPanel(context) {
  const { store, t } = context;
  const form = el("div", { class: "contrast-form" });
  const result = el("div", { class: "contrast-result", "aria-live": "polite" });
  const root = el("div", { class: "contrast" }, form, result);
  /** @type {Trace | null} */
  let trace = null;
  /** @type {Question[]} */
  let questions = [];
  let lang = "";
  let chosen = 0;
  let instead = "";
  /** @type {Contrast | null} */
  let answer = null;
  let status = "";

  async function ask() {
    const asked = trace;
    const question = questions[chosen];
    if (!asked || !question) return;
    status = t("contrast_coming");
    answer = null;
    update();
    try {
      const found = await context.source.contrast(asked.id, question.position, question.isToken ? Number(instead) : instead);
      if (trace !== asked) return;
      answer = found;
      status = "";
    } catch (thrown) {
      if (trace !== asked) return;
      status = asProblem(thrown).detail;
    }
    update();
  }

  function buildForm() {
    const { others } = questions[chosen];
    const reset = () => { answer = null; status = ""; update(); };
    return [
      el("h3", {}, t("contrast_title")),
      dropdown(t("contrast_says"), questions.map((question, i) => [String(i), question.text]), String(chosen), (value) => { chosen = Number(value); reset(); }),
      dropdown(t("contrast_instead"), others, instead, (value) => { instead = value; reset(); }),
      button(t("contrast_ask"), () => void ask(), { class: "plain" }),
    ];
  }

  function buildResult() {
    if (!answer) return [status ? el("p", { class: "note-small" }, status) : null];
    const { off } = store.state;
    const heads = [...answer.heads].sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect)).slice(0, N_EFFECTS);
    const roles = new Map((context.data.heads?.heads ?? []).map((head) => [head.head, head]));
    return [
      el("p", { class: "note-small" }, t("contrast_result", { chosen: visible(answer.chosen), instead: visible(answer.instead), difference: fixed(answer.difference) })),
      effectList(t("contrast_title"), heads.map(({ head, effect }) => {
        const role = roles.get(head);
        return { name: shortName(head, t), value: effect, text: signed(effect), note: role && role.role !== "unknown" ? context.pick(role.names) : "",
          isOff: off.includes(head), act: () => store.set({ off: toggled([...off], [head]) }) };
      })),
    ];
  }

  function update() {
    if (lang !== store.state.lang || trace !== context.data.trace) questions = context.data.trace ? questionsOf(context.data.trace, t("contrast_no_entity")) : [];
    lang = store.state.lang;
    if (trace !== context.data.trace) {
      trace = context.data.trace;
      const least = trace?.output.tokens.length ? trace.output.first + leastCertain(trace.output) : null;
      chosen = Math.max(0, questions.findIndex((question) => question.position === least));
      answer = null;
      status = "";
    }
    root.hidden = questions.length === 0 || !context.data.info.is_live; // a saved page has no answers to this
    if (root.hidden) return;
    const { others } = questions[chosen];
    if (!others.some(([value]) => value === instead)) instead = others[0][0];
    show(form, [trace, chosen, instead, store.state.lang], buildForm);
    show(result, [answer, status, store.state.off, store.state.lang, context.data.heads], buildResult);
  }
  return { root, update };
}
