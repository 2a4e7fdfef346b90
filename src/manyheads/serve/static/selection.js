/** @import { Scene, Selection, Store, Unit } from "./types.js" */
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

/** @param {readonly number[]} pins @param {Unit} unit @returns {number[]} */
function toggled(pins, unit) {
  const own = unit.parts.map(([position]) => position);
  if (!own.some((position) => pins.includes(position))) return [...pins, own[0]];
  return pins.filter((position) => !own.includes(position));
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
      if (aQuery !== null) change.pins = toggled(store.state.pins, scene.queries[aQuery]);
      if (aKey !== null) change.keyPins = toggled(store.state.keyPins, scene.keys[aKey]);
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
