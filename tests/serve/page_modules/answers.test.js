// Answers with and without some heads: what changed, what could have been chosen instead, and names of heads.
import assert from "node:assert/strict";
import { test } from "node:test";

import { changedParts, cutText, wordsOf } from "#page/shared/changed_words.js";
import { unionOfChoices, visibleText, withRest } from "#page/lens/answer_text.js";
import { knownKinds, questionsOf } from "#page/lens/ablation_panel.js";
import { allHeads, headsByKind, parseHead, randomHeads, shortName, toggled } from "#page/lens/heads.js";
import { headsCsv } from "#page/lens/heads_page.js";
import { changedEntities, hasNewEntity } from "#page/lens/answer_text.js";
import { isEveryWordTagged, taggedWords } from "#page/lens/answer_text.js";
import { compareTargets, splittingOf, specialsOf } from "#page/lens/tour.js";

const t = (key, values = {}) => [key, ...Object.values(values)].join(" ");

test("the changed words of an answer are marked; Chinese characters are words of their own", () => {
  assert.deepEqual(wordsOf("两只cats, 睡"), ["两", "只", "cats", ",", " ", "睡"]);
  assert.deepEqual(changedParts("The cat sleeps.", "The dog sleeps."),
    [{ text: "The ", isChanged: false }, { text: "cat", isChanged: true }, { text: " sleeps.", isChanged: false }]);
  assert.deepEqual(changedParts("猫", "猫"), [{ text: "猫", isChanged: false }]);
  assert.deepEqual(changedParts("a b", ""), [{ text: "a b", isChanged: true }]);
});

test("a text is cut at the boundaries of spans, in code points", () => {
  assert.deepEqual(cutText("🙂猫在", [[1, 2], [1, 3], [5, 9]]), [
    { text: "🙂", start: 0, end: 1, spans: [] }, { text: "猫", start: 1, end: 2, spans: [0, 1] }, { text: "在", start: 2, end: 3, spans: [1] }]);
});

const choice = (id, probability) => ({ id, text: `t${id}`, probability });

test("a token that one list lacks is below the smallest of that list", () => {
  const rows = unionOfChoices([choice(1, 0.6), choice(2, 0.3)], [choice(2, 0.5), choice(3, 0.2)]);
  assert.deepEqual(rows.map(({ id, value, without }) => [id, value, without]), [[1, 0.6, 0.2], [2, 0.3, 0.5], [3, 0.3, 0.2]]);
  assert.deepEqual(rows.map(({ isValueLimit = false, isWithoutLimit = false }) => [isValueLimit, isWithoutLimit]), [[false, true], [false, false], [true, false]]);
  assert.deepEqual(unionOfChoices([choice(1, 0.6)], null).map(({ without }) => without), [null]);
  assert.equal(visibleText("  "), "␣");
});

test("what is left sums up to one, and tiny probabilities share a line", () => {
  const rows = [{ text: "a", value: 0.9, isChosen: true }, { text: "b", value: 0.0999 }, { text: "c", value: 0.0001 }];
  assert.deepEqual(withRest(rows, "others").map(({ text }) => text), ["a", "b"]);
  const [first, rest] = withRest([{ text: "a", value: 0.6, isChosen: true }], "others");
  assert.ok(first.text === "a" && rest.text === "others" && Math.abs(rest.value - 0.4) < 1e-9 && rest.isComparable);
  const limited = withRest([{ text: "a", value: 0.6, without: 0.2, isWithoutLimit: true }], "others")[1];
  assert.ok(limited.without === 1 && !limited.isComparable);
});

const span = (start, end, label) => ({ start, end, label, probability: null });

test("entities that changed are told apart from lost ones", () => {
  const text = "🙂 Anna Weber in Paris";
  const [anna, annaWeber, paris] = [span(2, 6, "PER"), span(2, 12, "PER"), span(16, 21, "LOC")];
  assert.deepEqual(changedEntities([annaWeber, paris], [anna], text), { lost: ["Paris (LOC)"], changed: ["Anna Weber → Anna (PER)"] });
  assert.deepEqual(changedEntities([paris], [span(16, 21, "ORG")], text), { lost: [], changed: ["Paris LOC → ORG"] });
  assert.deepEqual(changedEntities([annaWeber], [anna, span(7, 12, "ORG")], text).changed, ["Anna Weber (PER) → Anna (PER) + Weber (ORG)"]);
  assert.deepEqual(changedEntities([paris], [paris], text), { lost: [], changed: [] });
  assert.ok(hasNewEntity([anna], [paris]) && !hasNewEntity([anna], [anna]));
});

