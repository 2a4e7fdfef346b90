// Attention maps: from bytes to numbers, from tokens to units, which links are drawn, and where.
import assert from "node:assert/strict";
import { deflateSync } from "node:zlib";
import { test } from "node:test";

import { curveOf, layOutArcs, lineOpacity, lineWidth, linksOf, strengthOf } from "#page/lens/arcs.js";
import { compareTraces } from "#page/lens/compare_page.js";
import { telling } from "#page/lens/heads.js";
import { decodeBase64, decodeMap, inflate, largestLinks, makeScene, meanReceived, tokenName, weightOf, withNames } from "#page/lens/head_map.js";
import { createSelection, pinCell, pinnedUnits } from "#page/lens/selection.js";
import { withWords } from "#page/lens/loader.js";

const WORDS = [
  { text: "BOS", start: 0, end: 0, kind: "special", parts: [[0, 1]] },
  { text: "猫", start: 0, end: 1, kind: "text", parts: [[1, 1], [2, 1], [3, 0.5]] },
  { text: "睡", start: 1, end: 2, kind: "text", parts: [[3, 0.5]] },
  { text: "。", start: 2, end: 3, kind: "punctuation", parts: [[4, 1]] },
];
const SIDE = { text: "猫睡。", tokens: WORDS, characters: WORDS, words: WORDS };
const N = 5;
const close = (one, other) => assert.ok(Math.abs(one - other) < 1e-5, `${one} is not ${other}`);

/** Rows that sum to one, the same in every run. */
function weights() {
  let state = 7;
  const next = () => (state = (state * 48271) % 2147483647) / 2147483647;
  return Array.from({ length: N }, () => {
    const row = Array.from({ length: N }, () => Math.exp(6 * next()));
    const total = row.reduce((sum, x) => sum + x, 0);
    return row.map((x) => x / total);
  });
}
const MAP = { values: Float32Array.from(weights().flat()), n_queries: N, n_keys: N, is_exact: true };
const SELF = { name: "encoder.0.self", queries: "source", keys: "source" };
const scene = (change = {}, attention = SELF) =>
  makeScene({ sides: { source: SIDE, target: SIDE } }, attention, 0, MAP, { unit: "words", kind: "weights", sinks: true, ...change });

test("four bytes are a number as it is, one byte the square root of a weight", async () => {
  const exact = new Uint8Array(Float32Array.of(0.25, 0.5).buffer);
  const bytes = await inflate(new Blob([decodeBase64(deflateSync(exact).toString("base64"))]).stream());
  assert.deepEqual([...decodeMap(bytes, 2, 1, 2).values], [0.5, 1]);
  const rough = decodeMap(Uint8Array.of(0, 51, 255), 0.8, 1, 3);
  assert.equal(rough.is_exact, false);
  [0, 0.032, 0.8].forEach((value, i) => close(rough.values[i], value));
  assert.throws(() => decodeMap(Uint8Array.of(1, 2), 1, 2, 2), /2 × 2 came with 2 values/);
});

test("attention to a unit is the sum over its parts, from a unit their weighted mean", () => {
  const { values } = scene();
  const share = WORDS.map((word) => Array.from({ length: N }, (_, i) => word.parts.find(([position]) => position === i)?.[1] ?? 0));
  WORDS.forEach((_, q) => {
    const whole = share[q].reduce((sum, x) => sum + x, 0);
    let total = 0;
    WORDS.forEach((_, k) => {
      let expected = 0;
      for (let i = 0; i < N; i++) for (let j = 0; j < N; j++) expected += (share[q][i] / whole) * weights()[i][j] * share[k][j];
      close(values[q * WORDS.length + k], expected);
      total += expected;
    });
    close(total, 1);
  });
});

test("hidden sinks take their mass with them; a text of sinks alone hides nothing", () => {
  const shown = scene({ sinks: false });
  assert.deepEqual(shown.keys.map(({ text }) => text), ["猫", "睡"]);
  assert.equal(shown.hidden?.n, 2);
  close(shown.hidden?.share ?? 0, 1 - (shown.rowSums[0] + shown.rowSums[1]) / 2);
  const only = { ...SIDE, words: [WORDS[0], WORDS[3]] };
  const empty = makeScene({ sides: { source: only } }, SELF, 0, MAP, { unit: "words", kind: "weights", sinks: false });
  assert.ok(empty.isEmpty && empty.hidden === null && empty.keys.length === 2);
  assert.throws(() => makeScene({ sides: {} }, SELF, 0, MAP, { unit: "words" }), /lacks the source side/);
});

