// The evidence for a head's role: statistics with intervals, baselines and random controls.
/** @import { Context, SurveyHead, Translate } from "./types.js" */
import { el } from "./dom.js";
import { drawInterval, fixed } from "./figures.js";

const DESCRIBED = ["alignment", "antecedent", "previous-token", "next-token", "attention-sink", "eos", "punctuation", "duplicate-token", "induction", "rare-word", "positional", "unknown"];

const STANDS_OUT = 0.05; // above the baseline and the random model

/** What the role means, in one sentence. @param {SurveyHead} head @param {Translate} t */
export function roleSentence(head, t) {
  const [family, offset] = head.role.split(" ");
  if (/[<>]$/.test(head.role)) return t(head.role.endsWith(">") ? "role_to_head" : "role_to_dependent", { relation: head.role.slice(0, -1) });
  return DESCRIBED.includes(family) ? t(`role_${family.replaceAll("-", "_")}`, { offset: (offset ?? "").replace("-", "−") }) : "";
}

/**
 * The statistic of a head without a role that stands out most against its baseline and a random model, if one does.
 * @param {SurveyHead} head
 */
export function closestRole(head) {
  if (head.role !== "unknown") return null;
  const margin = (/** @type {SurveyHead["evidence"][number]} */ one) => one.value - Math.max(one.baseline, Number.isFinite(one.control) ? one.control : -Infinity);
  const best = head.evidence.filter((one) => margin(one) >= STANDS_OUT).sort((a, b) => margin(b) - margin(a))[0];
  if (!best) return null;
  return { names: { en: best.names.en.replace(/: correct$/, ""), zh: best.names.zh.replace(/：正确率$/, "") }, n: best.n };
}

/** What a baseline is, in words. @param {string} name @param {Translate} t */
function baselineName(name, t) {
  const offset = /^offset([+-]?\d+)$/.exec(name);
  if (offset) return t("baseline_offset", { offset: offset[1].replace("-", "−") });
  return name === "uniform" || name === "diagonal" ? t(`baseline_${name}`) : name;
}

/** @param {SurveyHead} head @param {Context} context */
export function evidenceTable(head, context) {
  const { t } = context;
  if (head.evidence.length === 0) return [];
  const decisive = new Set(head.roles.map((role) => role.statistic));
  const first = head.evidence.filter((one) => decisive.has(one.id));
  const rest = head.evidence.filter((one) => !decisive.has(one.id));
  const legend = el("p", { class: "note-small evidence-legend" },
    ...(/** @type {const} */ (["value", "baseline", "control"])).map((kind) => el("span", {}, key(kind), t(`evidence_${kind}`))));
  const shown = first.length ? first : rest.slice(0, 4);
  const hidden = first.length ? rest : rest.slice(4);
  return [
    table(shown, context), legend,
    hidden.length ? el("details", {}, el("summary", {}, t("evidence_all", { count: hidden.length })), table(hidden, context)) : null,
  ];
}

/** @param {"value" | "baseline" | "control"} kind */
function key(kind) {
  return el("span", { class: `evidence-key is-${kind}`, "aria-hidden": "true" });
}

/** @param {SurveyHead["evidence"]} rows @param {Context} context */
function table(rows, { t, pick }) {
  return el("div", { class: "evidence-scroll" }, el("table", { class: "evidence" },
    el("thead", {}, el("tr", {}, ...["statistic", "number", "interval", "picture", "baseline_column", "control_column", "cases"].map((name) => (name === "picture"
      ? el("td", { class: "picture" })
      : el("th", { scope: "col", class: name === "statistic" || name === "baseline_column" ? name : "num" }, t(`evidence_${name}`)))))),
    el("tbody", {}, ...rows.map((row) => {
      const inUnit = [row.value, row.low, row.high, row.baseline, row.control].every((value) => value >= 0 && value <= 1);
      const all = [row.low, row.high, row.baseline, row.control].filter(Number.isFinite);
      const range = inUnit ? { low: 0, high: 1 } : { low: Math.min(0, ...all), high: Math.max(...all) };
      return el("tr", {},
        el("th", { scope: "row" }, pick(row.names)),
        el("td", { class: "num" }, el("b", {}, fixed(row.value))),
        el("td", { class: "num faint" }, `[${fixed(row.low)}, ${fixed(row.high)}]`),
        el("td", { class: "picture" }, drawInterval(row, range, [{ at: row.baseline, kind: "baseline" }, { at: row.control, kind: "control" }])),
        el("td", { class: "baseline_column", "data-label": t("evidence_baseline_column") }, fixed(row.baseline), el("span", { class: "faint" }, ` ${baselineName(row.baseline_by, t)}`)),
        el("td", { class: "num", "data-label": t("evidence_control_column") }, fixed(row.control)),
        el("td", { class: "num faint", "data-label": t("evidence_cases") }, row.n.toLocaleString("en-US")));
    }))));
}