const words = (text) => {
  let end = 0;
  return text.split(" ").map((word, i) => {
    const start = end + (i ? 1 : 0);
    end = start + word.length;
    return { text: word, start, end, kind: "text", parts: [[i + 1, 1]] };
  });
};
const BOS = { text: "BOS", start: 0, end: 0, kind: "special", parts: [[0, 1]] };
const tagged = (text, spans) => ({
  text, answer_form: "spans", output: { tokens: [], masks: [], labels: [], spans, first: 0 },
  sides: { source: { text, tokens: [BOS, ...words(text)], words: [BOS, ...words(text)], characters: [] } },
});

test("a word knows its part of a span", () => {
  const trace = tagged("Anna Marie Weber saw Paris", [span(0, 16, "PER"), span(21, 26, "LOC")]);
  assert.deepEqual(taggedWords(trace).map(({ text, form, position }) => [text, form, position]),
    [["Anna", "B", 1], ["Marie", "I", 2], ["Weber", "E", 3], ["saw", "", 4], ["Paris", "S", 5]]);
  assert.ok(!isEveryWordTagged(taggedWords(trace)));
  assert.ok(isEveryWordTagged(taggedWords(tagged("a cat", [span(0, 1, "DET"), span(2, 5, "NOUN")]))));
});

test("questions name the tag of a word and the others it could have", () => {
  const trace = tagged("I saw Anna Weber", [span(6, 16, "PER")]);
  const questions = questionsOf(trace, ["PER", "LOC"], "none");
  assert.deepEqual(questions[0], { kind: "tag", text: "Anna Weber · PER", subject: "Anna", position: 3, others: [["O", "none"], ["B-LOC", "LOC"]] });
  assert.deepEqual(questions.map(({ subject }) => subject), ["Anna", "I", "saw", "Weber"]);
  assert.deepEqual(questions[1].others, [["S-LOC", "LOC"], ["S-PER", "PER"]]);
});

test("questions name tokens, masks and labels with their alternatives", () => {
  const output = {
    first: 1, spans: [],
    tokens: [{ text: "The", alternatives: [{ id: 5, text: "The" }, { id: 6, text: " " }] }, { text: "x", alternatives: [{ id: 1, text: "x" }] }],
    masks: [{ start: 2, end: 8, alternatives: [{ id: 8, text: "睡" }, { id: 9, text: "吃" }] }],
    labels: [{ name: "bad", probability: 0.2 }, { name: "good", probability: 0.8 }],
  };
  const source = { tokens: [{ start: 0, end: 2 }, { start: 2, end: 8 }] };
  assert.deepEqual(questionsOf({ answer_form: "text", output, sides: { source } }, [], "none"), [
    { kind: "token", text: "1 · The", subject: "1", position: 1, others: [["6", "␣"]] },
    { kind: "mask", text: "睡", subject: "1", position: 1, others: [["9", "吃"]] },
    { kind: "label", text: "good", subject: "", position: -1, others: [["bad", "bad"]] }]);
});

test("kinds of entities are remembered by model", () => {
  assert.deepEqual([...knownKinds("m", [{ spans: [span(0, 1, "PER")] }, null])], ["PER"]);
  assert.deepEqual([...knownKinds("m", [{ spans: [span(0, 1, "LOC")] }])], ["PER", "LOC"]);
  assert.deepEqual([...knownKinds("other", [])], []);
});

const MODEL = { attentions: [{ name: "encoder.0.self", n_heads: 2 }, { name: "decoder.0.self", n_heads: 1 }, { name: "decoder.0.cross", n_heads: 1 }, { name: "encoder.1.self", n_heads: 1 }] };