test("links are the largest of a row that hold the share of its mass", () => {
  const whole = scene();
  for (const mass of [0.1, 0.3, 0.9, 1]) {
    whole.queries.forEach((_, q) => {
      const row = whole.keys.map((_, k) => weightOf(whole, q, k));
      const links = largestLinks(whole, q, mass);
      const held = (some) => some.reduce((sum, k) => sum + row[k], 0);
      assert.ok(held(links) >= mass * whole.rowSums[q] - 1e-5);
      assert.ok(held(links.slice(0, -1)) < mass * whole.rowSums[q]);
      assert.deepEqual(links, [...links].sort((a, b) => row[b] - row[a]));
    });
  }
  const parts = { queries: { start: 1, end: 3 }, keys: { start: 0, end: 4 } };
  const [few, all] = [0.1, 1].map((mass) => linksOf(whole, parts, mass));
  assert.ok(few.length < all.length && all.every(({ query }) => query === 1 || query === 2));
  assert.deepEqual(all.map(({ value }) => value), all.map(({ value }) => value).sort((a, b) => a - b));
});

test("the mean that a key receives is over all rows", () => {
  const whole = scene();
  const received = meanReceived(whole);
  close([...received].reduce((sum, x) => sum + x, 0), 1);
  close(received[1], whole.queries.reduce((sum, _, q) => sum + weightOf(whole, q, 1), 0) / 4);
});

test("strong links are wide and opaque; norms are compared with the largest", () => {
  const [whole, norms] = [scene(), scene({ kind: "norms" })];
  assert.equal(strengthOf(whole, 0.25), 0.25);
  assert.equal(strengthOf(norms, norms.largest), 1);
  assert.ok(lineWidth(0.9) > lineWidth(0.1) && lineOpacity(0.9) > lineOpacity(0.1) && lineOpacity(1) <= 1);
});

test("words stand side by side where they fit, and turn or stack where they do not", () => {
  const whole = scene();
  const parts = { queries: { start: 0, end: 4 }, keys: { start: 0, end: 4 } };
  const links = linksOf(whole, parts, 1);
  const measure = (text) => 10 * text.length;
  const wide = layOutArcs(whole, parts, links, 600, measure);
  assert.ok(wide.words.every(({ turn, x }) => turn === 0 && x > 0 && x < 600));
  wide.words.slice(1).forEach((word, i) => assert.ok(word.x - word.half >= wide.words[i].x + wide.words[i].half, "words overlap"));
  const narrow = layOutArcs(whole, parts, links, 60, measure);
  assert.deepEqual(narrow.words.map(({ isStacked }) => isStacked), [false, true, true, false]);
  assert.ok(narrow.words[0].turn < 0);
  const cross = { name: "decoder.0.cross", queries: "target", keys: "source" };
  const across = layOutArcs(scene({}, cross), parts, links, 600, measure);
  assert.deepEqual(across.words.map(({ row }) => row), [...Array(4).fill("key"), ...Array(4).fill("query")]);
  assert.ok(across.keyLine < across.queryLine && across.queryLine < across.height);
});

test("a link bends upwards to earlier words and downwards to later ones, from its query to its key", () => {
  const whole = scene();
  const parts = { queries: { start: 0, end: 4 }, keys: { start: 0, end: 4 } };
  const layout = layOutArcs(whole, parts, linksOf(whole, parts, 1), 600, (text) => 10 * text.length);
  const back = curveOf(whole, layout, { query: 3, key: 1 });
  const ahead = curveOf(whole, layout, { query: 1, key: 3 });
  assert.deepEqual([back?.[0], back?.[6]], [layout.queryX.get(3), layout.keyX.get(1)]);
  assert.ok(back[3] < layout.aboveLine && ahead[3] > layout.belowLine);
  assert.equal(curveOf(whole, layout, { query: 9, key: 1 }), null);
});

test("bytes are named after their character", () => {
  const tokens = [{ text: "BOS", kind: "special" }, ...["e4", "bd", "a0"].map((text) => ({ text: `<0x${text}>`, kind: "byte" })), { text: "▁", kind: "text" }]
    .map((token, i) => ({ ...token, start: 0, end: 0, parts: [[i, 1]] }));
  const side = { text: "你", tokens, words: [], characters: [{ text: "你", kind: "text", start: 0, end: 1, parts: [[1, 1], [2, 1], [3, 1]] }] };
  assert.deepEqual([0, 1, 2, 3, 4].map((i) => tokenName(side, i)), ["BOS", "你₁", "你₂", "你₃", "␣"]);
  assert.equal(tokenName(null, 0), "");
  const trace = { sides: { source: side }, attentions: [SELF] };
  const named = withNames({ attention: "encoder.0.self", query: 2, query_name: "?", keys: [{ name: "?" }, { name: "?" }] }, trace);
  assert.deepEqual([named.query_name, ...named.keys.map(({ name }) => name)], ["你₂", "BOS", "你₁"]);
  const shown = makeScene({ sides: { source: side } }, SELF, 0, MAP, { unit: "tokens", kind: "weights", sinks: true });
  assert.deepEqual(shown.keys.map(({ text }) => text).slice(0, 4), ["BOS", "你₁", "你₂", "你₃"]);
});

