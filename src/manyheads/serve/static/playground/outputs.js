// What is shown of a prediction, by the form of the answer.
/** @import { AnswerForm } from "../shared/types.js" */
/** @import { Candidate, Entity, PlayContext, Prediction, Result, Session } from "./playground_types.js" */
import { changedParts, cutText } from "../shared/changed_words.js";
import { button } from "../shared/controls.js";
import { el } from "../shared/dom.js";
import { decimal, percent } from "../shared/figures.js";
import { MASK } from "./request.js";

const LOW = 0.05; // confidence below which the library flags a translation
const HIGH = 0.5;
const N_STYLES = 6; // of entities
const N_UNSEEN = 8;
const N_INTENTS = 3;
/** @type {WeakMap<Session, string[]>} labels in the order of their styles */
const styled = new WeakMap();
const KNOWN_WARNINGS = new Set(["repetition", "length", "short"]);

/** Confidence and warnings in words. @param {Prediction} prediction @param {PlayContext} context @returns {HTMLElement[]} */
export function remarks(prediction, { t, lang }) {
  const joined = (/** @type {string[]} */ words) => words.map((word) => `“${word}”`).join(lang() === "zh" ? "、" : ", ");
  const warn = (/** @type {string} */ text) => el("p", { class: "play-warning" }, text);
  const { confidence = null, warnings = [], missing = [], unseen_words: unseen = [], candidates = [] } = prediction;
  /** @type {HTMLElement[]} */
  const found = [];
  if (prediction.abstained) found.push(warn(t("play_abstained")));
  if (confidence !== null) {
    const level = confidence < LOW ? "low" : confidence < HIGH ? "medium" : "high";
    const text = t(`play_confidence_${level}`, { share: percent(confidence) });
    found.push(level === "low" ? warn(text) : el("p", { class: "hint" }, text));
  }
  for (const warning of warnings) {
    if (warning === "missing") found.push(warn(missing.length ? t("play_warning_missing", { list: joined(missing) }) : t("play_warning_missing_some")));
    else found.push(warn(KNOWN_WARNINGS.has(warning) ? t(`play_warning_${warning}`) : t("play_warning_other", { name: warning })));
  }
  if (candidates[0]?.finished === false && !warnings.includes("repetition")) found.push(el("p", { class: "hint" }, t("play_cut_off")));
  if (unseen.length) found.push(el("p", { class: "hint" }, t("play_unseen", { list: joined(unseen.slice(0, N_UNSEEN)) + (unseen.length > N_UNSEEN ? " …" : "") })));
  return found;
}

/** The n-best list; words that the best candidate does not have are marked. @param {Candidate[]} candidates @param {PlayContext} context */
export function candidateTable(candidates, { t }) {
  const best = candidates[0].text;
  return el("table", { class: "play-candidates" },
    el("caption", {}, t("play_candidates")),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, t("play_candidate")), el("th", { scope: "col", class: "num" }, t("play_log_probability")), el("th", { scope: "col", class: "num", title: t("play_score_hint") }, t("play_score")))),
    el("tbody", {}, ...candidates.map((candidate, number) => el("tr", {},
      el("td", { dir: "auto" }, ...(number ? changedParts(candidate.text, best).map((part) => (part.isChanged && part.text.trim() ? el("mark", { class: "play-changed" }, part.text) : part.text)) : [candidate.text])),
      el("td", { class: "num" }, decimal(candidate.log_probability, 2)),
      el("td", { class: "num" }, decimal(candidate.score, 2))))));
}

/** @param {Session} session @param {Result} result @param {PlayContext} context @returns {HTMLElement[]} */
function labelsOutput(session, { prediction }, context) {
  const { t } = context;
  const shares = sorted(prediction.probabilities ?? {});
  const answer = prediction.labels ?? (prediction.label ? [prediction.label] : []);
  const threshold = Number(session.values.threshold ?? 0);
  const score = prediction.out_of_scope ?? null;
  const isOut = prediction.is_out_of_scope ?? (score !== null && score > 0.5);
  return [
    answer.length ? el("p", { class: "play-answer", dir: "auto" }, answer.join(" · ")) : el("p", { class: "play-warning" }, t("play_no_label")),
    ...(isOut && score !== null ? [el("p", { class: "play-warning" }, t("play_out_of_scope", { score: decimal(score, 2) }))] : []),
    bars(t("play_probabilities"), shares, { chosen: answer, threshold }, context),
    ...(!isOut && score !== null ? [el("p", { class: "hint" }, t("play_in_scope", { score: decimal(score, 2) }))] : []),
  ];
}

