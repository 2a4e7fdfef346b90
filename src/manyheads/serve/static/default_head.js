/** @import { Trace } from "./types.js" */
// Which head to show first: one whose rows look at different words, sharply, and not at BOS, EOS or punctuation.
import { decodeBase64 } from "./head_map.js";

const KINDS = ["cross", "decoder", "encoder"]; // the most telling kind first

/** @param {Trace} trace @returns {{ attention: string, head: number } | null} */
export function telling(trace) {
  const kind = KINDS.find((one) => trace.attentions.some((attention) => attention.kind === one));
  let best = null;
  let most = -Infinity;
  for (const attention of trace.attentions.filter((one) => one.kind === kind)) {
    for (let head = 0; head < attention.n_heads; head++) {
      const score = variety(attention.thumbnails[head], attention.thumbnail_shape) - (attention.heads[head]?.sink ?? 0);
      if (score > most) [best, most] = [{ attention: attention.name, head }, score];
    }
  }
  return best;
}

/** Share of different columns among the largest cells of the rows, times how large these are. @param {string} thumbnail @param {[number, number]} shape */
function variety(thumbnail, [rows, columns]) {
  const bytes = decodeBase64(thumbnail);
  const seen = new Set();
  let sharpness = 0;
  for (let row = 0; row < rows; row++) {
    const cells = bytes.subarray(row * columns, (row + 1) * columns);
    const best = cells.reduce((most, value, column) => (value > cells[most] ? column : most), 0);
    seen.add(best);
    sharpness += (cells[best] / 255) ** 2 / rows;
  }
  return (seen.size / Math.max(1, Math.min(rows, columns))) * sharpness;
}
