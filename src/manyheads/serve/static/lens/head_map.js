// Attention maps: from bytes to numbers, from tokens to the units that are shown, and which links to draw.
/** @import { HeadMap, Scene, Side, State, Trace, TracedAttention, Unit, WalkRow } from "./lens_types.js" */

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
export function decodeBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Inflates zlib data. @param {ReadableStream<Uint8Array<ArrayBuffer>> | null} stream */
export async function inflate(stream) {
  if (!stream) return new Uint8Array();
  const plain = stream.pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

/**
 * A short map has four bytes per value, a number as it is. A long one has one byte, which holds the square root of a
 * weight: small weights keep their digits.
 * @param {Uint8Array} bytes @param {number} scale @param {number} n_queries @param {number} n_keys @returns {HeadMap}
 */
export function decodeMap(bytes, scale, n_queries, n_keys) {
  if (bytes.length === 4 * n_queries * n_keys) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const exact = Float32Array.from({ length: n_queries * n_keys }, (_, i) => view.getFloat32(4 * i, true) * scale);
    return { values: exact, n_queries, n_keys, is_exact: true };
  }
  if (bytes.length !== n_queries * n_keys) throw new Error(`A map of ${n_queries} × ${n_keys} came with ${bytes.length} values.`);
  const table = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2 * scale);
  const values = new Float32Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) values[i] = table[bytes[i]];
  return { values, n_queries, n_keys, is_exact: false };
}

/** What is shown of a unit; a space that is a token of its own becomes visible. @param {Unit | undefined} unit */
export const shownText = (unit) => unit?.text.replaceAll("▁", "␣") ?? "";

/** @type {WeakMap<Side, Map<number, string>>} */
const namesOfBytes = new WeakMap();

/** Bytes by position, named after their character: 错₁ 错₂ 错₃. @param {Side} side @returns {Map<number, string>} */
function byteNames(side) {
  let names = namesOfBytes.get(side);
  if (names) return names;
  names = new Map();
  for (const character of side.characters) {
    const bytes = character.kind === "byte" ? [] : character.parts.filter(([position]) => side.tokens[position]?.kind === "byte");
    for (const [i, [position]] of bytes.entries()) names.set(position, `${character.text}${"₁₂₃₄₅₆₇₈₉"[i] ?? ""}`);
  }
  namesOfBytes.set(side, names);
  return names;
}

/** The name of one token; a byte is named after its character. @param {Side | null} side @param {number} position */
export function tokenName(side, position) {
  if (!side) return "";
  return byteNames(side).get(position) ?? shownText(side.tokens[position]);
}

/** @param {Side} side @param {Unit[]} units */
function readable(side, units) {
  const names = byteNames(side);
  return names.size === 0 ? units : units.map((unit) => (unit.kind === "byte" ? { ...unit, text: names.get(unit.parts[0][0]) ?? unit.text } : unit));
}

/** A row with the names that the page shows. @param {WalkRow} walk @param {Trace} trace @returns {WalkRow} */
export function withNames(walk, trace) {
  const attention = trace.attentions.find((traced) => traced.name === walk.attention);
  if (!attention) return walk;
  const [queries, keys] = [trace.sides[attention.queries], trace.sides[attention.keys]];
  return { ...walk, query_name: tokenName(queries, walk.query) || walk.query_name, keys: walk.keys.map((key, i) => ({ ...key, name: tokenName(keys, i) || key.name })) };
}

/** @param {Unit} unit */
const isSink = (unit) => unit.kind === "special" || unit.kind === "punctuation";

/**
 * Pools tokens to units: attention TO a unit is the sum over its parts, attention FROM a unit their weighted mean.
 * @param {HeadMap} map @param {Unit[]} queries @param {Unit[]} keys @returns {Float32Array}
 */
