/** @import { Context, Part, Parts, Scene, Selection } from "./types.js" */
// Which part of a long text is shown, and the buttons to move on.
import { el, setText } from "./dom.js";

/** @param {Context} context @param {() => void} changed */
export function createPager({ t, store }, changed) {
  let page = 0;
  let n_pages = 1;
  let size = 1;
  let followed = "";
  /** @type {Parts} */
  let shown = { queries: { start: 0, end: 0 }, keys: { start: 0, end: 0 } };
  const before = el("button", { type: "button", class: "icon", text: "‹", onclick: () => move(-1) });
  const after = el("button", { type: "button", class: "icon", text: "›", onclick: () => move(1) });
  const label = el("span", { class: "faint" });
  const root = el("div", { class: "pager", hidden: true }, before, label, after);

  /** @param {number} step */
  function move(step) {
    const next = Math.max(0, Math.min(n_pages - 1, page + step));
    if (next === page) return;
    page = next;
    changed();
  }
  /** @param {number} n @returns {Part} */
  function partOf(n) {
    const start = Math.max(0, Math.min(page * size, n - size));
    return { start, end: Math.min(n, start + size) };
  }
  return {
    root,
    /** @param {Scene} scene @param {number} wanted most units of one part @returns {Parts} */
    parts(scene, wanted) {
      size = Math.max(1, wanted);
      const [nQ, nK] = [scene.queries.length, scene.keys.length];
      n_pages = Math.ceil(Math.max(nQ, nK) / size);
      page = Math.min(page, n_pages - 1);
      const parts = { queries: partOf(nQ), keys: partOf(nK) };
      shown = parts;
      root.hidden = n_pages === 1;
      const range = (/** @type {Part} */ part, /** @type {number} */ n) =>
        t("range", { unit: t(`unit_${store.state.unit}`), from: part.start + 1, to: part.end, n: n.toLocaleString("en") });
      setText(label, scene.isSelf || nQ <= size ? range(parts.keys, nK) : nK <= size ? range(parts.queries, nQ) : `${range(parts.keys, nK)} · ${range(parts.queries, nQ)}`);
      before.disabled = page === 0;
      after.disabled = page === n_pages - 1;
      before.setAttribute("aria-label", t("part_before"));
      after.setAttribute("aria-label", t("part_after"));
      return parts;
    },
    /** Turns to the part with this unit; true if that changed anything. @param {"queries" | "keys"} side @param {number} index */
    show(side, index) {
      const { start, end } = shown[side];
      const next = Math.min(n_pages - 1, Math.floor(index / size));
      if (next === page || (index >= start && index < end)) return false;
      page = next;
      return true;
    },
    /** The same for the newest pin, once: afterwards the reader may turn away from it. @param {Selection} selection */
    follow(selection) {
      const newest = [store.state.pins.at(-1), store.state.at].join();
      if (newest === followed) return false;
      followed = newest;
      const index = selection.pinnedQueries().at(-1);
      return index !== undefined && this.show("queries", index);
    },
    /** @param {string} key */
    key(key) {
      if (n_pages === 1 || (key !== "[" && key !== "]")) return false;
      move(key === "]" ? 1 : -1);
      return true;
    },
  };
}
