// The page of one bundle: the text, the output, what went wrong, the glossary, the options, and the command line.
/** @import { AnswerForm } from "../shared/types.js" */
/** @import { Bundle, Part, PlayContext, Session } from "./playground_types.js" */
import { button, show } from "../shared/controls.js";
import { choice, el, setText } from "../shared/dom.js";
import { createAlignment } from "./alignment.js";
import { address } from "./api.js";
import { copy, duration, folded, optionsPart } from "./fields.js";
import { glossaryPart } from "./glossary.js";
import { candidateTable, OUTPUTS, remarks } from "./outputs.js";
import { bodyOf, curlOf, MASK } from "./request.js";
import { isLive } from "./session.js";

const MAX_EXAMPLE = 60; // characters shown of an example

/** "Chinese", in the language of the page. @param {string | undefined} code @param {PlayContext} context */
function languageName(code, { lang }) {
  if (!code) return "";
  try {
    return new Intl.DisplayNames([lang() === "zh" ? "zh-Hans" : "en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** Whether the output is a translation, rather than a summary or the like. @param {Session["bundle"]} bundle */
export const isTranslation = ({ answer_form, purpose, languages }) =>
  answer_form === "text" && (purpose === "translation" || (!purpose && languages.length > 1));

/** What the output is, for the names of fields: the form of the answer, or a translation. @param {Session["bundle"]} bundle */
export const kindOf = (bundle) => (isTranslation(bundle) ? "translation" : bundle.answer_form);

/** @param {Session} session @param {PlayContext} context @returns {Part & { field: HTMLTextAreaElement }} */
export function bundleView(session, context) {
  const input = inputPart(session, context);
  const output = outputPart(session, context, input);
  const parts = [session.bundle.answer_form === "text" ? glossaryPart(session, context) : null, optionsPart(session, context), curlPart(session, context)].filter((part) => part !== null);
  const root = el("div", { class: "play-page" },
    el("div", { class: "play-columns" }, input.root, output.root),
    el("div", { class: "play-folds" }, ...parts.map((part) => part.root)));
  return {
    root, field: input.field,
    update() {
      input.update();
      output.update();
      for (const part of parts) part.update();
    },
  };
}

/** The text field with its buttons and examples. @param {Session} session @param {PlayContext} context */
function inputPart(session, context) {
  const { t } = context;
  const { answer_form: form, languages } = session.bundle;
  const field = el("textarea", { id: "play-text", rows: 1, dir: "auto", spellcheck: "false", autocomplete: "off", placeholder: t(form === "continuation" ? "play_type_prompt" : "play_type_here") });
  field.value = session.text;
  const mirror = el("div", { class: "play-mirror", dir: "auto", "aria-hidden": "true" });
  const name = t(`play_in_${kindOf(session.bundle)}`);
  const spoken = form === "text" ? languageName(languages[0], context) : languages.map((code) => languageName(code, context)).join(" · ");
  const label = el("label", { for: "play-text" }, name, spoken ? el("span", { class: "faint" }, ` · ${spoken}`) : null);
  const format = choice({ values: /** @type {const} */ (["text", "html"]), choose: (chosen) => session.setValue("format", chosen === "html" ? "html" : undefined) });
  format.root.hidden = form !== "text";
  const count = el("span", { class: "faint play-count" });
  const clear = button(t("play_clear"), () => put(""), { class: "plain" });
  const mask = form === "masks" ? button(t("play_insert_mask"), insertMask, { class: "plain" }) : null;
  const run = button(t("play_generate"), () => session.run(), { class: "primary" });
  const stop = button(t("play_stop"), () => session.stop(), { class: "primary play-stop" });
  const examples = examplesOf(session.bundle);
  const root = el("section", { class: "play-in" },
    el("div", { class: "play-caption" }, el("h2", {}, label), format.root),
    el("div", { class: "play-box" }, mirror, field),
    el("div", { class: "play-under" }, run, stop, count, el("span", { class: "play-acts" }, mask, clear)),
    examples.length ? el("div", { class: "play-examples" }, el("span", { class: "faint" }, t("play_examples")), ...examples.map((text) =>
      button(text.length > MAX_EXAMPLE ? `${text.slice(0, MAX_EXAMPLE - 1)}…` : text, () => put(text), { class: "plain", dir: "auto", title: text }))) : null);
  let isComposing = false;

  /** @param {string} text */
  function put(text) {
    field.value = text;
    session.type(text);
    if (isLive(session.bundle)) session.run();
    field.focus();
  }

  function insertMask() {
    const { selectionStart: start, selectionEnd: end } = field;
    field.setRangeText(MASK, start, end, "end");
    put(field.value);
  }

  /** One of the buttons is there: a click on "Stop" that comes too late must not start again. */
  function showButtons() {
    const isRunning = session.streamed?.state === "running";
    const [wanted, other] = isRunning ? [stop, run] : [run, stop];
    const isFocused = document.activeElement === other;
    wanted.hidden = isLive(session.bundle);
    other.hidden = true;
    if (isFocused) wanted.focus({ preventScroll: true });
  }

  field.addEventListener("compositionstart", () => { isComposing = true; });
  field.addEventListener("compositionend", () => { isComposing = false; session.type(field.value); });
  field.addEventListener("input", () => { if (!isComposing) session.type(field.value); }); // half a Chinese word is not sent
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); session.run(); }
    if (event.key === "Escape" && session.streamed?.state === "running") session.stop();
  });

  function grow() {
    field.style.setProperty("height", "auto");
    field.style.setProperty("height", `${field.scrollHeight + 2}px`);
  }

  return {
    root, field, mirror,
    update() {
      if (!isComposing && field.value !== session.text) field.value = session.text;
      const n = [...session.text].length;
      setText(count, n === 1 ? t("play_character") : t("play_characters", { n: n.toLocaleString("en") }));
      clear.hidden = !session.text;
      format.show(session.values.format === "html" ? "html" : "text", t("play_format"), (one) => t(`play_${one}`));
      showButtons();
      grow();
    },
  };
}

