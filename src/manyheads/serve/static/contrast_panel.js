// The question which heads make the model say X instead of Y.
/** @import { Context, Contrast, Trace } from "./types.js" */
/** @import { Question } from "./contrast_questions.js" */
import { effectList } from "./bar_list.js";
import { visibleText } from "./compared_shares.js";
import { knownKinds, questionsOf } from "./contrast_questions.js";
import { button, dropdown, show } from "./controls.js";
import { asProblem, el } from "./dom.js";
import { fixed, signed } from "./figures.js";
import { shortName, toggled } from "./head_names.js";
import { leastCertain } from "./step_panel.js";

const N_EFFECTS = 12;
const TYPED = "?"; // the reader writes the name of a tag
const UNKNOWN = 422; // status of a name that the model does not have

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
  /** @type {unknown[]} what the questions were made of */
  let made = [];
  let position = -1; // of the chosen question
  let instead = "";
  let typed = "";
  /** @type {number | null} */
  let at = null;
  /** @type {{ contrast: Contrast, question: Question } | null} */
  let answer = null;
  let status = "";

  const chosen = () => Math.max(0, questions.findIndex((question) => question.position === position));

  async function ask() {
    const asked = trace;
    const question = questions[chosen()];
    const other = instead === TYPED ? typed.trim() : instead;
    if (!asked || !question || !other) return;
    status = t("contrast_coming");
    answer = null;
    update();
    try {
      const contrast = await find(asked, question, other);
      if (trace !== asked) return;
      answer = { contrast, question };
      status = "";
    } catch (thrown) {
      if (trace !== asked) return;
      status = asProblem(thrown).detail;
    }
    update();
  }

  /** @param {Trace} asked @param {Question} question @param {string} other */
  async function find(asked, question, other) {
    const value = question.kind === "token" || question.kind === "mask" ? Number(other) : other;
    try {
      return await context.source.contrast(asked.id, question.position, value);
    } catch (thrown) {
      const bare = /^[BIES]-(.+)$/.exec(other)?.[1];
      if (question.kind !== "tag" || !bare || asProblem(thrown).status !== UNKNOWN) throw thrown;
      return context.source.contrast(asked.id, question.position, bare).catch(() => { throw thrown; }); // a tagger of parts of speech
    }
  }

  function reset() {
    answer = null;
    status = "";
    update();
  }

  function buildForm() {
    const question = questions[chosen()];
    const others = question.kind === "tag" ? [...question.others, /** @type {const} */ ([TYPED, t("contrast_typed")])] : question.others;
    const field = el("input", { type: "text", "aria-label": t("contrast_tag"), placeholder: "S-FOOD", size: 10, "data-key": "typed", value: typed, oninput: () => { typed = field.value; },
      onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") void ask(); } });
    return [
      el("h3", {}, t("contrast_title")),
      dropdown(t("contrast_says"), questions.map((one) => [String(one.position), one.text]), String(question.position), (value) => { position = Number(value); reset(); }),
      dropdown(t("contrast_instead"), others, instead, (value) => { instead = value; reset(); }),
      instead === TYPED ? el("span", { class: "field" }, field) : null,
      button(t("contrast_ask"), () => void ask(), { class: "plain" }),
    ];
  }

  /** Which of two logits is larger, and what the bars show. @param {Contrast} contrast @param {Question} question */
  function sentence({ chosen: one, instead: other, difference }, question) {
    const where = question.kind === "label" ? "" : t(`contrast_at_${question.kind}`, { subject: question.subject });
    const values = { chosen: visibleText(one), instead: visibleText(other), difference: fixed(Math.abs(difference)), where };
    return [t(difference < 0 ? "contrast_below" : "contrast_above", values), t("contrast_bars")].join(t("list_space"));
  }

  function buildResult() {
    if (!answer) return [status ? el("p", { class: "note-small" }, status) : null];
    const { off } = store.state;
    const heads = [...answer.contrast.heads].sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect)).slice(0, N_EFFECTS);
    const roles = new Map((context.data.heads?.heads ?? []).map((head) => [head.head, head]));
    return [
      el("p", { class: "note-small" }, sentence(answer.contrast, answer.question)),
      effectList(t("contrast_title"), heads.map(({ head, effect }) => {
        const role = roles.get(head);
        return { name: shortName(head, t), value: effect, text: signed(effect), note: role && role.role !== "unknown" ? context.pick(role.names) : "",
          isOff: off.includes(head), act: () => store.set({ off: toggled([...off], [head]) }) };
      })),
    ];
  }

  /** What can be asked about the text; entities that appear when heads are off make more kinds known. */
  function makeQuestions() {
    const { data } = context;
    const kinds = knownKinds(data.info.name, [data.trace?.output, data.ablation?.free]);
    const key = [data.trace, store.state.lang, kinds.size];
    if (key.every((part, i) => part === made[i])) return;
    made = key;
    questions = data.trace ? questionsOf(data.trace, kinds, t("contrast_no_entity")) : [];
  }

  /** The token or word that the reader steps to is the one in question. */
  function follow() {
    const isNew = trace !== context.data.trace;
    trace = context.data.trace;
    const before = position;
    if (isNew) {
      const least = trace?.output.tokens.length ? trace.output.first + leastCertain(trace.output) : null;
      position = least ?? questions[0]?.position ?? -1;
    }
    if ((isNew || at !== store.state.at) && questions.some((question) => question.position === store.state.at)) position = store.state.at ?? position;
    at = store.state.at;
    if (!isNew && position === before) return;
    answer = null;
    status = "";
  }

  function update() {
    makeQuestions();
    follow();
    root.hidden = questions.length === 0 || !context.data.info.is_live; // a saved page has no answers to this
    if (root.hidden) return;
    const question = questions[chosen()];
    const isTyped = question.kind === "tag" && instead === TYPED;
    if (!isTyped && !question.others.some(([value]) => value === instead)) instead = question.others[0][0];
    show(form, [questions, position, instead, store.state.lang], buildForm);
    show(result, [answer, status, store.state.off, store.state.lang, context.data.heads], buildResult);
  }
  return { root, update };
}
