// The glossary editor: rows of source and target terms, TSV files, and the terms that are not translated.
/** @import { Part, PlayContext, Session, Term } from "./playground_types.js" */
import { button, show } from "../shared/controls.js";
import { el, setText } from "../shared/dom.js";
import { folded } from "./fields.js";
import { glossaryOf } from "./request.js";

/**
 * The rows of a TSV file: source, tab, target; further columns are ignored.
 * @param {string} content @returns {{ terms: Term[], wrongLine: number }} `wrongLine`: the first without a tab; 0: none
 */
export function parseTsv(content) {
  const lines = content.replace(/^\ufeff/, "").split(/\r\n|\r|\n/).map((line) => (line.startsWith("#") ? "" : line));
  const wrongLine = 1 + lines.findIndex((line) => line.trim() !== "" && !line.includes("\t"));
  const terms = lines.filter((line) => line.includes("\t")).map((line) => {
    const [source, target] = line.split("\t");
    return { source: source.trim(), target: target.trim() };
  });
  return { terms: terms.filter(({ source, target }) => source && target), wrongLine };
}

/** @param {Term[]} terms */
export function writeTsv(terms) {
  const clean = (/** @type {string} */ text) => text.trim().replace(/[\t\r\n]+/g, " ");
  return terms.map(({ source, target }) => [clean(source), clean(target)]).filter(([source, target]) => source && target)
    .map((row) => row.join("\t") + "\n").join("");
}

/** @param {Session} session @param {PlayContext} context @returns {Part} */
export function glossaryPart(session, context) {
  const { t, announce } = context;
  const rows = el("div", { class: "play-terms" });
  const twice = el("p", { class: "caution", role: "status", hidden: true });
  const failed = el("p", { class: "caution", role: "alert", hidden: true });
  const use = el("input", { id: "play-use-glossary", type: "checkbox", checked: session.values.glossary !== false, onchange: () => session.setValue("glossary", use.checked ? undefined : false) });
  const file = el("input", { id: "play-import", type: "file", class: "unseen", accept: ".tsv,.txt,text/tab-separated-values,text/plain", tabindex: -1, "aria-hidden": "true", onchange: () => void importFile() });
  const acts = el("p", { class: "play-acts" },
    button(t("play_term_add"), () => { session.setTerms([...session.terms, { source: "", target: "" }]); focusRow(session.terms.length - 1); }, { class: "plain" }),
    button(t("play_import"), () => file.click(), { class: "plain" }), file, button(t("play_export"), exportFile, { class: "plain" }));
  const keep = el("textarea", { id: "play-keep", rows: 2, dir: "auto", spellcheck: "false", oninput: () => session.setValue("keep", keep.value || undefined) });
  keep.value = String(session.values.keep ?? "");
  const isOpen = session.terms.length > 0 || keep.value !== "";
  const fold = folded("play_glossary", isOpen, context,
    el("div", { class: "play-glossary" },
      el("div", {}, el("p", { class: "hint" }, t("play_glossary_hint")), rows, twice, failed, acts,
        el("p", { class: "play-field is-check" }, use, el("label", { for: "play-use-glossary" }, t("play_glossary_use")))),
      el("div", { class: "play-keep" }, el("label", { for: "play-keep" }, t("play_keep")), el("p", { class: "hint" }, t("play_keep_hint")), keep)));

  /** @param {number} number */
  function focusRow(number) {
    update();
    const input = rows.children[number]?.querySelector("input");
    (input ?? acts.querySelector("button"))?.focus();
  }

  async function importFile() {
    const chosen = file.files?.[0];
    file.value = "";
    if (!chosen) return;
    failed.hidden = true;
    const refuse = (/** @type {string} */ key, /** @type {number} */ n = 0) => {
      failed.hidden = false;
      setText(failed, t(key, { file: chosen.name, n }));
    };
    /** @type {string} */
    let content;
    try {
      content = new TextDecoder("utf-8", { fatal: true }).decode(await chosen.arrayBuffer());
    } catch {
      refuse("play_not_read");
      return;
    }
    const { terms, wrongLine } = parseTsv(content);
    if (wrongLine) refuse("play_not_tsv", wrongLine);
    else if (!terms.length) refuse("play_empty_tsv");
    else {
      const own = new Set(terms.map(({ source }) => source)); // an imported term replaces the one of the same source
      session.setTerms([...session.terms.filter((term) => term.source.trim() && !own.has(term.source.trim())), ...terms]);
      announce(t("play_imported", { n: terms.length }));
    }
  }

  function exportFile() {
    const url = URL.createObjectURL(new Blob([writeTsv(session.terms)], { type: "text/tab-separated-values" }));
    el("a", { href: url, download: "glossary.tsv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  /** @param {number} number */
  function row(number) {
    const input = (/** @type {"source" | "target"} */ side) => {
      const node = el("input", { type: "text", dir: "auto", autocomplete: "off", spellcheck: "false", "data-key": `${side} ${number}`, "aria-label": t(`play_term_${side}_n`, { n: number + 1 }), oninput: () => {
        session.setTerms(session.terms.map((term, i) => (i === number ? { ...term, [side]: node.value } : term)));
      } });
      node.value = session.terms[number][side];
      return node;
    };
    return el("div", { class: "play-term" }, input("source"), el("span", { class: "faint", "aria-hidden": "true" }, "→"), input("target"),
      button("×", () => {
        session.setTerms(session.terms.filter((_, i) => i !== number));
        focusRow(Math.min(number, session.terms.length - 1));
      }, { class: "icon", "aria-label": t("play_term_remove", { n: number + 1 }), title: t("play_term_remove", { n: number + 1 }) }));
  }

  /** Rows are rebuilt only where something else than typing in them changed the terms. */
  function isShown() {
    const shown = [...rows.querySelectorAll("input")].map((input) => input.value);
    return shown.length === 2 * session.terms.length && session.terms.every(({ source, target }, i) => shown[2 * i] === source && shown[2 * i + 1] === target);
  }
  let version = 0;

  function update() {
    const count = Object.keys(glossaryOf(session.terms)).length;
    setText(fold.summary, count ? t("play_glossary_count", { n: count }) : t("play_glossary"));
    if (!isShown()) version++;
    show(rows, [version], () => session.terms.map((_, number) => row(number)));
    const sources = session.terms.filter(({ source, target }) => source.trim() && target.trim()).map(({ source }) => source.trim());
    const double = sources.find((source, i) => sources.indexOf(source) !== i);
    twice.hidden = double === undefined;
    setText(twice, double === undefined ? "" : t("play_term_twice", { term: double }));
  }
  return { root: fold.root, update };
}
