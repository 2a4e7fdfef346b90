// Where the user types: the text, optionally an answer; problems with them are reported here.
/** @import { Mount } from "./lens_types.js" */
import { el, setText } from "../shared/dom.js";
import { sentences } from "../shared/messages.js";

const N_EXAMPLES = 5;
const MAX_EXAMPLE = 44; // characters shown of an example

/** @type {Mount} */
export const mountTextBox = (root, context) => {
  const { store, data, source, t } = context;
  const text = el("textarea", { id: "lens-text", rows: 1, dir: "auto", spellcheck: "false", autocomplete: "off" });
  const label = el("label", { for: "lens-text", class: "unseen" });
  const run = el("button", { type: "submit", class: "primary" });
  const answer = el("input", { id: "lens-answer", type: "text", dir: "auto", autocomplete: "off", spellcheck: "false" });
  const answerLabel = el("label", { for: "lens-answer", class: "side-name" });
  const answerRow = el("div", { class: "answer-row", hidden: true }, answerLabel, answer);
  const giveAnswer = el("button", { type: "button", class: "plain", onclick: () => { isAnswerOpen = !isAnswerOpen; if (!isAnswerOpen) store.set({ answer: null, pins: [], keyPins: [], at: null }); update(); if (isAnswerOpen) answer.focus(); } });
  const examples = el("div", { class: "examples" });
  const bundle = el("select", { id: "lens-bundle", onchange: () => store.set({ bundle: bundle.value, off: [], pins: [], keyPins: [], at: null, step: null }) });
  const bundleLabel = el("label", { for: "lens-bundle" });
  const problem = el("p", { class: "caution", role: "alert", hidden: true });
  const snapshot = el("p", { class: "hint", hidden: true });
  const warnings = el("p", { class: "caution", role: "status", hidden: true });
  const notes = el("p", { class: "hint", role: "status" });
  const final = el("button", { type: "button", class: "plain", onclick: () => store.set({ step: null }) });
  const page = el("a", { class: "plain", hidden: true });
  const form = el("form", { class: "text-box" }, label, el("div", { class: "text-line" }, text, run), answerRow,
    el("div", { class: "below-text" }, examples, el("span", { class: "spread" }, bundleLabel, bundle, giveAnswer, page)), snapshot, problem, warnings, notes);
  root.append(form);
  let isAnswerOpen = store.state.answer !== null;
  let typed = "";
  let limit = "";
  let fitted = "";

  /** @param {string} chosen */
  function submit(chosen) {
    const wanted = chosen.trim();
    const { max_characters } = data.info;
    limit = !wanted ? t("text_empty") : [...wanted].length > max_characters ? t("text_too_long", { n: [...wanted].length.toLocaleString("en"), limit: max_characters.toLocaleString("en") }) : "";
    if (!limit) {
      const own = isAnswerOpen && answer.value.trim() ? answer.value.trimEnd() : null; // a continuation may begin with a space
      const isSame = wanted === store.state.text && own === store.state.answer;
      if (isSame) context.load.retry();
      else store.set({ text: wanted, answer: own, pins: [], keyPins: [], at: null });
    }
    update();
  }
  form.addEventListener("submit", (event) => { event.preventDefault(); submit(text.value); });
  text.addEventListener("input", grow);
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit(text.value);
  });

  function grow() {
    text.style.setProperty("height", "auto");
    text.style.setProperty("height", `${Math.min(text.scrollHeight + 2, 260)}px`);
  }

  function showExamples() {
    const stored = source.stored().filter((one) => one.bundle === store.state.bundle).map((one) => one.text);
    const texts = [...new Set(data.info.is_live ? data.info.examples : stored)].slice(0, data.info.is_live ? N_EXAMPLES : 50);
    const key = texts.join("\n") + store.state.lang;
    if (examples.dataset.key === key) return;
    examples.dataset.key = key;
    const name = el("span", { class: "faint", text: t(data.info.is_live ? "examples" : "stored_texts") });
    examples.replaceChildren(...(texts.length ? [name] : []), ...texts.map((one) => el("button", {
      type: "button", class: "plain example", dir: "auto", text: one.length > MAX_EXAMPLE ? `${one.slice(0, MAX_EXAMPLE - 1)}…` : one, title: one, onclick: () => { isAnswerOpen = false; submit(one); },
    })));
  }

  /** Hides examples that would need another line; a narrow page has two lines. */
  function fitExamples() {
    const key = `${examples.dataset.key} ${examples.clientWidth}`;
    if (!data.info.is_live || key === fitted) return;
    fitted = key;
    const buttons = [...examples.querySelectorAll("button")];
    for (const button of buttons) button.hidden = false;
    const limit = examples.offsetTop + (examples.clientWidth < 500 ? 84 : 16);
    for (const button of buttons) button.hidden = button.offsetTop > limit;
  }

  function update() {
    const { state } = store;
    if (state.text !== typed) {
      typed = state.text;
      text.value = state.text;
      answer.value = state.answer ?? "";
      isAnswerOpen ||= state.answer !== null;
      requestAnimationFrame(grow);
    }
    setText(label, t("text_label"));
    text.placeholder = t("text_label");

    setText(run, t("run"));
    setText(answerLabel, t("answer_label"));
    setText(giveAnswer, t(isAnswerOpen ? "own_answer" : "give_answer"));
    giveAnswer.hidden = !data.info.takes_answer || !data.info.is_live;
    answerRow.hidden = !isAnswerOpen || giveAnswer.hidden;
    text.readOnly = !data.info.is_live;
    run.hidden = !data.info.is_live;
    showExamples();
    requestAnimationFrame(fitExamples);
    const warned = sentences(t, data.trace?.warnings?.map(context.pick) ?? []);
    warnings.hidden = !warned;
    setText(warnings, warned);
    const said = data.trace?.notes.map(context.pick).join(" ") ?? "";
    notes.hidden = !said;
    setText(notes, said);
    snapshot.hidden = state.step === null;
    if (state.step !== null) snapshot.replaceChildren(t("snapshot", { step: state.step.toLocaleString("en") }), " ", final);
    setText(final, t("final_weights"));
    bundleLabel.hidden = bundle.hidden = data.model.bundles.length < 2;
    setText(bundleLabel, t("model"));
    if (!bundle.options.length) bundle.append(...data.model.bundles.map((one) => el("option", { value: one.id, text: one.name })));
    bundle.value = state.bundle;
    const message = limit || data.error?.detail || "";
    problem.hidden = !message;
    setText(problem, message && !limit && data.trace ? `${message} ${t("former_result")}` : message);
    const address = data.trace ? source.pageUrl(data.trace.id) : null;
    page.hidden = !address;
    if (address) page.href = `${address}?${new URLSearchParams({ state: store.address().slice(1) })}`;
    page.setAttribute("download", "lens.html");
    setText(page, t("save_page"));
  }
  return { update };
};
