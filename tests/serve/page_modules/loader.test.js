// The data of the lens page: newest text first, former results stay, a restarted server is asked again.
import assert from "node:assert/strict";
import { test } from "node:test";

import { createLoader } from "#page/lens/loader.js";
import { sideContext } from "#page/lens/compare_page.js";

const settle = () => new Promise((resolve) => { setImmediate(() => setImmediate(resolve)); });
const deferred = () => { const one = {}; one.promise = new Promise((resolve, reject) => Object.assign(one, { resolve, reject })); return one; };
const traceOf = (text) => ({ id: `trace of ${text}`, text, sides: {}, attentions: [] });

/** A page with a source whose answers a test gives. */
function page(source = {}, state = {}) {
  const store = { state: { bundle: "a", text: "cat", answer: null, step: null, off: [], ...state } };
  const bundles = [{ id: "a", is_live: true }, { id: "b", is_live: true }];
  const data = { model: { bundles }, info: bundles[0], trace: null, ablation: null, importance: null, heads: null, busy: false, error: null };
  const loader = createLoader(store, { trace: async ({ text }) => traceOf(text), ablate: async (trace, heads) => ({ trace, heads }), ...source }, data, () => {});
  const set = (change) => { Object.assign(store.state, change); loader.follow(new Set(Object.keys(change))); };
  return { store, data, loader, set };
}

test("the newest text wins, even if an older answer comes later", async () => {
  const answers = { cat: deferred(), dog: deferred() };
  const { data, set } = page({ trace: ({ text }) => answers[text].promise });
  set({ text: "cat" });
  set({ text: "dog" });
  assert.ok(data.busy);
  answers.dog.resolve(traceOf("dog"));
  await settle();
  answers.cat.resolve(traceOf("cat"));
  await settle();
  assert.equal(data.trace?.text, "dog");
  assert.ok(!data.busy);
});

test("a failure is reported, the former result stays, and the next success removes it", async () => {
  const { data, set, loader } = page({ trace: async ({ text }) => { if (text === "bad") throw { title: "x", status: 422, detail: "Too long." }; return traceOf(text); } });
  set({ text: "cat" });
  await settle();
  set({ text: "bad" });
  await settle();
  assert.deepEqual([data.trace?.text, data.error?.detail], ["cat", "Too long."]);
  set({ text: "dog" });
  await settle();
  assert.deepEqual([data.trace?.text, data.error], ["dog", null]);
  set({ text: " " });
  await settle();
  assert.equal(data.trace?.text, "dog");
  loader.retry();
});

test("heads that are switched off are ablated, also after the text changes", async () => {
  const { data, set } = page();
  set({ text: "cat" });
  await settle();
  set({ off: ["encoder.0.self/0"] });
  await settle();
  assert.deepEqual(data.ablation, { trace: "trace of cat", heads: ["encoder.0.self/0"] });
  set({ text: "dog" });
  await settle();
  assert.equal(data.ablation?.trace, "trace of dog");
  set({ off: [] });
  await settle();
  assert.equal(data.ablation, null);
});

test("traces, maps and rows are asked for once, and again after a failure", async () => {
  const asked = [];
  let isBroken = true;
  const { loader } = page({
    trace: async ({ text }) => { asked.push(text); return traceOf(text); },
    map: async (_trace, attention, head, kind) => { asked.push(`${attention} ${head} ${kind}`); if (isBroken) throw new Error("broken"); return {}; },
    walk: async (_trace, attention, head, query) => { asked.push(`row ${query}`); return {}; },
  });
  const request = { bundle: "a", text: "cat", answer: null, step: null };
  const trace = await loader.trace(request);
  await loader.trace(request);
  await assert.rejects(() => loader.map(trace, "x", 0, "weights"));
  isBroken = false;
  await loader.map(trace, "x", 0, "weights");
  await loader.map(trace, "x", 0, "weights");
  await loader.walk(trace, "x", 0, 2);
  await loader.walk(trace, "x", 0, 2);
  assert.deepEqual(asked, ["cat", "x 0 weights", "x 0 weights", "row 2"]);
  for (let i = 0; i < 8; i++) await loader.trace({ ...request, text: String(i) });
  await loader.trace(request); // the oldest was forgotten
  assert.equal(asked.filter((one) => one === "cat").length, 2);
});

test("a server that was started again traces the text again, once", async () => {
  let n_traces = 0;
  let n_maps = 0;
  const gone = { title: "", status: 404, detail: "no such trace" };
  const { loader } = page({
    trace: async ({ text }) => { n_traces += 1; return traceOf(text); },
    map: async () => { n_maps += 1; if (n_traces < 2) throw gone; return { values: [] }; },
    walk: async () => { throw gone; },
  });
  const trace = await loader.trace({ bundle: "a", text: "cat", answer: null, step: null });
  assert.deepEqual(await loader.map(trace, "x", 0, "weights"), { values: [] });
  assert.deepEqual([n_traces, n_maps], [2, 2]);
  await assert.rejects(() => loader.walk(trace, "x", 0, 0), (thrown) => thrown === gone);
});

test("importance belongs to its text", async () => {
  const answers = [];
  const { data, set, loader } = page({ importance: (trace) => { answers.push(deferred()); return answers.at(-1).promise.then(() => ({ trace })); } });
  set({ text: "cat" });
  await settle();
  const asked = loader.importance();
  set({ text: "dog" });
  await settle();
  answers[0].resolve();
  await asked;
  assert.equal(data.importance, null);
  const again = loader.importance();
  answers[1].resolve();
  await again;
  await loader.importance();
  assert.deepEqual([data.importance?.trace, answers.length], ["trace of dog", 2]);
});

test("another bundle has its own survey", async () => {
  const asked = [];
  const { data, set, loader } = page({ survey: async (bundle) => { asked.push(bundle); return { state: "done", bundle }; } });
  loader.survey();
  loader.survey();
  await settle();
  assert.deepEqual([asked, data.heads?.bundle], [["a"], "a"]);
  set({ bundle: "b" });
  await settle();
  assert.deepEqual([asked, data.heads?.bundle, data.info.id], [["a", "b"], "b", "b"]);
});

test("a side of a comparison has pins of its own and shares the rest", async () => {
  const { store, data, loader } = page({}, { pins: [1], keyPins: [], at: null, attention: "x" });
  const outer = [];
  store.set = (change) => outer.push(change);
  store.address = (change) => change;
  let chosen = { bundle: "b", text: "dog" };
  let n_changed = 0;
  const side = sideContext({ store, data, load: loader }, () => chosen, () => { n_changed += 1; });
  side.follow();
  side.follow();
  await settle();
  assert.deepEqual([side.trace?.text, n_changed, side.context.data.info.id], ["dog", 1, "b"]);
  side.context.store.set({ pins: [4] });
  side.context.store.set({ attention: "y", at: 2 });
  assert.deepEqual([side.context.store.state.pins, side.context.store.state.at, outer], [[4], 2, [{ attention: "y" }]]);
  assert.deepEqual(side.context.store.address({ head: 1 }), { page: "text", bundle: "b", text: "dog", head: 1 });
  chosen = { bundle: "b", text: "" };
  side.follow();
  assert.deepEqual([side.trace, side.context.store.state.pins], [null, []]);
});
