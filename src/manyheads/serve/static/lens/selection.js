// What matrix, arcs and text share: the selection, the line that reads it out, and the part of a long text.
/** @import { Context, Part, Parts, Scene, Selection, Side, Store, Unit, WalkRow } from "./lens_types.js" */
import { el, setText } from "../shared/dom.js";
import { decimal, percent } from "../shared/figures.js";
import { largestLinks, shownText, weightOf } from "./head_map.js";
import { isCausal } from "./matrix_paint.js";
import { weightTexts } from "./numbers_view.js";

// ---------------------------------------------------------------- the selection

/**
 * Pins are token positions in the address, so they survive a change of the unit.
 * @param {Unit[]} units @param {readonly number[]} positions @returns {number[]}
 */
export function pinnedUnits(units, positions) {
  if (!positions.length) return [];
  const wanted = new Set(positions);
  return [...units.keys()].filter((i) => units[i].parts.some(([position]) => wanted.has(position)));
}

/** The token that stands for a unit: its first one that is not just a space. @param {Side} side @param {Unit} unit */
const mainToken = (side, unit) => (unit.parts.find(([position]) => side.tokens[position]?.text !== "▁") ?? unit.parts[0])[0];

/** @param {readonly number[]} pins @param {Side} side @param {Unit} unit @returns {number[]} */
function toggled(pins, side, unit) {
  const own = unit.parts.map(([position]) => position);
  if (!own.some((position) => pins.includes(position))) return [...pins, mainToken(side, unit)];
  return pins.filter((position) => !own.includes(position));
}

/** Pins the row of a cell, and its key: the numbers below show this pair. The same cell again removes both. @param {Store} store @param {Scene} scene @param {number} q @param {number} k */
export function pinCell(store, scene, q, k) {
  const [row, column] = [scene.queries[q].parts, scene.keys[k].parts].map((parts) => parts.map(([position]) => position));
  const { pins, keyPins } = store.state;
  const others = pins.filter((position) => !row.includes(position));
  const isNewest = row.includes(pins.at(-1) ?? -1) && keyPins.length === 1 && column.includes(keyPins[0]);
  if (isNewest) return store.set({ pins: others, keyPins: [] });
  const pinned = pins.find((position) => row.includes(position)) ?? mainToken(scene.querySide, scene.queries[q]);
  store.set({ pins: [...others, pinned], keyPins: [mainToken(scene.keySide, scene.keys[k])] });
}

/** @param {Store} store @param {() => Scene | null} sceneOf @returns {Selection} */
export function createSelection(store, sceneOf) {
  /** @type {number | null} */
  let query = null;
  /** @type {number | null} */
  let key = null;
  /** @type {Set<() => void>} */
  const listeners = new Set();
  const tell = () => { for (const listener of [...listeners]) listener(); };

  /** @param {number | null} index @param {number} n */
  const inside = (index, n) => (index === null || index < 0 || index >= n ? null : index);

  const pinnedQueries = () => {
    const scene = sceneOf();
    if (!scene) return [];
    const { pins, at } = store.state;
    // The step of generation that is looked at is a row of the decoder's heads.
    const isStep = at !== null && scene.attention.queries !== "source";
    return pinnedUnits(scene.queries, isStep ? [...pins, at] : pins);
  };
  const pinnedKeys = () => {
    const scene = sceneOf();
    return scene ? pinnedUnits(scene.keys, store.state.keyPins) : [];
  };

  return {
    get query() { return query; },
    get key() { return key; },
    hover(newQuery, newKey) {
      const scene = sceneOf();
      newQuery = inside(newQuery, scene?.queries.length ?? 0);
      newKey = inside(newKey, scene?.keys.length ?? 0);
      if (newQuery === query && newKey === key) return;
      [query, key] = [newQuery, newKey];
      tell();
    },
    move(dQuery, dKey) {
      const scene = sceneOf();
      if (!scene) return;
      const clamp = (/** @type {number} */ i, /** @type {number} */ n) => Math.max(0, Math.min(n - 1, i));
      const isNew = query === null && key === null;
      if (dQuery) query = clamp(isNew ? 0 : (query ?? -1) + dQuery, scene.queries.length);
      if (dKey) key = clamp(isNew ? 0 : (key ?? -1) + dKey, scene.keys.length);
      tell();
    },
    toggle(aQuery, aKey) {
      const scene = sceneOf();
      if (!scene) return;
      /** @type {{ pins?: number[], keyPins?: number[] }} */
      const change = {};
      if (aQuery !== null) change.pins = toggled(store.state.pins, scene.querySide, scene.queries[aQuery]);
      if (aKey !== null) change.keyPins = toggled(store.state.keyPins, scene.keySide, scene.keys[aKey]);
      store.set(change);
    },
    outgoing: () => [...new Set([...pinnedQueries(), ...(query === null ? [] : [query])])],
    incoming: () => [...new Set([...pinnedKeys(), ...(key === null ? [] : [key])])],
    pinnedQueries,
    pinnedKeys,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

// ---------------------------------------------------------------- the readout

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

// ---------------------------------------------------------------- parts of a long text

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
