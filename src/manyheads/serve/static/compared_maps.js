// How much two traces differ, head by head.
/** @import { Trace } from "./types.js" */
import { headName } from "./head_names.js";

const SIDE = 16; // maps of different sizes are compared on a grid of this many cells

/** @typedef {{ head: string, map: number, entropy: [number, number], sink: [number, number] }} HeadDifference */

/**
 * The heads that both traces have, with how much they differ. `map`: 0 the same map, 1 nothing in common.
 * @param {Trace} one @param {Trace} other
 * @returns {HeadDifference[]}
 */
export function compareTraces(one, other) {
  return one.attentions.flatMap((attention) => {
    const twin = other.attentions.find((candidate) => candidate.name === attention.name);
    if (!twin) return [];
    return attention.heads.slice(0, twin.heads.length).map((facts, number) => ({
      head: headName(attention.name, number),
      map: mapDifference(
        gridOf(attention.thumbnails[number], attention.thumbnail_shape), gridOf(twin.thumbnails[number], twin.thumbnail_shape)),
      entropy: /** @type {[number, number]} */ ([facts.entropy, twin.heads[number].entropy]),
      sink: /** @type {[number, number]} */ ([facts.sink, twin.heads[number].sink]),
    }));
  });
}

/**
 * A thumbnail on a square grid: the mean of what falls into each cell.
 * @param {string} base64 @param {[number, number]} shape
 */
function gridOf(base64, [height, width]) {
  const bytes = atob(base64);
  const grid = new Float32Array(SIDE * SIDE);
  if (height < 1 || width < 1) return grid;
  for (let row = 0; row < SIDE; row++) {
    const rows = range(row, height);
    for (let column = 0; column < SIDE; column++) {
      const columns = range(column, width);
      let sum = 0;
      for (let i = rows[0]; i < rows[1]; i++) for (let j = columns[0]; j < columns[1]; j++) sum += bytes.charCodeAt(i * width + j);
      grid[row * SIDE + column] = sum / ((rows[1] - rows[0]) * (columns[1] - columns[0]) * 255);
    }
  }
  return grid;
}

/** @param {number} cell @param {number} size @returns {[number, number]} */
function range(cell, size) {
  const start = Math.floor((cell * size) / SIDE);
  return [start, Math.max(start + 1, Math.ceil(((cell + 1) * size) / SIDE))];
}

/** The sum of the differences, as a share of the sum of both maps. @param {Float32Array} one @param {Float32Array} other */
function mapDifference(one, other) {
  const total = one.reduce((sum, value, i) => sum + value + other[i], 0);
  return total > 0 ? one.reduce((sum, value, i) => sum + Math.abs(value - other[i]), 0) / total : 0;
}
