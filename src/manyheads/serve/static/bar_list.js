// Lists of bars: probabilities with and without some heads, effects of heads.
/** @import { Translate } from "./types.js" */
import { el, percent } from "./dom.js";
import { points } from "./figures.js";

/**
 * A row: a probability with all heads, and without some. A limit is the value that the probability is below.
 * @typedef {{ text: string, value: number, without?: number | null, isChosen?: boolean, isFaint?: boolean, isValueLimit?: boolean, isWithoutLimit?: boolean, isComparable?: boolean }} Share
 */

/**
 * A table of probabilities.
 * @param {string} label @param {Share[]} shares @param {Translate} t
 */
export function probabilityTable(label, shares, t) {
  const hasWithout = shares.some((share) => share.without !== null && share.without !== undefined);
  const head = hasWithout
    ? el("thead", {}, el("tr", {}, el("th", {}, el("span", { class: "unseen" }, label)), el("th", { class: "num" }, t("answer_with")), el("th", { class: "num" }, t("answer_without_short")), el("th", { class: "num" }, t("answer_change")), el("td")))
    : null;
  const rows = shares.map((share) => {
    const { value, without = null, isValueLimit = false, isWithoutLimit = false, isComparable = true } = share;
    const hasChange = without !== null && isComparable && !isValueLimit && !isWithoutLimit;
    return el("tr", { class: [share.isChosen ? "is-chosen" : "", share.isFaint ? "is-faint" : ""].join(" ").trim() || null },
      el("th", { scope: "row", dir: "auto" }, share.text),
      el("td", { class: "num" }, limited(value, isValueLimit)),
      hasWithout ? el("td", { class: "num is-without" }, without === null ? "–" : limited(without, isWithoutLimit)) : null,
      hasWithout ? el("td", { class: "num faint" }, hasChange ? points(value, without) : "") : null,
      el("td", { class: "tracks", "aria-hidden": "true" }, track("is-with", isValueLimit ? 0 : value), without === null ? null : track("is-without", isWithoutLimit ? 0 : without)));
  });
  return el("table", { class: hasWithout ? "probabilities has-without" : "probabilities", "aria-label": label }, head, el("tbody", {}, ...rows));
}

/** @param {number} share @param {boolean} isLimit */
function limited(share, isLimit) {
  const text = percent(share);
  return isLimit && !text.startsWith("<") ? `<${text}` : text;
}

/** @param {string} kind @param {number} share */
function track(kind, share) {
  const node = el("div", { class: `track ${kind}` });
  node.style.setProperty("inline-size", `${100 * Math.min(1, Math.max(0, share))}%`);
  return node;
}

/**
 * Bars that grow from the middle: to the right what helps, to the left what hinders.
 * @param {string} label
 * @param {{ name: string, value: number, text: string, note?: string, isOff: boolean, act: () => void }[]} rows
 */
export function effectList(label, rows) {
  const largest = Math.max(1e-9, ...rows.map((row) => Math.abs(row.value)));
  return el("div", { class: "effects", role: "group", "aria-label": label }, ...rows.map((row) => {
    const fill = el("span", { class: row.value < 0 ? "effect-bar is-negative" : "effect-bar" });
    fill.style.setProperty("--share", String(Math.abs(row.value) / largest));
    return el("button", { type: "button", class: row.isOff ? "effect is-off" : "effect", "aria-pressed": String(row.isOff), "data-key": row.name, onclick: row.act },
      el("span", { class: "effect-name" }, row.name, row.note ? el("span", { class: "faint" }, ` ${row.note}`) : null),
      el("span", { class: "effect-picture", "aria-hidden": "true" }, fill), el("span", { class: "num" }, row.text));
  }));
}
