// Every message is there in both languages, and values take their places.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { headTitle, roleOf } from "#page/names.js";
import { incompleteMessages, pick, registerMessages, setLanguage, t } from "#page/messages.js";

const folder = new URL("../../../src/manyheads/serve/static/", import.meta.url);
const scripts = readdirSync(folder).filter((name) => name.endsWith(".js"));
for (const name of scripts.filter((one) => one.endsWith("texts.js"))) await import(`#page/${name}`);

test("every message that a script names exists, in both languages", () => {
  const keys = new Set(scripts.flatMap((name) => [...readFileSync(new URL(name, folder), "utf-8").matchAll(/\bt\("(\w+)"/g)].map(([, key]) => key)));
  assert.ok(keys.size > 100);
  assert.deepEqual([...keys].filter((key) => t(key) === key), []);
  assert.deepEqual(incompleteMessages(), []);
});

test("a message that one language lacks is noticed", () => {
  registerMessages({ en: { only_here: "x" }, zh: {} });
  assert.deepEqual(incompleteMessages(), ["only_here"]);
  setLanguage("zh");
  assert.equal(t("only_here"), "x");
  registerMessages({ en: {}, zh: { only_here: "只有" } });
  assert.equal(t("only_here"), "只有");
  assert.deepEqual(incompleteMessages(), []);
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
