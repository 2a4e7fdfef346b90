// One step of generation: what was written so far, and the distribution of the next token.
/** @import { Context, Output } from "./types.js" */
import { probabilityTable } from "./bar_list.js";
import { button, show } from "./controls.js";
import { el, setText } from "./dom.js";

/** The token the model was least sure of. @param {Output} output */
export function leastCertain(output) {
  let least = 0;
  output.tokens.forEach((token, k) => { if (token.probability < output.tokens[least].probability) least = k; });
  return least;
}

/**
 * @param {Context} context @param {{ move: (by: number) => void, leave: () => void }} acts
 */
export function stepPanel(context, acts) {
  const { t, store } = context;
  // The buttons stay while the reader points at tokens: a click must meet the button it was aimed at.
  const heading = el("h3");
  const buttons = el("div", { class: "steps-buttons" });
  const table = el("div");
  const root = el("div", { class: "steps" }, el("div", { class: "steps-top" }, heading, buttons), table);

  /** @param {Output} output @param {Output | null} forced @param {number | null} at a token @param {number | null} pointed a token */
  function update(output, forced, at, pointed) {
    root.hidden = output.tokens.length === 0;
    if (root.hidden) return;
    const k = Math.min(output.tokens.length - 1, pointed ?? at ?? leastCertain(output));
    setText(heading, title(output, k, at, pointed));
    show(buttons, [at, output.tokens.length, store.state.lang], () => [
      button("‹", () => acts.move(-1), { class: "quiet", "aria-label": t("steps_previous"), disabled: at === 0 }),
      button("›", () => acts.move(1), { class: "quiet", "aria-label": t("steps_next"), disabled: at === output.tokens.length - 1 }),
      at === null ? null : button(t("steps_leave"), acts.leave, { class: "quiet" }),
    ]);
    show(table, [output, forced, k, store.state.lang], () => [probabilityTable(t("steps_distribution"), shares(output, forced, k), t)]);
  }

  /** @param {Output} output @param {number} k @param {number | null} at @param {number | null} pointed */
  function title(output, k, at, pointed) {
    if (output.tokens.length === 1) return t("steps_next_token");
    if (at === null && pointed === null) return t("steps_least", { token: visible(output.tokens[k].text) });
    return t("steps_title", { number: k + 1, count: output.tokens.length });
  }

  /** @param {Output} output @param {Output | null} forced @param {number} k */
  function shares(output, forced, k) {
    const token = output.tokens[k];
    const other = forced?.tokens[k] ?? null;
    const isChosen = (/** @type {{ text: string, probability: number }} */ one) => one.text === token.text && Math.abs(one.probability - token.probability) < 1e-6;
    const rest = token.alternatives.filter((one) => !isChosen(one));
    const rows = [token, ...rest].map((one, i) => {
      const found = i === 0 ? other : other?.alternatives.find((candidate) => "id" in one && candidate.id === one.id);
      return { text: visible(one.text), value: one.probability, without: found?.probability ?? null, isChosen: i === 0 };
    }).sort((a, b) => b.value - a.value).slice(0, 8);
    const left = Math.max(0, 1 - rows.reduce((sum, row) => sum + row.value, 0));
    return left < 0.0005 ? rows : [...rows, { text: t("steps_rest"), value: left, without: null, isChosen: false, isFaint: true }];
  }

  /** @param {string} text */
  function visible(text) {
    return text.trim() || "␣";
  }
  return { root, update };
}