test("characters of a script without spaces become words, and their shares add up", () => {
  const text = "🙂我们睡觉";
  const characters = [...text].map((one, i) => ({ text: one, start: i, end: i + 1, kind: "text", parts: [[Math.floor(i / 2), 0.5]] }));
  const end = { text: "EOS", start: 5, end: 5, kind: "special", parts: [[3, 1]] };
  const trace = { sides: { source: { text, tokens: [], characters: [...characters, end], words: [] }, target: null, written: null } };
  const { words } = withWords(trace).sides.source;
  assert.equal(words.map((word) => word.text).join(""), `${text}EOS`);
  assert.ok(words.length < characters.length + 1, "no two characters were joined");
  const shares = words.flatMap((word) => word.parts).reduce((sum, [, share]) => sum + share, 0);
  close(shares, 5 * 0.5 + 1);
  const english = { text: "a cat", tokens: [], characters: [], words: ["as they are"] };
  assert.deepEqual(withWords({ sides: { source: english } }).sides.source.words, ["as they are"]);
});

const thumbnail = (...rows) => ({ thumbnails: [Buffer.from(rows.flat()).toString("base64")], thumbnail_shape: [rows.length, rows[0].length] });

test("the head that is shown first looks at different words, sharply, and not at sinks", () => {
  const head = (name, kind, map, sink) => ({ name, kind, n_heads: 1, heads: [{ sink }], ...map });
  const sharp = thumbnail([255, 0], [0, 255]);
  const blurred = thumbnail([130, 125], [125, 130]);
  const cross = [head("decoder.0.cross", "cross", blurred, 0), head("decoder.1.cross", "cross", sharp, 0)];
  const encoder = head("encoder.0.self", "encoder", sharp, 0);
  assert.deepEqual(telling({ attentions: [encoder, ...cross] }), { attention: "decoder.1.cross", head: 0 });
  assert.deepEqual(telling({ attentions: [cross[0], head("decoder.1.cross", "cross", sharp, 0.9)] }), { attention: "decoder.0.cross", head: 0 });
  assert.deepEqual(telling({ attentions: [encoder] }), { attention: "encoder.0.self", head: 0 });
  assert.equal(telling({ attentions: [] }), null);
});

test("traces are compared head by head, also where their lengths differ", () => {
  const trace = (map, entropy) => ({ attentions: [{ name: "encoder.0.self", heads: [{ entropy, sink: 0.5 }], ...map }, { name: "only.0.here", heads: [] }] });
  const [diagonal, other] = [thumbnail([255, 0], [0, 255]), thumbnail([0, 255], [255, 0])];
  const compared = (one, two) => compareTraces(trace(one, 1), { attentions: trace(two, 2).attentions.slice(0, 1) });
  assert.deepEqual(compared(diagonal, diagonal), [{ head: "encoder.0.self/0", map: 0, entropy: [1, 2], sink: [0.5, 0.5] }]);
  assert.equal(compared(diagonal, other)[0].map, 1);
  const larger = thumbnail(...Array.from({ length: 4 }, (_, i) => Array.from({ length: 4 }, (_, j) => (i >> 1 === j >> 1 ? 255 : 0))));
  assert.equal(compared(diagonal, larger)[0].map, 0);
});

/** A store that keeps its state. */
function fakeStore(state = {}) {
  const store = { state: { pins: [], keyPins: [], at: null, ...state }, set(change) { store.state = { ...store.state, ...change }; } };
  return store;
}

test("pins are tokens, so they survive a change of the unit", () => {
  assert.deepEqual(pinnedUnits(WORDS, [2]), [1]);
  assert.deepEqual(pinnedUnits(WORDS, [3]), [1, 2]);
  assert.deepEqual(pinnedUnits(WORDS, []), []);
});

test("the same cell again removes its pins; another cell of the row moves the key", () => {
  const [store, whole] = [fakeStore(), scene()];
  pinCell(store, whole, 1, 3);
  assert.deepEqual([store.state.pins, store.state.keyPins], [[1], [4]]);
  pinCell(store, whole, 1, 0);
  assert.deepEqual([store.state.pins, store.state.keyPins], [[1], [0]]);
  pinCell(store, whole, 1, 0);
  assert.deepEqual([store.state.pins, store.state.keyPins], [[], []]);
});

test("a selection moves within the scene, and a step of generation is a row of the decoder's heads", () => {
  const [store, whole] = [fakeStore({ at: 3 }), scene()];
  const selection = createSelection(store, () => whole);
  let n_told = 0;
  const stop = selection.subscribe(() => { n_told += 1; });
  selection.move(1, 0);
  selection.move(-1, 0);
  assert.deepEqual([selection.query, selection.key], [0, null]);
  for (let i = 0; i < 9; i++) selection.move(1, 0);
  assert.equal(selection.query, 3);
  selection.hover(1, 7);
  selection.hover(1, null);
  assert.deepEqual([selection.query, selection.key, n_told], [1, null, 12]);
  stop();
  selection.toggle(1, 3);
  assert.deepEqual([store.state.pins, store.state.keyPins], [[1], [4]]);
  assert.deepEqual([selection.outgoing(), selection.incoming()], [[1], [3]]);
  const cross = scene({}, { name: "decoder.0.cross", queries: "target", keys: "source" });
  assert.deepEqual(createSelection(store, () => cross).pinnedQueries(), [1, 2]); // of the pin, and of the step
  selection.toggle(1, null);
  assert.deepEqual(store.state.pins, []);
});
