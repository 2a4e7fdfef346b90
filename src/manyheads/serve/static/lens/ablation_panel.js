// Heads that are switched off: one by one, whole layers, the most important ones, random ones; undo.
/** @import { Context, Contrast, Output, Trace, View } from "./lens_types.js" */
import { button, dropdown, show } from "../shared/controls.js";
import { asProblem, el, isTyping } from "../shared/dom.js";
import { fixed, signed } from "../shared/figures.js";
import { sentences } from "../shared/messages.js";
import { effectList, isEveryWordTagged, leastCertain, taggedWords, visibleText } from "./answer_text.js";
import { allHeads, headName, randomHeads, shortName, toggled } from "./heads.js";

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
    if (off.length === 0) return [el("p", { class: "note-small" }, t("ablation_none"), el("span", { class: "key-hint" }, t("sentences", { before: "", after: t("ablation_key") })))];
    return [el("span", { class: "off-label" }, t("ablation_off")), ...off.map((head) => el("button", {
      type: "button", class: "off-chip", "data-key": head, "aria-label": t("ablation_on", { head: shortName(head, t) }), title: head,
      onclick: () => setOff(off.filter((name) => name !== head)),
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
        const attention = info.attentions.find((traced) => traced.name === name);
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

// ---------------------------------------------------------------- which heads make the model say X instead of Y

const N_EFFECTS = 12;
const TYPED = "?"; // the reader writes the name of a tag
const UNKNOWN = 422; // status of a name that the model does not have

/** @param {Context} context */
function contrastPanel(context) {
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
    return sentences(t, [t(difference < 0 ? "contrast_below" : "contrast_above", values), t("contrast_bars")]);
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

// ---------------------------------------------------------------- what the model chose, and what it could have chosen instead

/**
 * Something the model chose at a position, and what it could have chosen instead (value, text).
 * @typedef {{ kind: "token" | "mask" | "label" | "tag", text: string, subject: string, position: number, others: (readonly [string, string])[] }} Question
 */

/** @typedef {readonly [string, string]} Choice */

/**
 * Everything that the model chose for a text: tokens, masks, labels, tags of words.
 * @param {Trace} trace @param {Iterable<string>} kinds of entities that are known @param {string} noEntity
 * @returns {Question[]}
 */
export function questionsOf(trace, kinds, noEntity) {
  const { output, sides } = trace;
  const labels = [...output.labels].sort((a, b) => b.probability - a.probability).map(({ name }) => name);
  /** @type {Question[]} */
  const all = output.tokens.map((token, k) => (
    { kind: "token", text: `${k + 1} · ${visibleText(token.text)}`, subject: String(k + 1), position: output.first + k, others: tokensBut(token.alternatives, token.text) }));
  output.masks.forEach((mask, i) => {
    const chosen = mask.alternatives[0]?.text ?? "";
    const position = sides.source?.tokens.findIndex((token) => token.start <= mask.start && mask.start < token.end) ?? -1;
    all.push({ kind: "mask", text: visibleText(chosen), subject: String(i + 1), position, others: tokensBut(mask.alternatives, chosen) });
  });
  if (labels.length > 1) all.push({ kind: "label", text: labels[0], subject: "", position: -1, others: labels.slice(1).map((name) => /** @type {Choice} */ ([name, name])) });
  if (trace.answer_form === "spans") all.push(...tagQuestions(trace, [...kinds], noEntity));
  return all.filter((question) => question.others.length > 0);
}

/** @param {readonly { id: number, text: string }[]} alternatives @param {string} chosen @returns {Choice[]} */
function tokensBut(alternatives, chosen) {
  return alternatives.filter((one) => one.text !== chosen).map((one) => [String(one.id), visibleText(one.text)]);
}

/** Entities first, then the other words. @param {Trace} trace @param {string[]} kinds @param {string} noEntity @returns {Question[]} */
function tagQuestions(trace, kinds, noEntity) {
  const words = taggedWords(trace);
  const isEvery = isEveryWordTagged(words);
  const characters = [...trace.text];
  const questions = words.map((word) => {
    const { span, form } = word;
    const isWhole = span !== null && (form === "S" || form === "B");
    const name = isWhole ? characters.slice(span.start, span.end).join("") : word.text;
    /** @type {Choice[]} */
    const others = kinds.filter((kind) => kind !== span?.label).sort().map((kind) => [isEvery ? kind : `${form || "S"}-${kind}`, kind]);
    if (span && !isEvery) others.unshift(["O", noEntity]);
    return { isWhole, question: { kind: /** @type {const} */ ("tag"), text: `${name} · ${span?.label ?? noEntity}`, subject: word.text, position: word.position, others } };
  });
  return [...questions.filter(({ isWhole }) => isWhole), ...questions.filter(({ isWhole }) => !isWhole)].map(({ question }) => question);
}

/** @type {Map<string, Set<string>>} kinds of entities that were met in this session, by model */
const met = new Map();

/** The kinds of entities that are known of a model; those of these answers are remembered. @param {string} model @param {(Output | null | undefined)[]} outputs */
export function knownKinds(model, outputs) {
  const kinds = met.get(model) ?? new Set();
  for (const output of outputs) for (const span of output?.spans ?? []) kinds.add(span.label);
  met.set(model, kinds);
  return kinds;
}