function poolMap(map, queries, keys) {
  const isWhole = (/** @type {Unit[]} */ units, /** @type {number} */ n) =>
    units.length === n && units.every((unit, i) => unit.parts.length === 1 && unit.parts[0][0] === i && unit.parts[0][1] === 1);
  if (isWhole(queries, map.n_queries) && isWhole(keys, map.n_keys)) return map.values;
  const pooled = new Float32Array(queries.length * keys.length);
  const row = new Float32Array(map.n_keys);
  queries.forEach((query, q) => {
    row.fill(0);
    const total = query.parts.reduce((sum, [, share]) => sum + share, 0) || 1;
    for (const [position, share] of query.parts) {
      const offset = position * map.n_keys;
      for (let k = 0; k < map.n_keys; k++) row[k] += (share / total) * map.values[offset + k];
    }
    keys.forEach((key, k) => {
      let sum = 0;
      for (const [position, share] of key.parts) sum += share * row[position];
      pooled[q * keys.length + k] = sum;
    });
  });
  return pooled;
}

/**
 * @param {Trace} trace @param {TracedAttention} attention @param {number} head @param {HeadMap} map
 * @param {Pick<State, "unit" | "kind" | "sinks">} state @returns {Scene}
 */
export function makeScene(trace, attention, head, map, { unit, kind, sinks }) {
  const [querySide, keySide] = [trace.sides[attention.queries], trace.sides[attention.keys]];
  if (!querySide || !keySide) throw new Error(`The trace lacks the ${querySide ? attention.keys : attention.queries} side.`);
  const all = { queries: readable(querySide, querySide[unit]), keys: readable(keySide, keySide[unit]) };
  const left = { queries: all.queries.filter((one) => !isSink(one)), keys: all.keys.filter((one) => !isSink(one)) };
  const isEmpty = !sinks && (!left.queries.length || !left.keys.length);
  const shown = sinks || isEmpty ? all : left;
  const values = poolMap(map, shown.queries, shown.keys);
  const n = shown.keys.length;
  const rowSums = new Float32Array(shown.queries.length);
  let largest = 0;
  for (let i = 0; i < values.length; i++) {
    rowSums[Math.floor(i / n)] += values[i];
    if (values[i] > largest) largest = values[i];
  }
  return {
    trace, attention, head, kind, querySide, keySide, values, largest, rowSums, isEmpty, ...shown,
    isSelf: attention.queries === attention.keys,
    hidden: sinks || isEmpty ? null : hiddenShare(map, shown, rowSums, all.keys.length - shown.keys.length),
  };
}

/** The share of the mass of the shown rows that the hidden keys held. @param {HeadMap} map @param {{ queries: Unit[] }} shown @param {Float32Array} rowSums @param {number} n */
function hiddenShare(map, shown, rowSums, n) {
  /** @type {Unit} */
  const everything = { text: "", start: 0, end: 0, kind: "text", parts: Array.from({ length: map.n_keys }, (_, k) => [k, 1]) };
  const totals = poolMap(map, shown.queries, [everything]);
  const whole = totals.reduce((sum, x) => sum + x, 0);
  const rest = rowSums.reduce((sum, x) => sum + x, 0);
  return { n, share: whole > 0 ? Math.max(0, 1 - rest / whole) : 0 };
}

/** The weight of one link. @param {Scene} scene @param {number} query @param {number} key */
export const weightOf = (scene, query, key) => scene.values[query * scene.keys.length + key];

/**
 * The largest keys of a row that together hold a share of its mass, largest first.
 * @param {Scene} scene @param {number} query @param {number} mass @returns {number[]}
 */
export function largestLinks(scene, query, mass) {
  const n = scene.keys.length;
  const row = scene.values.subarray(query * n, (query + 1) * n);
  const order = Array.from(row.keys()).filter((k) => row[k] > 0).sort((a, b) => row[b] - row[a]);
  const wanted = mass * scene.rowSums[query] - 1e-6;
  const links = [];
  let sum = 0;
  for (const k of order) {
    if (sum >= wanted) break;
    links.push(k);
    sum += row[k];
  }
  return links;
}

/** Mean attention that each key receives over the shown rows. @param {Scene} scene @returns {Float32Array} */
export function meanReceived(scene) {
  const n = scene.keys.length;
  const means = new Float32Array(n);
  scene.values.forEach((value, i) => { means[i % n] += value / scene.queries.length; });
  return means;
}
