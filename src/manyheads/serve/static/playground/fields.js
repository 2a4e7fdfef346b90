// Fields of the options, copy buttons and folded parts of the page.
/** @import { PlayContext, Session, Value } from "./playground_types.js" */
/** @import { Setting } from "./request.js" */
import { button, show } from "../shared/controls.js";
import { el } from "../shared/dom.js";
import { decimal } from "../shared/figures.js";
import { SETTINGS, valuesOf } from "./request.js";

const OPEN = new Set(["labels", "continuation"]); // answers whose settings are unfolded at first

/** Copies a text, also where the browser has no clipboard for pages without TLS. @param {string} text @param {PlayContext} context */
export async function copy(text, { t, announce }) {
  let isCopied = false;
  try {
    await navigator.clipboard.writeText(text);
    isCopied = true;
  } catch {
    const active = document.activeElement;
    const box = el("textarea", { class: "unseen", "aria-hidden": "true" });
    box.value = text;
    document.body.append(box);
    box.select();
    try { isCopied = document.execCommand("copy"); } catch { /* not allowed */ }
    box.remove();
    if (active instanceof HTMLElement) active.focus({ preventScroll: true });
  }
  announce(t(isCopied ? "play_copied" : "play_not_copied"));
}

/** @type {Map<string, boolean>} parts that the user folded or unfolded: another language or theme leaves them so */
const folds = new Map();

/** A part of the page that can be folded. @param {string} key of its name @param {boolean} isOpen @param {PlayContext} context @param {...(Node | string | null)} children */
export function folded(key, isOpen, { t }, ...children) {
  const summary = el("summary", {}, t(key));
  const root = el("details", { class: "play-fold", open: folds.get(key) ?? isOpen }, summary, el("div", { class: "play-fold-body" }, ...children));
  summary.addEventListener("click", () => folds.set(key, !root.open)); // before it changes
  return { root, summary };
}

/** "35 ms" or "1.2 s". @param {number} milliseconds @param {PlayContext} context */
export function duration(milliseconds, { t }) {
  return milliseconds < 1000 ? t("play_milliseconds", { n: Math.max(1, Math.round(milliseconds)) }) : t("play_seconds", { n: (milliseconds / 1000).toFixed(1) });
}

/**
 * The settings of a bundle; null if it has none.
 * @param {Session} session @param {PlayContext} context
 */
export function optionsPart(session, context) {
  const { t } = context;
  const settings = SETTINGS[session.bundle.answer_form];
  if (!settings.length) return null;
  const body = el("div", { class: "play-fields" });
  const reset = el("p", {});
  const fold = folded("play_options", OPEN.has(session.bundle.answer_form), context, body, reset);
  /** @type {Map<string, HTMLElement>} */
  const fields = new Map(settings.map((setting) => [setting.name, field(setting, session, context)]));
  body.append(...fields.values());
  return {
    root: fold.root,
    update() {
      const all = valuesOf(session);
      for (const { name, isUsed = () => true } of settings) {
        const node = fields.get(name);
        if (node) node.hidden = !isUsed(all);
      }
      const isChanged = settings.some(({ name }) => name in session.values);
      show(reset, [isChanged], () => (isChanged ? [button(t("play_reset"), () => {
        for (const { name } of settings) session.setValue(name, undefined);
        body.replaceChildren(...settings.map((setting) => {
          const node = field(setting, session, context);
          fields.set(setting.name, node);
          return node;
        }));
        fold.summary.focus();
        this.update();
      }, { class: "plain" })] : []));
    },
  };
}

/** @param {Setting} setting @param {Session} session @param {PlayContext} context @returns {HTMLElement} */
function field(setting, session, context) {
  const { t } = context;
  const { name, kind } = setting;
  const id = `play-${name}`;
  const usual = setting.usual(session.bundle);
  const value = session.values[name] ?? usual;
  const label = el("label", { for: id }, t(`play_set_${name}`));
  const save = (/** @type {Value | undefined} */ next) => session.setValue(name, next === usual ? undefined : next);
  if (kind === "choice") {
    const select = el("select", { id, onchange: () => save(select.value) },
      ...(setting.choices ?? []).map((choice) => el("option", { value: choice, selected: choice === value }, t(`play_${name}_${choice}`))));
    return el("div", { class: "play-field" }, label, select);
  }
  if (kind === "check") {
    const input = el("input", { id, type: "checkbox", checked: value === true, onchange: () => save(input.checked) });
    return el("div", { class: "play-field is-check" }, input, label);
  }
  if (kind === "range") {
    const output = el("output", { for: id }, decimal(Number(value), 2));
    const input = el("input", { id, type: "range", min: setting.min, max: setting.max, step: setting.step, value: Number(value), oninput: () => {
      output.textContent = decimal(input.valueAsNumber, 2);
      save(input.valueAsNumber);
    } });
    return el("div", { class: "play-field is-range" }, label, input, output);
  }
  const isNumber = kind === "number";
  const input = el("input", {
    id, type: isNumber ? "number" : "text", min: setting.min, max: setting.max, step: setting.step === 1 ? 1 : "any", inputmode: isNumber ? "decimal" : null,
    value: value === null ? "" : String(value), placeholder: isNumber && usual === null ? t(setting.isOff ? "play_off" : "play_default") : null, dir: "auto", autocomplete: "off",
    oninput: () => save(isNumber ? numberOf(input) : input.value),
  });
  const isSeed = name === "seed";
  const draw = isSeed ? button(t("play_new_seed"), () => {
    input.value = String(Math.floor(Math.random() * 1_000_000));
    save(Number(input.value));
  }, { class: "plain" }) : null;
  return el("div", { class: kind === "text" ? "play-field is-text" : "play-field" }, label, input, draw);
}

/** An empty field is not set; what is no number is NaN, which is reported. @param {HTMLInputElement} input */
function numberOf(input) {
  return input.value === "" && !input.validity.badInput ? undefined : input.valueAsNumber;
}
