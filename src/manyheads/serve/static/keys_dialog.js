/** @import { Context } from "./types.js" */
// The list of keys, opened with "?".
import { el } from "./dom.js";

const ROWS = [
  ["← ↑ → ↓", "keys_move"], ["Enter", "keys_pin"], ["Esc", "keys_clear"], ["o", "keys_off"], ["+ −", "keys_zoom"], ["0", "keys_whole"],
  ["[ ]", "keys_window"], ["← →", "keys_tour"], ["?", "keys_help"],
];

/** @param {Context} context */
export function keysDialog({ t }) {
  const root = el("dialog", { class: "keys" });
  root.addEventListener("click", (event) => { if (event.target === root) root.close(); });
  return {
    root,
    open() {
      const rows = ROWS.map(([key, message]) => el("div", {}, el("dt", {}, ...key.split(" ").map((one) => el("kbd", { text: one }))), el("dd", { text: t(message) })));
      root.setAttribute("aria-label", t("keys"));
      root.replaceChildren(el("h2", { text: t("keys") }), el("dl", {}, ...rows),
        el("button", { type: "button", class: "plain", text: t("close"), onclick: () => root.close() }));
      root.showModal();
    },
  };
}
