/** @import { Context, Scene } from "./types.js" */
// The number of one cell, beside the pointer or beside the cell that the keyboard selects. Screen readers have the readout.
import { el, setText } from "./dom.js";
import { readCell } from "./readout.js";

const GAP = 12;

/** @param {Context} context @param {HTMLElement} stage */
export function createTip(context, stage) {
  const root = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
  stage.append(root);
  let shown = "";
  let cancel = () => {};

  function hide() {
    cancel();
    shown = "";
    root.hidden = true;
  }
  /** Above and to the right, or where there is room. @param {number} x @param {number} y */
  function place(x, y) {
    const left = x + GAP + root.offsetWidth > stage.clientWidth ? Math.max(0, x - GAP - root.offsetWidth) : x + GAP;
    const top = y - GAP - root.offsetHeight < 0 ? y + 2 * GAP : y - GAP - root.offsetHeight;
    root.style.setProperty("transform", `translate(${Math.round(left)}px, ${Math.round(top)}px)`);
  }
  return {
    hide,
    /** @param {Scene} scene @param {number | null} q @param {number | null} k @param {number} x @param {number} y */
    show(scene, q, k, x, y) {
      if (q === null || k === null || q >= scene.queries.length || k >= scene.keys.length) return hide();
      const cell = [scene.trace.id, scene.attention.name, scene.head, scene.kind, scene.queries.length, q, k].join();
      root.hidden = false;
      if (cell !== shown) {
        cancel();
        shown = cell;
        cancel = readCell(context, scene, q, k, (text) => { setText(root, text); place(x, y); });
      }
      place(x, y);
    },
  };
}
