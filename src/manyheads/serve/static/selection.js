/** @import { Scene, Selection, Side, Store, Unit } from "./types.js" */
// One selection for matrix, arcs and text: what the pointer or the keyboard selects, and what is pinned.

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
