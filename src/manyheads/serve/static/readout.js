/** @import { Context, Scene, Selection, WalkRow } from "./types.js" */
// One line that says what is under the pointer. Maps come as bytes, so their numbers are rounded ("≈");
// the exact weight is asked for once the pointer rests.
import { decimal, el, percent, setText } from "./dom.js";
import { largestLinks, shownText, weightOf } from "./head_map.js";
import { isCausal } from "./matrix_paint.js";
import { weightTexts } from "./number_parts.js";

const REST = 180; // milliseconds
const MAX_KEYS = 160; // a row of more keys is too large to be fetched on hovering
const N_NAMED = 3;

/** @param {Scene} scene @param {number} value */
const about = (scene, value) => (scene.kind === "weights" ? `≈\u00a0${percent(value)}` : `≈\u00a0${decimal(value, 3)}`);

/**
 * Reads one cell: at once from the map, and exactly after a moment.
 * @param {Context} context @param {Scene} scene @param {number} q @param {number} k @param {(text: string) => void} tell
 * @returns {() => void} stops it
 */
export function readCell({ t, load }, scene, q, k, tell) {
  const [query, key] = [scene.queries[q], scene.keys[k]];
  const say = (/** @type {string} */ value) => tell(t(scene.kind === "weights" ? "reads_cell" : "reads_cell_norm", { query: shownText(query), key: shownText(key), value }));
  const positions = [query, key].map((unit) => unit.parts.map(([position]) => position));
  if (isCausal(scene) && Math.min(...positions[1]) > Math.max(...positions[0])) {
    say(t("scale_masked"));
    return () => {};
  }
  say(about(scene, weightOf(scene, q, k)));
  const isToken = query.parts.length === 1 && query.parts[0][1] === 1 && key.parts.length === 1 && key.parts[0][1] === 1;
  if (!isToken || scene.kind !== "weights" || scene.attention.n_keys > MAX_KEYS) return () => {};
  let isStopped = false;
  const timer = window.setTimeout(() => {
    load.walk(scene.trace, scene.attention.name, scene.head, query.parts[0][0]).then((/** @type {WalkRow} */ walk) => {
      const weight = weightTexts(walk)[key.parts[0][0]];
      if (!isStopped && weight !== undefined) say(weight);
    }, () => { /* not in this file: the rounded number stays */ });
  }, REST);
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

/** @param {Context} context @param {Selection} selection */
export function createReadout(context, selection) {
  const { t, store } = context;
  const root = el("output", { class: "readout", "aria-live": "polite" });
  let cancel = () => {};

  /** @param {Scene} scene @param {number} q */
  function row(scene, q) {
    const keys = largestLinks(scene, q, 1).slice(0, N_NAMED).map((k) => t("reads_word", { word: shownText(scene.keys[k]), value: about(scene, weightOf(scene, q, k)) }));
    return t("reads_row", { query: shownText(scene.queries[q]), keys: keys.join(t("comma")) });
  }
  /** @param {Scene} scene @param {number} k */
  function column(scene, k) {
    const order = [...scene.queries.keys()].sort((a, b) => weightOf(scene, b, k) - weightOf(scene, a, k)).slice(0, N_NAMED);
    return t("reads_column", { key: shownText(scene.keys[k]), queries: order.map((q) => t("reads_word", { word: shownText(scene.queries[q]), value: about(scene, weightOf(scene, q, k)) })).join(t("comma")) });
  }

  return {
    root,
    /** @param {Scene | null} scene */
    update(scene) {
      cancel();
      if (!scene) return;
      const { query: q, key: k } = selection;
      root.classList.toggle("idle", q === null && k === null);
      if (q === null && k === null) {
        setText(root, t(store.state.pins.length + store.state.keyPins.length ? "reads_pinned" : "reads_nothing"));
      } else if (q !== null && k !== null && !(scene.isSelf && q === k)) {
        cancel = readCell(context, scene, q, k, (text) => setText(root, text));
      } else {
        setText(root, [q === null ? "" : row(scene, q), k === null ? "" : column(scene, k)].filter(Boolean).join(t("semicolon")));
      }
    },
  };
}
