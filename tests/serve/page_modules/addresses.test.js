// What the address keeps, and when it enters the browser's history.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as playground from "#page/playground/address.js";
import { createStore, defaultState, readAddress, writeAddress } from "#page/lens/store.js";

const STATE = {
  page: "tour", bundle: "b", text: 'a&b=c#d "猫" 🙂', answer: "x y", step: 150, text2: "他", attention: "decoder.0.cross", head: 1,
  pins: [3, 1], keyPins: [0], off: ["encoder.0.self/2"], unit: "characters", kind: "norms", sinks: false, mass: 0.5, at: 4, colorBy: "importance",
  lang: "zh", theme: "dark", tour: 3, compare: "training", differBy: "sink", axisX: "sink", axisY: "entropy", onlyRole: "a role", onlyKind: "cross",
  find: "1.1", groupBy: "layer", sortBy: "-entropy",
};

test("an address restores every part of the state", () => {
  assert.deepEqual(Object.keys(STATE), Object.keys(defaultState()));
  for (const [name, value] of Object.entries(STATE)) assert.notDeepEqual(value, defaultState()[name], name);
  assert.deepEqual(readAddress(writeAddress(STATE)), STATE);
});

test("what is as usual is left out, except the text and the language", () => {
  assert.equal(writeAddress(defaultState()), "#text=&lang=en");
});

test("bad values are ignored, one by one", () => {
  const bad = "#page=x&head=-1&mass=7&pins=a,2&off=../etc,encoder.0.self/1&unit=bytes&attention=<b>&lang=fr&surprise=1&sortBy=no such measure"
    + "&bundle=z&at=x&color=none&theme=5&sinks=2&axisX=?&onlyKind=x&compare=y&groupBy=z&step=1.5&tour=-1";
  assert.deepEqual(readAddress(bad), { pins: [2], off: ["encoder.0.self/1"] });
  assert.deepEqual(readAddress("#mass=NaN&mass=0"), {});
  assert.equal(readAddress(`#text=${"x".repeat(200_000)}`).text?.length, 100_000);
  assert.equal(readAddress(`#find=${"x".repeat(200)}&onlyRole=${"y".repeat(200)}`).find?.length, 80);
});

/** A window with an address, a history, a storage, and timers that a test lets run out. */
function fakeWindow(hash = "", stored = {}, dataset = {}) {
  const timers = new Map();
  const entries = [];
  let listener;
  let clock = 1_000_000;
  const fake = {
    entries, stored,
    go(hash, state) { fake.location.hash = hash; listener({ state }); },
    pass(milliseconds) {
      clock += milliseconds;
      for (const [id, run] of [...timers]) { timers.delete(id); run(); }
    },
    location: { hash },
  };
  Date.now = () => clock;
  const add = (kind) => (state, _title, url) => { fake.location.hash = url; entries.push([kind, state, url]); };
  Object.assign(globalThis, {
    window: { setTimeout: (run) => { const id = timers.size + 1 + Math.random(); timers.set(id, run); return id; } },
    clearTimeout: (id) => timers.delete(id),
    location: fake.location, history: { pushState: add("push"), replaceState: add("replace") },
    document: { documentElement: { dataset } },
    addEventListener: (name, run) => { assert.equal(name, "popstate"); listener = run; },
    localStorage: { getItem: (key) => stored[key] ?? null, setItem: (key, value) => { stored[key] = value; } },
  });
  return fake;
}

test("a step makes an entry in the history; a small change replaces it, a few times per second", () => {
  const fake = fakeWindow("#text=cat");
  const store = createStore();
  const told = [];
  store.subscribe((changed) => told.push([...changed]));
  store.set({ attention: "encoder.0.self", head: 1 });
  store.set({ mass: 0.5 });
  store.set({ mass: 0.4 });
  store.set({ mass: 0.4 }); // no change
  assert.deepEqual(told, [["attention", "head"], ["mass"], ["mass"]]);
  assert.deepEqual(fake.entries.map(([kind]) => kind), ["push"]);
  fake.pass(300);
  assert.deepEqual(fake.entries.map(([kind]) => kind), ["push", "replace"]);
  assert.match(fake.location.hash, /mass=0.4/);
  store.set({ text: "dog" }, { isMinor: true });
  fake.pass(300);
  assert.equal(fake.entries.at(-1)?.[0], "replace");
});

test("going back keeps the language; an address that was pasted sets it", () => {
  const fake = fakeWindow("#text=cat&lang=en");
  const store = createStore();
  const told = [];
  store.set({ text: "dog" });
  store.set({ lang: "zh" });
  store.subscribe((changed) => told.push([...changed].sort()));
  fake.go("#text=cat&lang=en", "lens");
  assert.equal(store.state.text, "cat");
  assert.equal(store.state.lang, "zh");
  fake.go("#text=bird&lang=en&pins=1", null);
  assert.equal(store.state.lang, "en");
  assert.deepEqual(store.state.pins, [1]);
  assert.deepEqual(told, [["text"], ["lang", "pins", "text"]]);
});

test("the state starts from the last visit, the saved page and the address, in this order", () => {
  fakeWindow("#theme=light", { "manyheads-lens": "lang=zh&theme=dark" }, { state: "#text=saved&theme=auto&head=1" });
  const { state } = createStore();
  assert.deepEqual([state.lang, state.theme, state.text, state.head], ["zh", "light", "saved", 1]);
  fakeWindow("", {}, { language: "zh" });
  assert.equal(createStore().state.lang, "zh");
});

test("language and theme are remembered for the next visit, and a link has a changed state", () => {
  const fake = fakeWindow("#text=cat");
  const store = createStore();
  store.set({ theme: "dark" });
  assert.equal(fake.stored["manyheads-lens"], "lang=en&theme=dark");
  assert.deepEqual(readAddress(store.address({ page: "head" })), { page: "head", text: "cat", lang: "en", theme: "dark" });
});

test("the address of the playground keeps the bundle and the language, never a text", () => {
  assert.deepEqual(playground.readAddress("#bundle=a%26b&lang=zh&theme=dark&text=secret"), { bundle: "a&b", lang: "zh", theme: "dark" });
  assert.deepEqual(playground.readAddress(`#bundle=${"x".repeat(300)}&lang=fr&theme=<b>`), {});
  assert.equal(playground.writeAddress({ bundle: "a&b", lang: "zh", theme: "dark" }), "#bundle=a%26b&lang=zh");
  const fake = fakeWindow("#bundle=x", { "manyheads-lens": "lang=zh&theme=dark" });
  Object.defineProperty(globalThis, "navigator", { value: { language: "en-US" }, configurable: true });
  assert.deepEqual(playground.startState(), { bundle: "x", lang: "zh", theme: "dark" });
  playground.remember({ bundle: "x", lang: "en", theme: "auto" });
  assert.equal(fake.stored["manyheads-lens"], "lang=en&theme=auto");
});