test("heads have names and an order", () => {
  assert.deepEqual(parseHead("decoder.1.cross/3"), { attention: "decoder.1.cross", number: 3, kind: "cross", layer: 1, name: "decoder.1.cross/3" });
  assert.equal(shortName("decoder.1.cross/3", (key) => key), "short_cross 1.3");
  assert.deepEqual(allHeads(MODEL), ["encoder.0.self/0", "encoder.0.self/1", "decoder.0.self/0", "decoder.0.cross/0", "encoder.1.self/0"]);
  assert.deepEqual(headsByKind(MODEL), ["encoder.0.self/0", "encoder.0.self/1", "encoder.1.self/0", "decoder.0.self/0", "decoder.0.cross/0"]);
});

test("heads go off together, and on again only when all of them are off", () => {
  assert.deepEqual(toggled(["a"], ["a", "b"]), ["a", "b"]);
  assert.deepEqual(toggled(["a", "b", "c"], ["a", "b"]), ["c"]);
});

test("random heads are distinct and in order", () => {
  const draws = [0.9, 0, 0.5];
  assert.deepEqual(randomHeads(["a", "b", "c", "d"], 3, () => draws.shift() ?? 0), ["a", "c", "d"]);
  assert.deepEqual(randomHeads(["a"], 5), ["a"]);
});

test("the CSV of heads quotes what needs it and leaves unknown values empty", () => {
  const head = { head: "encoder.0.self/1", role: 'a "b", c', roles: [{ name: "x" }, { name: "y" }], reach: null, values: { entropy: 1.5, sink: NaN }, importance: { low: -1, high: 2 } };
  const [header, row, end] = headsCsv({ measures: [{ id: "entropy" }, { id: "sink" }], heads: [head] }).split("\r\n");
  assert.equal(header, "head,attention,layer,number,role,all_roles,reach,entropy,sink,importance_low,importance_high");
  assert.equal(row, 'encoder.0.self/1,encoder,0,1,"a ""b"", c",x; y,,1.5,,-1,2');
  assert.equal(end, "");
});

test("the tour says how words and characters became tokens", () => {
  const unit = (text, kind, start, end, ...parts) => ({ text, kind, start, end, parts });
  const tokens = [unit("BOS", "special", 0, 0), unit("sleep", "text", 0, 5), unit("ing", "text", 5, 8), unit("▁", "text", 8, 9), unit("<0xe7>", "byte", 9, 10), unit("在睡", "text", 10, 12)];
  const side = {
    text: "sleeping 猫在睡", tokens, words: [unit("sleeping", "text", 0, 8, [1, 1], [2, 1]), unit("猫", "text", 9, 10, [4, 1])],
    characters: [unit("猫", "text", 9, 10, [4, 1]), unit("在", "text", 10, 11, [5, 0.5]), unit("睡", "text", 11, 12, [5, 0.5])],
  };
  assert.equal(specialsOf(t, side), "tour_1_BOS");
  assert.equal(specialsOf(t, { tokens: [unit("CLS", "special", 0, 0)] }), "tour_1_specials CLS");
  assert.equal(specialsOf(t, null), "");
  const said = splittingOf(t, side);
  assert.match(said, /tour_1_split_all 1 0 1 sleeping sleep \+ ing/);
  assert.match(said, /tour_1_joined 3 0 2 1.*tour_1_bytes 3 0 2 1 猫/);
  assert.match(said, /tour_1_space_own/);
});

test("the tour counts at how many tokens the heads look, and finds a row where they differ more", () => {
  const map = (rows) => ({ n_queries: rows.length, n_keys: 3, values: Float32Array.from(rows.flat()) });
  const maps = [map([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0, 1, 0]]), map([[0.6, 0.4, 0], [0.5, 0.4, 0.1], [0, 1, 0]]), null];
  assert.deepEqual(compareTargets(maps, 0, [0, 1, 2]), { n: 2, targets: [0], best: 1, most: 2 });
  assert.deepEqual(compareTargets(maps, 1, [0, 1, 2]), { n: 2, targets: [1, 0], best: null, most: 2 });
  assert.deepEqual(compareTargets(maps, 2, [0, 2]), { n: 2, targets: [1], best: null, most: 1 });
  assert.deepEqual(compareTargets(maps, 2, [9]), { n: 2, targets: [1], best: null, most: 1 });
  assert.equal(compareTargets([maps[0], null], 0, [0]), null);
});