/** The output with its remarks, or the line about what went wrong. @param {Session} session @param {PlayContext} context @param {ReturnType<typeof inputPart>} input @returns {Part} */
function outputPart(session, context, input) {
  const { t } = context;
  const { answer_form: form, languages } = session.bundle;
  const kind = kindOf(session.bundle);
  const other = OUTPUTS[form];
  const spoken = isTranslation(session.bundle) ? languageName(languages[1], context) : "";
  const heading = el("h2", {}, t(`play_out_${kind}`), spoken ? el("span", { class: "faint" }, ` · ${spoken}`) : null);
  const problem = el("div", { class: "play-problem", role: "alert" });
  const empty = el("p", { class: "faint play-empty" }, t(`play_empty_${kind}`));
  const words = el("p", { class: "play-answer play-words", dir: "auto", role: "group", "aria-label": t(`play_out_${kind}`), "aria-describedby": "play-aligned" });
  const body = el("div", { class: "play-body" });
  const output = el("div", { class: "play-output", "aria-live": "polite" }, empty, words, body);
  const latency = el("span", { class: "faint play-latency", title: t("play_latency") });
  const acts = el("span", { class: "play-acts" });
  const notes = el("div", { class: "play-notes" });
  const working = el("div", { class: "working", role: "progressbar", "aria-label": t("play_working") }, el("div"));
  const alignment = createAlignment(input.field, input.mirror, words, context);
  const root = el("section", { class: "play-out" }, el("div", { class: "play-caption" }, heading, latency), working, problem, output, alignment.line, el("div", { class: "play-under" }, acts), notes);

  function showProblem() {
    const { problem: found, waitUntil } = session;
    const seconds = waitUntil ? Math.max(1, Math.ceil((waitUntil - Date.now()) / 1000)) : 0;
    show(problem, [found, seconds, session.result !== null], () => {
      if (!found || found.status === 401) return [];
      const detail = found.key ? t(found.key, { ...found.values, ...(found.key === "play_wrong_setting" ? { name: t(`play_set_${found.values?.name}`) } : {}) }) : found.detail;
      const text = seconds ? t("play_retry_in", { detail, n: seconds }) : detail;
      const isLocal = found.key === "play_no_mask" || found.key === "play_wrong_setting";
      const former = session.result && !isLocal ? ` ${t("play_former")}` : "";
      return [el("p", { class: isLocal ? "hint" : "caution" }, text + former), !seconds && !isLocal ? button(t("play_retry"), () => session.run(), { class: "plain" }) : null];
    });
  }

  function showResult() {
    const { result, streamed } = session;
    words.hidden = Boolean(other) || (form === "continuation" ? !streamed : !result);
    body.hidden = !other || !result;
    empty.hidden = !words.hidden || !body.hidden;
    if (other) {
      if (result) show(body, [result, session.chosen.join()], () => other.show(session, result, context));
    } else if (form === "text") {
      if (result) alignment.show(result.prediction, String(result.prediction.answer ?? result.prediction.candidates?.[0]?.text ?? ""), session.text === result.text);
      else alignment.clear();
      if (result) words.classList.toggle("is-code", session.values.format === "html");
    } else if (streamed) {
      show(words, [streamed.prompt, streamed.text, streamed.state], () => [el("span", { class: "faint" }, streamed.prompt), streamed.text, streamed.state === "running" ? el("span", { class: "play-caret", "aria-hidden": "true" }) : null]);
    }
    output.classList.toggle("is-old", result !== null && result.text !== session.text && form !== "continuation");
    output.setAttribute("aria-busy", String(session.isBusy));
  }

  /** The text that "Copy" copies. */
  function copied() {
    const { result, streamed } = session;
    if (form === "continuation") return (streamed?.prompt ?? "") + (streamed?.text ?? "");
    if (!result) return "";
    return other ? other.copied(session, result) : String(result.prediction.answer ?? "");
  }

  function showActs() {
    const { result, streamed } = session;
    const hasText = result !== null || Boolean(streamed?.text);
    show(acts, [hasText, result !== null, streamed?.state], () => [
      hasText ? button(t("play_copy"), () => void copy(copied(), context), { class: "plain" }) : null,
      result ? button(t("play_copy_json"), () => void copy(JSON.stringify(session.result?.prediction, null, 2), context), { class: "plain" }) : null,
      streamed && streamed.state !== "running" && streamed.text ? button(t("play_continue"), () => session.type(streamed.prompt + streamed.text), { class: "plain" }) : null,
      streamed?.state === "stopped" ? el("span", { class: "faint", role: "status" }, t("play_stopped")) : null,
    ]);
    const first = result?.first ? ` · ${t("play_first", { time: duration(result.first, context) })}` : "";
    setText(latency, result ? duration(result.milliseconds, context) + first : "");
    show(notes, [result], () => {
      if (!result) return [];
      const { candidates = [] } = result.prediction;
      return [...remarks(result.prediction, context), form === "text" && candidates.length > 1 ? candidateTable(candidates, context) : null];
    });
  }

  return {
    root,
    update() {
      working.classList.toggle("active", session.isBusy);
      working.setAttribute("aria-hidden", String(!session.isBusy));
      showProblem();
      showResult();
      showActs();
    },
  };
}

