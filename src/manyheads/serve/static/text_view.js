/** @import { Context, HeadPart, Part, Scene, Selection, Side, Unit } from "./types.js" */
// The text itself, colored: blue where the selected word looks, orange where it is looked at from.
import { strengthOf } from "./arcs_layout.js";
import { el, setText } from "./dom.js";
import { meanReceived, shownText, weightOf } from "./head_map.js";
import { createPager } from "./pager.js";

const MAX_UNITS = 240;

/** @param {HTMLElement} root @param {Context} context @param {Selection} selection @returns {HeadPart} */
export function mountText(root, context, selection) {
  const { t } = context;
  /** @type {Scene | null} */
  let scene = null;
  /** @type {{ queries: Map<number, HTMLElement>, keys: Map<number, HTMLElement> }} */
  let spans = { queries: new Map(), keys: new Map() };
  /** @type {Float32Array} */
  let received = new Float32Array();
  const pager = createPager(context, () => build());
  const body = el("div", { class: "texts", tabindex: 0, role: "application" });
  const hint = el("p", { class: "hint" });
  root.append(pager.root, body, hint);

  function build() {
    if (!scene) return;
    const parts = pager.parts(scene, MAX_UNITS);
    spans = { queries: new Map(), keys: new Map() };
    if (scene.isSelf) {
      const paragraph = write(scene.keySide, scene.keys, parts.keys, "both", spans.keys);
      spans.queries = spans.keys;
      body.replaceChildren(paragraph);
    } else {
      body.replaceChildren(
        el("p", { class: "side-name", text: t("side_source") }), write(scene.keySide, scene.keys, parts.keys, "key", spans.keys),
        el("p", { class: "side-name", text: t("side_written") }), write(scene.querySide, scene.queries, parts.queries, "query", spans.queries));
    }
    redraw();
  }

  function redraw() {
    if (!scene) return;
    if (pager.follow(selection)) return build();
    const shown = scene;
    const [outgoing, incoming] = [selection.outgoing(), selection.incoming()];
    const isQuiet = !outgoing.length && !incoming.length;
    const pinned = { query: new Set(selection.pinnedQueries()), key: new Set(selection.pinnedKeys()) };
    const [from, to] = [new Set(outgoing), new Set(incoming)];
    const share = (/** @type {number} */ value) => strengthOf(shown, value) ** 0.7;
    const largest = isQuiet ? received.reduce((a, b) => Math.max(a, b), 0) || 1 : 1;
    spans.keys.forEach((span, k) => {
      const out = outgoing.reduce((most, q) => Math.max(most, weightOf(shown, q, k)), 0);
      setShare(span, "--out", share(out));
      if (!shown.isSelf) setShare(span, "--in", isQuiet ? received[k] / largest : 0);
      span.classList.toggle("to", to.has(k));
      span.classList.toggle("pinned", pinned.key.has(k) || (shown.isSelf && pinned.query.has(k)));
    });
    spans.queries.forEach((span, q) => {
      const inward = incoming.reduce((most, k) => Math.max(most, weightOf(shown, q, k)), 0);
      setShare(span, "--in", isQuiet && shown.isSelf ? received[q] / largest : share(inward));
      span.classList.toggle("from", from.has(q));
      if (!shown.isSelf) span.classList.toggle("pinned", pinned.query.has(q));
    });
    setText(hint, t(isQuiet ? "text_quiet" : "text_selected"));
  }

  /** @param {Event} event @returns {[number | null, number | null]} */
  function ends(event) {
    const span = event.target instanceof HTMLElement ? event.target.closest("span[data-index]") : null;
    if (!(span instanceof HTMLElement)) return [null, null];
    const index = Number(span.dataset.index);
    return [span.dataset.row === "key" ? null : index, span.dataset.row === "query" ? null : index];
  }
  body.addEventListener("pointerover", (event) => selection.hover(...ends(event)));
  body.addEventListener("pointerleave", () => selection.hover(null, null));
  body.addEventListener("click", (event) => selection.toggle(...ends(event)));
  body.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !scene) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    const isKeyRow = !scene.isSelf && selection.query === null && selection.key !== null;
    if (step) {
      const now = isKeyRow ? selection.key : selection.query;
      const last = (isKeyRow ? scene.keys : scene.queries).length - 1;
      const next = Math.max(0, Math.min(last, now === null ? 0 : now + step));
      selection.hover(isKeyRow ? null : next, isKeyRow || scene.isSelf ? next : null);
      if (pager.show("keys", next)) build();
    } else if (event.key === "ArrowUp" && !scene.isSelf) selection.hover(null, Math.min(selection.query ?? 0, scene.keys.length - 1));
    else if (event.key === "ArrowDown" && !scene.isSelf) selection.hover(Math.min(selection.key ?? 0, scene.queries.length - 1), null);
    else if (event.key === "Enter" || event.key === " ") selection.toggle(selection.query, selection.key);
    else if (!pager.key(event.key)) return;
    event.preventDefault();
  });
  return {
    setScene(next) {
      scene = next;
      received = meanReceived(next);
      body.setAttribute("aria-label", t("text_name", { head: context.headTitle(next.attention.name, next.head) }));
      build();
    },
    redraw,
    destroy() {},
  };
}

/**
 * The units of a part of a side, with the spaces that the text has between them.
 * @param {Side} side @param {Unit[]} units @param {Part} part @param {"query" | "key" | "both"} row @param {Map<number, HTMLElement>} spans
 */
function write(side, units, part, row, spans) {
  const paragraph = el("p", { class: "colored", dir: "auto" });
  const characters = Array.from(side.text); // offsets count code points
  let end = part.start > 0 ? units[part.start - 1].end : 0;
  for (let i = part.start; i < part.end; i++) {
    const unit = units[i];
    // The space before a word belongs to its token, or lies between the units.
    const before = characters.slice(end, unit.start).join("") + (/^\s*/.exec(characters.slice(unit.start, unit.end).join(""))?.[0] ?? "");
    if (/\s/.test(before) || (unit.kind === "special" && i > part.start)) paragraph.append(" ");
    const span = el("span", { class: `unit ${unit.kind}`, "data-index": i, "data-row": row, text: shownText(unit) });
    paragraph.append(span);
    if (unit.kind === "special") paragraph.append(" ");
    spans.set(i, span);
    end = Math.max(end, unit.end);
  }
  return paragraph;
}

/** @param {HTMLElement} span @param {string} name @param {number} share */
function setShare(span, name, share) {
  const text = share < 0.02 ? "0" : share.toFixed(2); // coarse: a pointer that moves repaints few words
  if (span.style.getPropertyValue(name) !== text) span.style.setProperty(name, text);
}
