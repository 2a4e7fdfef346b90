// What the playground sends: requests, command lines, glossaries; and how it reads streams.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { placesOf } from "#page/playground/alignment.js";
import { splitEvents } from "#page/playground/api.js";
import { examplesOf } from "#page/playground/view.js";
import { parseTsv, writeTsv } from "#page/playground/glossary.js";
import { bodyOf, curlOf, valuesOf, wrongSetting } from "#page/playground/request.js";

const DECODE = { method: "beam", beam: 4, n_best: 1, temperature: 1, top_p: 1, seed: 1 };
const session = (form, values = {}, { terms = [], decode = {} } = {}) => ({ bundle: { name: "b", answer_form: form, decode: { ...DECODE, ...decode } }, text: "x", values, terms });
const body = (...given) => bodyOf(session(...given));
const USUAL = { bundle: "b", texts: ["x"] };

test("only what differs from the bundle is sent", () => {
  assert.deepEqual(body("text"), { ...USUAL, n_best: 3, align: true });
  assert.deepEqual(body("text", { n_best: 1, align: false }), USUAL);
  assert.deepEqual(body("text", { n_best: 6 }).decode, { beam: 6 });
  assert.deepEqual(body("text", { method: "greedy" }), { ...USUAL, align: true, decode: { method: "greedy" } });
  assert.deepEqual(body("text", { length_penalty: 1.5 }).decode, { length_penalty: 1.5 });
  assert.deepEqual(body("text", { method: "beam", n_best: 5 }, { decode: { method: "greedy" } }).decode, { method: "beam", beam: 5 });
  assert.deepEqual(body("spans"), USUAL);
  assert.equal(body("labels", { threshold: 0.5 }).threshold, 0.5);
  assert.equal(valuesOf(session("labels")).threshold, 0);
});

test("a continuation is sampled, since a beam search does not stream", () => {
  assert.deepEqual(body("continuation").decode, { method: "sample" });
  assert.ok(!("decode" in body("continuation", {}, { decode: { method: "greedy" } })));
  assert.deepEqual(body("continuation", { top_p: 0.9 }, { decode: { method: "sample" } }).decode, { top_p: 0.9 });
  const given = { method: "sample", temperature: 9, max_new_tokens: 1000, seed: 3 };
  assert.deepEqual(body("continuation", given, { decode: { method: "greedy" } }).decode, given);
});

test("incomplete rows of the glossary are left out", () => {
  const terms = [{ source: " cat ", target: "猫" }, { source: "dog", target: " " }, { source: "", target: "鸟" }];
  assert.deepEqual(body("text", {}, { terms }).glossary, { cat: "猫" });
  assert.ok(!("glossary" in body("text", { glossary: false }, { terms })));
  const html = body("text", { format: "html", keep: "a\n\n b \na" });
  assert.ok(html.format === "html" && !("align" in html));
  assert.deepEqual(html.keep, ["a", "b"]);
});

test("a setting that is no number or out of its range is named, unless it is not in use", () => {
  const wrong = (form, values) => wrongSetting(session(form, values))?.name ?? null;
  assert.deepEqual([0, 257, 1.5, NaN, "4"].map((beam) => wrong("text", { beam })), Array(5).fill("beam"));
  assert.equal(wrong("text", { beam: 256, n_best: 50 }), null);
  assert.equal(wrong("text", { beam: 0, method: "greedy" }), null);
  assert.equal(wrong("continuation", { temperature: 0 }), "temperature");
  assert.equal(wrong("continuation", { temperature: 0.5 }), null);
});

test("the command line sends the same body from a real shell", () => {
  for (const text of ["it's", '$HOME `id` \\ "', "一行\n两行\t🙂", "'; rm -rf / #"]) {
    const command = curlOf("http://h/v1/predict", { bundle: "b", texts: [text], stream: true }, true);
    const words = execFileSync("sh", ["-c", `curl() { printf '%s\\0' "$@"; }\n${command}`], { encoding: "utf-8", env: { ...process.env, MANYHEADS_KEY: "secret" } }).split("\0");
    assert.deepEqual(words.slice(0, 2), ["-N", "http://h/v1/predict"]);
    assert.deepEqual(JSON.parse(words[words.indexOf("-d") + 1]), { bundle: "b", texts: [text], stream: true });
    assert.ok(words.includes("Authorization: Bearer secret") && !command.includes("secret"));
  }
  assert.ok(!curlOf("http://h", { bundle: "b", texts: [] }, false).includes("Authorization"));
});

test("a glossary survives its file", () => {
  const file = writeTsv([{ source: "a\tb", target: " 猫 " }, { source: "x", target: "" }]);
  assert.deepEqual(parseTsv(file), { terms: [{ source: "a b", target: "猫" }], wrongLine: 0 });
  assert.deepEqual(parseTsv("\ufeffa\tb\tc\r\n\r\n# a comment\rd\te"), { terms: [{ source: "a", target: "b" }, { source: "d", target: "e" }], wrongLine: 0 });
  assert.equal(parseTsv("a\tb\nc").wrongLine, 2);
});

test("events are split wherever the stream is cut", () => {
  const text = 'data: {"a": 1}\n\n: a comment\n\ndata: two\ndata: lines\r\n\r\ndata: [DONE]\n\n';
  for (let cut = 0; cut < text.length; cut++) {
    const [first, rest] = splitEvents(text.slice(0, cut));
    const [second, left] = splitEvents(rest + text.slice(cut));
    assert.deepEqual([...first, ...second, left], ['{"a": 1}', "two\nlines", "[DONE]", ""]);
  }
});

test("words are found one after the other", () => {
  assert.deepEqual(placesOf("the 🙂 cat the", ["the", "🙂", "dog", "the"]), [{ start: 0, end: 3 }, { start: 4, end: 6 }, null, { start: 11, end: 14 }]);
});

test("examples are in the language that the bundle reads", () => {
  const chinese = examplesOf({ answer_form: "text", languages: ["zh-CN", "en"] });
  assert.ok(chinese.length > 1 && chinese.every((text) => /^\p{Script=Han}/u.test(text)));
  assert.deepEqual(examplesOf({ answer_form: "spans", languages: ["en"], examples: ["own"] }), ["own"]);
  assert.deepEqual(examplesOf({ answer_form: "spans", languages: ["xx"] }), []);
  assert.equal(examplesOf({ answer_form: "spans", languages: [] }).length, 2);
});
