// Messages in the language in use, and values that take their places.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { headTitle, roleOf } from "#page/lens/heads.js";
import { pick, readMessages, registerMessages, sentences, setLanguage, t } from "#page/shared/messages.js";

const english = JSON.parse(readFileSync(new URL("../../../src/manyheads/serve/static/lens/lens_messages.json", import.meta.url), "utf-8"));
const chinese = { kind_encoder: "编码器自注意力", head_title: "{kind}，第 {layer} 层，{head} 号头", sentences: "{before}{after}" };
registerMessages({ en: english, zh: chinese });

test("a message that one language lacks is in English", () => {
  registerMessages({ en: { only_here: "x" } });
  setLanguage("zh");
  assert.equal(t("only_here"), "x");
  registerMessages({ zh: { only_here: "只有" } });
  assert.equal(t("only_here"), "只有");
  setLanguage("en");
});

test("the page contains its messages", () => {
  const element = { textContent: '{"en": {"embedded": "here"}, "zh": {"embedded": "在此"}}' };
  globalThis.document = { getElementById: (id) => (id === "messages" ? element : null) };
  readMessages();
  assert.equal(t("embedded"), "here");
  setLanguage("zh");
  assert.equal(t("embedded"), "在此");
  setLanguage("en");
});

test("sentences are joined as the language does it", () => {
  assert.equal(sentences(t, ["One.", "", "Two.", "Three."]), "One. Two. Three.");
  assert.equal(sentences(t, []), "");
  setLanguage("zh");
  assert.equal(sentences(t, ["一。", "二。"]), "一。二。");
  setLanguage("en");
});

test("values take their places, and an unknown name stays as it is", () => {
  registerMessages({ en: { test_values: "{n} of {all} {rest}" }, zh: { test_values: "" } });
  assert.equal(t("test_values", { n: 0, all: "$&" }), "0 of $& {rest}");
});

test("names are those of the language in use", () => {
  const info = { attentions: [{ name: "decoder.1.cross", kind: "cross" }] };
  const survey = { heads: [{ role: "unknown", names: { en: "unknown", zh: "未知" }, color: "#111111", roles: [{ name: "sink", names: { en: "sink", zh: "汇聚" } }] }] };
  assert.equal(headTitle("decoder.1.cross", 2, info), "Cross-attention, layer 1, head 2");
  assert.equal(headTitle("decoder.0.self", null, info), "Decoder self-attention, layer 0");
  setLanguage("zh");
  assert.equal(headTitle("encoder.0.self", 1, info), "编码器自注意力，第 0 层，1 号头");
  assert.deepEqual(roleOf("sink", survey), { name: "汇聚", color: "#111111" });
  assert.deepEqual(roleOf("unknown", survey), { name: "未知", color: "#111111" });
  assert.deepEqual(roleOf("other", null), { name: "other", color: "#999999" });
  assert.equal(pick({ en: "only English" }), "only English");
  setLanguage("en");
});