/** @param {Record<string, number>} probabilities @returns {[string, number][]} */
const sorted = (probabilities) => Object.entries(probabilities).sort((one, other) => other[1] - one[1]);

/** The text with its entities: each with its label in words; color and line style only help. @param {Session} session @param {Result} result @param {PlayContext} context */
function spansOutput(session, { text, prediction }, context) {
  const { t } = context;
  const spans = prediction.spans ?? [];
  const known = styled.get(session) ?? [...session.bundle.labels];
  styled.set(session, known); // a label keeps its style from text to text
  const labels = [...new Set(spans.map((span) => span.label))];
  known.push(...labels.filter((label) => !known.includes(label)));
  const style = (/** @type {string} */ label) => `play-entity play-style-${known.indexOf(label) % N_STYLES}`;
  const intents = sorted(prediction.probabilities ?? {});
  return [
    ...(prediction.label ? [el("p", { class: "play-intent", dir: "auto" }, t("play_intent", { label: prediction.label }))] : []),
    el("p", { class: "play-answer play-entities", dir: "auto" }, ...cutText(text, spans.map((span) => [span.start, span.end])).map((piece) => {
      const span = piece.spans.length ? spans[piece.spans[0]] : null;
      return span ? entity(piece.text, span, style(span.label)) : piece.text;
    })),
    spans.length ? el("ul", { class: "play-legend", "aria-label": t("play_legend") }, ...labels.map((label) => {
      const count = spans.filter((span) => span.label === label).length;
      return el("li", {}, el("span", { class: style(label), "aria-hidden": "true" }, "Aa"), ` ${label} · ${count}`);
    })) : el("p", { class: "hint" }, t("play_no_entities")),
    ...(intents.length ? [el("p", { class: "hint" }, t("play_intents")), bars(t("play_intents"), intents, { chosen: [prediction.label ?? ""], limit: N_INTENTS }, context)] : []),
  ];
}

/** @param {string} text @param {Entity} span @param {string} style */
function entity(text, span, style) {
  const share = span.probability === null ? "" : ` ${percent(span.probability)}`;
  return el("mark", { class: style }, text, el("span", { class: "play-label" }, span.label + share));
}

/** The text with the chosen guesses. @param {string} text @param {Prediction} prediction @param {readonly number[]} chosen */
function filledText(text, prediction, chosen) {
  return text.split(MASK).map((part, i, parts) => (i === parts.length - 1 ? part : part + guessText(prediction, chosen, i, part))).join("");
}

/** A token includes the space before it; where the text has that space, it is not written twice. @param {Prediction} prediction @param {readonly number[]} chosen @param {number} mask @param {string} before */
function guessText(prediction, chosen, mask, before) {
  const text = prediction.gaps?.[mask]?.[chosen[mask] ?? 0]?.text ?? MASK;
  return before === "" || /\s$/.test(before) ? text.trimStart() : text;
}