/** The request as a command line. @param {Session} session @param {PlayContext} context @returns {Part} */
function curlPart(session, context) {
  const { t } = context;
  const code = el("code", {});
  const key = el("span", { class: "hint" });
  const fold = folded("play_curl", false, context,
    el("p", { class: "hint" }, t("play_curl_hint"), " ", key), el("pre", { class: "play-code", tabindex: 0 }, code),
    el("p", {}, button(t("play_copy"), () => void copy(code.textContent ?? "", context), { class: "plain", "data-key": "copy curl" })));
  return {
    root: fold.root,
    update() {
      const body = bodyOf(session);
      setText(code, curlOf(address("v1/predict"), isLive(session.bundle) ? body : { ...body, stream: true }, context.hasKey()));
      setText(key, context.hasKey() ? t("play_curl_key") : "");
    },
  };
}

// ---------------------------------------------------------------- texts to try

/** @type {Record<AnswerForm, Record<string, readonly string[]>>} */
const EXAMPLES = {
  text: {
    en: ["The teacher did not buy the red book.", "Two cats are sleeping in the garden.", "Who is reading the book?"],
    zh: ["那位教师没有买那本红色的书。", "两只猫正在花园里睡觉。", "谁正在读那本书？"],
    de: ["Der Lehrer hat das rote Buch nicht gekauft.", "Zwei Katzen schlafen im Garten.", "Wer liest das Buch?"],
    fr: ["Le professeur n’a pas acheté le livre rouge.", "Deux chats dorment dans le jardin.", "Qui lit le livre ?"],
  },
  labels: {
    en: ["The food was delicious, but the service was far too slow.", "What a wonderful film! I would watch it again."],
    zh: ["这家餐厅的菜很好吃，但是服务太慢了。", "这部电影真好看，我还想再看一遍。"],
    de: ["Das Essen war köstlich, aber die Bedienung viel zu langsam.", "Was für ein wunderbarer Film!"],
    fr: ["Le repas était délicieux, mais le service bien trop lent.", "Quel film magnifique !"],
  },
  spans: {
    en: ["Anna Weber met Daniel in Paris on Monday.", "Tom Baker works for Siemens in Berlin."],
    zh: ["王小明星期一在北京见到了李娜。", "张伟在上海的华为公司工作。"],
    de: ["Anna Weber traf Daniel am Montag in Paris.", "Tom Baker arbeitet für Siemens in Berlin."],
    fr: ["Anna Weber a rencontré Daniel à Paris lundi.", "Tom Baker travaille pour Siemens à Berlin."],
  },
  continuation: {
    en: ["This morning Nina lost her phone at the", "Last Sunday Anna lost her key in the park."],
    zh: ["上个星期天安娜在公园里", "今天早上，老邻居"],
    de: ["Letzten Sonntag hat Anna ihren Schlüssel", "Heute Morgen hat Nina"],
    fr: ["Dimanche dernier, Anna a perdu sa clé", "Ce matin, Nina"],
  },
  masks: {
    en: ["Two cats are [MASK] in the garden.", "The teacher bought a [MASK] [MASK]."],
    zh: ["两只猫正在[MASK]里睡觉。", "老师买了一本[MASK]色的[MASK]。"],
    de: ["Zwei Katzen [MASK] im Garten.", "Der Lehrer hat ein [MASK] Buch gekauft."],
    fr: ["Deux chats [MASK] dans le jardin.", "Le professeur a acheté un [MASK] rouge."],
  },
  vector: {
    en: ["Two cats are sleeping in the garden.", "How do I reset my password?"],
    zh: ["两只猫在花园里睡觉。", "怎样重置密码？"],
    de: ["Zwei Katzen schlafen im Garten.", "Wie setze ich mein Passwort zurück?"],
    fr: ["Deux chats dorment dans le jardin.", "Comment réinitialiser mon mot de passe ?"],
  },
};

/** Examples in the language that the bundle reads, or in two if it is not known. @param {Bundle} bundle @returns {readonly string[]} */
export function examplesOf({ answer_form: form, languages, examples }) {
  if (examples?.length) return examples;
  const table = EXAMPLES[form];
  const read = !languages.length ? ["en", "zh"] : form === "text" ? languages.slice(0, 1) : languages;
  const known = read.map((code) => code.toLowerCase().split(/[-_]/)[0]).filter((code) => code in table);
  return known.flatMap((code) => (known.length > 1 ? table[code].slice(0, 1) : table[code]));
}
