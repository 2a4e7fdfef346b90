// What the whole validation set loses without one head.
/** @import { Context, HeadEffect } from "./types.js" */
import { button, progressBar, show } from "./controls.js";
import { asProblem, el } from "./dom.js";
import { drawInterval, fixed, signed } from "./figures.js";
import { parseHead } from "./head_names.js";

const POLL = 1000; // milliseconds

/** @type {Map<string, HeadEffect>} finished measurements, by bundle and head */
const measured = new Map();

/** @param {HTMLElement} root @param {Context} context */
export function headEffect(root, context) {
  const { store, t } = context;
  /** @type {HeadEffect | null} */
  let effect = null;
  let key = "";
  let failure = "";
  let isRunning = false;
  let isGone = false;
  let last = "";

  async function measure() {
    const mine = key;
    const { attention, number } = parseHead(last);
    const { bundle } = store.state;
    isRunning = true;
    failure = "";
    render();
    try {
      while (!isGone && key === mine) {
        const answer = await context.source.effect(bundle, attention, number);
        if (answer.state === "ready") measured.set(mine, answer);
        if (key !== mine || isGone) return;
        effect = answer;
        if (answer.state !== "running") break;
        render();
        await new Promise((resolve) => setTimeout(resolve, POLL));
      }
    } catch (thrown) {
      if (key !== mine) return;
      failure = asProblem(thrown).detail;
    }
    isRunning = false;
    render();
  }

  function build() {
    const title = el("h3", {}, t("effect_title"));
    if (failure) return [title, el("p", { class: "note-small" }, failure)];
    if (effect?.state === "ready") return [title, ...result(effect)];
    if (effect?.state === "failed") return [title, el("p", { class: "caution" }, effect.message ? context.pick(effect.message) : t("effect_failed"))];
    if (isRunning) {
      return [title, el("p", { class: "note-small", role: "status" }, effect?.message ? context.pick(effect.message) : t("effect_running")), progressBar(t("effect_running"), effect?.done ?? null)];
    }
    if (!context.data.info.is_live) return [title, el("p", { class: "note-small" }, t("not_in_file"))];
    return [title, el("p", { class: "note-small" }, t("effect_why")), button(t("effect_measure"), () => void measure(), { class: "quiet" })];
  }

  /** @param {HeadEffect} found */
  function result({ metric, baseline, change, low, high, n_rows }) {
    const isClear = low > 0 || high < 0;
    const room = Math.max(Math.abs(low), Math.abs(high)) * 1.15 || 1;
    return [
      el("p", { class: "effect-number" }, el("b", {}, signed(change)), ` ${metric}`, el("span", { class: "faint" }, ` [${signed(low)}, ${signed(high)}]`)),
      el("div", { class: "effect-interval" }, drawInterval({ value: change, low, high }, { low: -room, high: room }, [{ at: 0, kind: "zero" }])),
      el("p", { class: isClear ? "effect-verdict" : "effect-verdict is-unclear" }, t(isClear ? (change < 0 ? "effect_lower" : "effect_higher") : "effect_unclear")),
      el("p", { class: "note-small" }, t("effect_facts", { metric, baseline: fixed(baseline), rows: n_rows.toLocaleString("en-US") })),
    ];
  }

  function render() {
    show(root, [key, effect, failure, isRunning, store.state.lang], build);
  }

  return {
    /** @param {string} name */
    update(name) {
      const now = `${store.state.bundle} ${name}`;
      if (now !== key) {
        key = now;
        last = name;
        effect = measured.get(now) ?? null;
        failure = "";
        isRunning = false;
      }
      render();
    },
    destroy() { isGone = true; },
  };
}
