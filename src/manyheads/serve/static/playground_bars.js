// Bars of probabilities, with a line at the threshold.
/** @import { PlayContext } from "./playground_types.js" */
import { button } from "./controls.js";
import { el, percent } from "./dom.js";

const N_SHOWN = 10;

/**
 * @param {string} label @param {[string, number][]} shares the likeliest first @param {{ chosen: readonly string[], threshold?: number, limit?: number }} options
 * @param {PlayContext} context @returns {HTMLElement}
 */
export function bars(label, shares, { chosen, threshold = 0, limit = N_SHOWN }, { t }) {
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
