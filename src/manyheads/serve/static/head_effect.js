// What the whole validation set loses without one head.
/** @import { Context, HeadEffect } from "./types.js" */
import { button, progressBar, show } from "./controls.js";
import { asProblem, el } from "./dom.js";
import { drawInterval, fixed, signed } from "./figures.js";
import { parseHead } from "./head_names.js";

const POLL = 1000; // milliseconds

const STORED = "manyheads effect"; // the start of the keys of stored measurements

/** Keep a finished measurement for this session of the browser. @param {string} model @param {string} head @param {HeadEffect} effect */
function keep(model, head, effect) {
  try {
    sessionStorage.setItem([STORED, model, head, effect.n_rows].join("\n"), JSON.stringify(effect));
  } catch { /* no storage: it is measured again after a reload */ }
}

/** The measurement of this session on most rows. @param {string} model @param {string} head @returns {HeadEffect | null} */
function kept(model, head) {
  try {
    const start = [STORED, model, head, ""].join("\n");
    const keys = Object.keys(sessionStorage).filter((key) => key.startsWith(start)).sort((a, b) => Number(b.slice(start.length)) - Number(a.slice(start.length)));
    const effect = JSON.parse(sessionStorage.getItem(keys[0] ?? "") ?? "null");
    return effect?.state === "ready" ? effect : null;
  } catch {
    return null;
  }
}

/** @param {HTMLElement} root @param {Context} context */
export function headEffect(root, context) {
  const { t } = context;
  /** @type {HeadEffect | null} */
  let effect = null;
  let key = "";
  let failure = "";
  let isRunning = false;
  let isGone = false;
  let isEarlier = false; // measured before the page was opened, or before another head was
  let last = "";

  async function measure() {
    const mine = key;
    const { attention, number } = parseHead(last);
    const { bundle } = context.store.state;
    const { name } = context.data.info;
    const head = last;
    isRunning = true;
    isEarlier = false;
    effect = null;
    failure = "";
    render();
    try {
      while (!isGone && key === mine) {
        const answer = await context.source.effect(bundle, attention, number);
        if (answer.state === "ready") keep(name, head, answer);
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
      el("p", { class: "note-small" }, t("effect_facts", { metric, baseline: fixed(baseline), rows: n_rows.toLocaleString("en-US") }), isEarlier ? `${t("list_space")}${t("effect_earlier")}` : ""),
      isEarlier && context.data.info.is_live ? button(t("effect_again"), () => void measure(), { class: "quiet" }) : null,
    ];
  }

  function render() {
    show(root, [key, effect, failure, isRunning, isEarlier, context.store.state.lang], build);
  }

  return {
    /** @param {string} name */
    update(name) {
      const now = `${context.store.state.bundle} ${name}`;
      if (now !== key) {
        key = now;
        last = name;
        effect = kept(context.data.info.name, name);
        isEarlier = effect !== null;
        failure = "";
        isRunning = false;
      }
      render();
    },
    destroy() { isGone = true; },
  };
}
