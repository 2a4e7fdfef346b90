// What differs between two answers.

/**
 * Cut a text into words; Chinese and Japanese characters are words of their own.
 * @param {string} text
 */
export function wordsOf(text) {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}\p{M}]+|\s+|[^\p{L}\p{N}\s]/gu) ?? [];
}

/**
 * The parts of `text`, each with whether it is missing in `other` (longest common subsequence of words).
 * @param {string} text
 * @param {string} other
 * @returns {{ text: string, isChanged: boolean }[]}
 */
export function changedParts(text, other) {
  const kept = commonPositions(wordsOf(text), wordsOf(other));
  /** @type {{ text: string, isChanged: boolean }[]} */
  const parts = [];
  for (const [i, word] of wordsOf(text).entries()) {
    const isChanged = !kept.has(i);
    const last = parts.at(-1);
    if (last && last.isChanged === isChanged) last.text += word;
    else parts.push({ text: word, isChanged });
  }
  return parts;
}

/** @param {string[]} words @param {string[]} others @returns {Set<number>} */
function commonPositions(words, others) {
  const [n, m] = [Math.min(words.length, 2000), Math.min(others.length, 2000)];
  const lengths = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      lengths[i][j] = words[i] === others[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const kept = new Set();
  for (let i = 0, j = 0; i < n && j < m;) {
    if (words[i] === others[j]) { kept.add(i); i++; j++; }
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return kept;
}

/**
 * Cut a text at the boundaries of spans. Offsets count Unicode code points, as Python does.
 * @param {string} text
 * @param {[number, number][]} spans
 * @returns {{ text: string, start: number, end: number, spans: number[] }[]} `spans`: numbers of the spans that cover it
 */
export function cutText(text, spans) {
  const characters = [...text];
  const cuts = new Set([0, characters.length]);
  for (const [start, end] of spans) {
    if (start >= 0 && end <= characters.length && start < end) { cuts.add(start); cuts.add(end); }
  }
  const edges = [...cuts].sort((a, b) => a - b);
  return edges.slice(1).map((end, i) => {
    const start = edges[i];
    const covering = spans.flatMap(([from, to], number) => (from <= start && end <= to && from < to ? [number] : []));
    return { text: characters.slice(start, end).join(""), start, end, spans: covering };
  });
}
