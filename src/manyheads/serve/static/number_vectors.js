/** @import { Context, Trace, WalkRow } from "./types.js" */
// Vectors as numbers, in tables that open on demand.
import { decimal, el } from "./dom.js";
import { strip } from "./number_parts.js";

const DIGITS = 4;

/**
 * One line per dimension, one column per vector.
 * @param {Context} context @param {string} name @param {{ name: string, values: number[], total?: number }[]} columns a total: displayed terms add up to it
 * @param {number} [digits]
 */
function vectorTable({ t }, name, columns, digits = DIGITS) {
  const cell = (/** @type {number | undefined} */ value) => el("td", { class: "number", text: value === undefined ? "" : decimal(value, digits) });
  const head = el("tr", {}, ...["i", ...columns.map((column) => column.name)].map((text) => el("th", { scope: "col", class: "number", text })));
  const lines = (columns[0]?.values ?? []).map((_, i) => el("tr", {}, el("th", { scope: "row", class: "number", text: String(i) }), ...columns.map(({ values }) => cell(values[i]))));
  const hasTotal = columns.some((column) => column.total !== undefined);
  return el("div", { class: "wide tall", tabindex: 0, role: "region", "aria-label": name }, el("table", { class: "numbers narrow" }, el("thead", {}, head), el("tbody", {}, ...lines),
    hasTotal ? el("tfoot", {}, el("tr", {}, el("th", { scope: "row", text: t("n_sum") }), ...columns.map((column) => cell(column.total)))) : null));
}

/**
 * @param {Context} context @param {string} key stays the same when the page is drawn again @param {string} summary
 * @param {{ name: string, values: number[], total?: number }[]} columns @param {number} [digits]
 */
export function vectorDetails(context, key, summary, columns, digits) {
  return el("details", { "data-key": key }, el("summary", { text: summary }), vectorTable(context, summary, columns, digits));
}

/** What each head adds at this position, and the sum; the rows of the other heads are loaded when it is opened. @param {Context} context @param {Trace} trace @param {WalkRow} walk */
export function headSum(context, trace, walk) {
  const { t, load } = context;
  const content = el("div", {});
  let isAsked = false;
  async function open() {
    if (isAsked) return;
    isAsked = true;
    content.replaceChildren(el("p", { class: "hint", text: t("n_heads_wait") }));
    try {
      const rows = await Promise.all(walk.shares.map((_, head) => (head === walk.head ? walk : load.walk(trace, walk.attention, head, walk.query))));
      const sum = walk.contribution.map((_, i) => rows.reduce((total, row) => total + row.contribution[i], 0));
      const name = t("n_heads_sum");
      content.replaceChildren(
        el("p", { class: "hint", text: t("n_heads_norm", { norm: decimal(Math.hypot(...sum), 3), norms: decimal(walk.shares.reduce((total, x) => total + x, 0), 3) }) }),
        strip(sum, name), vectorTable(context, name, [...rows.map((row, head) => ({ name: t("n_head", { head }), values: row.contribution })), { name: "Σ", values: sum }]));
    } catch {
      content.replaceChildren(el("p", { class: "hint", text: t("not_in_file") }));
    }
  }
  const details = el("details", { "data-key": "heads", ontoggle: () => { if (details.open) void open(); } }, el("summary", { text: t("n_heads_sum") }), content);
  return details;
}