/** @param {Session} session @param {Result} result @param {PlayContext} context */
function masksOutput(session, { text, prediction }, { t }) {
  const gaps = prediction.gaps ?? [];
  const parts = text.split(MASK);
  const shownGuess = (/** @type {string} */ guess) => guess.trim() || "␣";
  return [
    el("p", { class: "play-answer", dir: "auto" }, ...parts.flatMap((part, i) => {
      if (i === parts.length - 1) return [part];
      const filled = guessText(prediction, session.chosen, i, part);
      const space = filled.length - filled.trimStart().length;
      return [part + filled.slice(0, space), el("mark", { class: "play-filled" }, filled.slice(space) || "␣")];
    })),
    ...gaps.map((guesses, mask) => el("div", { class: "play-guesses", role: "group", "aria-label": t("play_guesses", { n: mask + 1 }) },
      el("p", { class: "hint" }, t("play_guesses", { n: mask + 1 })),
      ...guesses.map((guess, number) => {
        const node = button(shownGuess(guess.text), () => session.choose(mask, number), {
          class: "play-guess", "data-key": `guess ${mask} ${number}`, "aria-pressed": String((session.chosen[mask] ?? 0) === number),
          "aria-label": t("play_guess", { text: shownGuess(guess.text), share: percent(guess.probability) }),
        });
        node.append(el("span", { class: "play-bar-number" }, percent(guess.probability)));
        node.style.setProperty("--share", String(guess.probability));
        return node;
      }))),
  ];
}

const N_NUMBERS = 8;

/** The beginning of a vector. @param {Session} _ @param {Result} result @param {PlayContext} context */
function vectorOutput(_, { prediction }, { t }) {
  const numbers = numbersOf(prediction);
  return [
    el("p", { class: "play-answer" }, el("code", {}, `${numbers.slice(0, N_NUMBERS).map((x) => x.toFixed(3)).join(", ")}, …`)),
    el("p", { class: "hint" }, t("play_vector", { n: numbers.length })),
  ];
}

/** @param {Prediction} prediction @returns {number[]} */
const numbersOf = ({ answer }) => (Array.isArray(answer) ? answer : []);

/**
 * Answers that are no running text: what is shown of them, and the text that "Copy" copies.
 * @typedef {{ show: (session: Session, result: Result, context: PlayContext) => HTMLElement[], copied: (session: Session, result: Result) => string }} Output
 * @type {Partial<Record<AnswerForm, Output>>}
 */
export const OUTPUTS = {
  labels: { show: labelsOutput, copied: (_, { prediction }) => (prediction.labels ?? [prediction.label ?? ""]).join(" | ") },
  spans: { show: spansOutput, copied: (_, { prediction }) => (prediction.spans ?? []).map((span) => `${span.text}\t${span.label}`).join("\n") },
  vector: { show: vectorOutput, copied: (_, { prediction }) => JSON.stringify(numbersOf(prediction)) },
  masks: { show: masksOutput, copied: (session, { text, prediction }) => filledText(text, prediction, session.chosen) },
};

// ---------------------------------------------------------------- bars of probabilities

const N_SHOWN = 10;

/**
 * @param {string} label @param {[string, number][]} shares the likeliest first @param {{ chosen: readonly string[], threshold?: number, limit?: number }} options
 * @param {PlayContext} context @returns {HTMLElement}
 */
function bars(label, shares, { chosen, threshold = 0, limit = N_SHOWN }, { t }) {
  const list = el("ul", { class: "play-bars", "aria-label": label });
  const more = el("p", {});
  let isAll = false;
  draw();
  return el("div", { class: "play-bars-box" }, list, shares.length > limit ? more : null,
    threshold > 0 ? el("p", { class: "hint" }, el("span", { class: "play-mark", "aria-hidden": "true" }), t("play_threshold_at", { share: percent(threshold) })) : null);

  function draw() {
    list.replaceChildren(...shares.slice(0, isAll ? undefined : limit).map(([name, share]) => {
      const track = el("span", { class: threshold > 0 ? "play-track has-threshold" : "play-track", "aria-hidden": "true" }, el("span", { class: "play-share" }));
      track.style.setProperty("--share", String(Math.min(1, Math.max(0, share))));
      track.style.setProperty("--threshold", String(threshold));
      return el("li", { class: chosen.includes(name) ? "is-chosen" : null }, el("span", { class: "play-bar-name", dir: "auto", title: name }, name), track, el("span", { class: "play-bar-number" }, percent(share)));
    }));
    const text = isAll ? t("play_show_few") : t("play_show_all", { n: shares.length });
    more.replaceChildren(button(text, () => { isAll = !isAll; draw(); more.querySelector("button")?.focus(); }, { class: "plain", "aria-expanded": String(isAll) }));
  }
}
