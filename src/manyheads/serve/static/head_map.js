/** @import { HeadMap, Side, Unit, UnitName } from "./types.d.ts" */
// Attention maps: from bytes to numbers, from tokens to the units that are shown, and which links to draw.

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
 * Bytes hold the square root of a weight: small weights keep their digits.
 * @param {Uint8Array} bytes @param {number} scale @param {number} n_queries @param {number} n_keys @returns {HeadMap}
 */
export function decodeMap(bytes, scale, n_queries, n_keys) {
  if (bytes.length !== n_queries * n_keys) throw new Error(`A map of ${n_queries} × ${n_keys} came with ${bytes.length} values.`);
  const table = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2 * scale);
  const values = new Float32Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) values[i] = table[bytes[i]];
  return { values, n_queries, n_keys };
}

/** @param {Side | null} side @param {UnitName} unit @returns {Unit[]} */
export function unitsOf(side, unit) {
  return side ? side[unit] : [];
}
