// One step of generation: what was written so far, and the distribution of the next token.
/** @import { Share } from "./bar_list.js" */
/** @import { Context, Output } from "./types.js" */
import { probabilityTable } from "./bar_list.js";
import { unionOfChoices, visibleText, withRest } from "./compared_shares.js";
import { button, show } from "./controls.js";
import { el, setText } from "./dom.js";

/** The token the model was least sure of. @param {Output} output */
export function leastCertain(output) {
  let least = 0;
  output.tokens.forEach((token, k) => { if (token.probability < output.tokens[least].probability) least = k; });
  return least;
}

/** The id of a written token, which its alternatives know. @param {Output["tokens"][number]} token @param {Output["tokens"][number] | null} other the same token without some heads */
function chosenId(token, other) {
  const find = (/** @type {Output["tokens"][number] | null} */ one) => one?.alternatives.find(({ text, probability }) =>
    text.trim() === one.text.trim() && Math.abs(probability - one.probability) < 1e-6)?.id;
  return find(token) ?? find(other);
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
    if (at === null && pointed === null) return t("steps_least", { token: visibleText(output.tokens[k].text) });
    return t("steps_title", { number: k + 1, count: output.tokens.length });
  }

  /** @param {Output} output @param {Output | null} forced @param {number} k */
  function shares(output, forced, k) {
    const token = output.tokens[k];
    const other = forced?.tokens[k] ?? null;
    const id = chosenId(token, other);
    /** @type {Share} */
    const written = { text: visibleText(token.text), value: token.probability, without: other?.probability ?? null, isChosen: true };
    /** @type {Share[]} */
    const rows = unionOfChoices(token.alternatives, other?.alternatives ?? null).filter((row) => row.id !== id);
    return withRest([written, ...rows].sort((a, b) => Number(a.isValueLimit ?? false) - Number(b.isValueLimit ?? false)
      || (a.isValueLimit ? (b.without ?? 0) - (a.without ?? 0) : b.value - a.value)), t("steps_rest"));
  }
  return { root, update };
}
