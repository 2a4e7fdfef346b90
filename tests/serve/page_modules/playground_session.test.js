// The session of the playground: when requests are sent, which answers count, what failures become.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { createSession } from "#page/playground/session.js";

const CAT = "两只猫正在花园里睡觉。";
let clock, timers, requests, respond;

/** What the server got, and a way to answer it. */
class Request {
  constructor(url, { body, headers, signal }) {
    Object.assign(this, { url, headers, body: body && JSON.parse(body), signal });
    this.answered = new Promise((resolve, reject) => {
      this.answer = resolve;
      this.fail = reject;
      signal?.addEventListener("abort", () => { if (!this.isDeaf) reject(signal.reason); });
    });
  }
}

function storage() {
  const kept = new Map();
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), kept };
}

beforeEach(() => {
  [clock, timers, requests, respond] = [1_000_000, new Map(), [], null];
  let number = 0;
  const add = (run, pause, every) => { timers.set(++number, { run, at: clock + pause, every }); return number; };
  const [localStorage, sessionStorage] = [storage(), storage()];
  Date.now = () => clock;
  Object.assign(globalThis, {
    window: { setTimeout: (run, pause) => add(run, pause, 0), setInterval: (run, pause) => add(run, pause, pause), localStorage, sessionStorage },
    localStorage, sessionStorage, document: { baseURI: "http://127.0.0.1/" },
    clearTimeout: (id) => timers.delete(id), clearInterval: (id) => timers.delete(id),
    fetch: (url, options) => {
      requests.push(new Request(url, options));
      if (respond) requests.at(-1).answer(respond());
      return requests.at(-1).answered;
    },
  });
});

/** Lets everything happen that waits for nothing but its turn. */
const settle = () => new Promise((resolve) => { setImmediate(() => setImmediate(resolve)); });

/** Lets time pass. */
async function pass(milliseconds) {
  for (const end = clock + milliseconds; ;) {
    const next = [...timers].filter(([, timer]) => timer.at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
    if (!next) { clock = end; break; }
    const [id, timer] = next;
    clock = timer.at;
    if (timer.every) timer.at += timer.every;
    else timers.delete(id);
    timer.run();
    await settle();
  }
  await settle();
}

const open = (form = "text", name = form) => createSession({ name, answer_form: form, decode: { method: "greedy" }, languages: [] }, () => {});
const predicted = (answer) => Response.json({ predictions: [{ answer }] });
const events = (...data) => new Response(data.map((one) => `data: ${one}\n\n`).join(""), { headers: { "Content-Type": "text/event-stream" } });
const problem = (status, detail, headers = {}) => Response.json({ status, detail }, { status, headers });

test("only a pause sends a request, with the newest text", async () => {
  const session = open();
  for (let length = 1; length <= CAT.length; length++) {
    session.type(CAT.slice(0, length));
    await pass(240);
  }
  assert.equal(requests.length, 0);
  await pass(20);
  assert.deepEqual(requests.map(({ url, body }) => [url, body.texts]), [["http://127.0.0.1/v1/predict", [CAT]]]);
  assert.ok(session.isBusy);
  requests[0].answer(predicted("cats"));
  await settle();
  assert.equal(session.result?.prediction.answer, "cats");
  assert.equal(session.result?.text, CAT);
  assert.ok(!session.isBusy);
});

test("a changed setting and a changed glossary ask again", async () => {
  respond = () => predicted("x");
  const session = open();
  session.type(CAT);
  await pass(300);
  session.setValue("format", "html");
  session.setTerms([{ source: "猫", target: "cat" }]);
  await pass(300);
  assert.deepEqual(requests.map(({ body }) => [body.format, body.glossary]), [[undefined, undefined], ["html", { 猫: "cat" }]]);
  session.setValue("format", undefined);
  await pass(300);
  assert.equal(requests.at(-1).body.format, undefined);
});

test("an older request is aborted, and an answer that comes too late is dropped", async () => {
  const session = open();
  session.type("猫");
  await pass(300);
  requests[0].isDeaf = true; // it answers although it was aborted
  session.type(CAT);
  await pass(300);
  assert.ok(requests[0].signal.aborted && !requests[1].signal.aborted);
  requests[1].answer(predicted("new"));
  await settle();
  requests[0].answer(predicted("late"));
  await settle();
  assert.equal(session.result?.prediction.answer, "new");
  assert.equal(session.problem, null);
});

test("an aborted request is no problem", async () => {
  const session = open();
  session.type("猫");
  await pass(300);
  session.stop();
  await settle();
  assert.ok(!session.isBusy && session.problem === null && requests[0].signal.aborted);
});

test("an empty text removes the answer without a request", async () => {
  respond = () => predicted("x");
  const session = open();
  session.type(CAT);
  await pass(300);
  session.type("  \n");
  await pass(300);
  assert.equal(session.result, null);
  assert.equal(requests.length, 1);
});

test("a server that is busy is asked again after a countdown, with the newest text", async () => {
  const session = open();
  session.type("猫");
  await pass(300);
  requests[0].answer(problem(429, "The queue is full.", { "Retry-After": "30" }));
  await settle();
  assert.equal(session.problem?.detail, "The queue is full.");
  assert.equal(session.waitUntil, clock + 30_000);
  session.type(CAT); // while it waits, nothing is sent
  await pass(29_000);
  assert.equal(requests.length, 1);
  respond = () => predicted("cats");
  await pass(1500);
  assert.deepEqual(requests.at(-1).body.texts, [CAT]);
  assert.ok(session.waitUntil === 0 && session.problem === null && session.result?.prediction.answer === "cats");
  assert.equal(timers.size, 0);
});

test("the wait is a number of seconds, a date, or one second", async () => {
  const waits = [];
  for (const headers of [{ "Retry-After": "7" }, { "Retry-After": new Date(clock + 9_000).toUTCString() }, { "Retry-After": "soon" }, {}]) {
    const session = open();
    respond = () => problem(429, "full", headers);
    session.type("猫");
    session.run();
    await settle();
    waits.push(session.waitUntil - clock);
    session.release();
  }
  assert.deepEqual(waits, [7000, 9000, 1000, 1000]);
  const session = open();
  respond = () => problem(503, "down");
  session.type("猫");
  session.run();
  await settle();
  assert.equal(session.waitUntil, 0);
});

test("every failure is a problem, and the former result stays", async () => {
  const session = open();
  respond = () => predicted("x");
  session.type(CAT);
  await pass(300);
  const failures = [
    [() => problem(413, "20,001 characters; at most 20,000 are allowed."), { status: 413, detail: "20,001 characters; at most 20,000 are allowed." }],
    [() => new Response("", { status: 502 }), { status: 502, key: "play_status", values: { status: 502 } }],
    [() => new Response("<html>", { status: 502 }), { status: 502, key: "play_status", values: { status: 502 } }],
    [() => Response.json({ bundle: "x" }), { status: 0, key: "play_no_answer" }],
    [() => new Response("no JSON"), { status: 0, key: "play_gone" }],
    [() => Promise.reject(new TypeError("Failed to fetch")), { status: 0, key: "play_gone" }],
  ];
  for (const [answer, expected] of failures) {
    respond = answer;
    session.run();
    await settle();
    for (const [name, value] of Object.entries(expected)) assert.deepEqual(session.problem?.[name], value);
    assert.equal(session.result?.prediction.answer, "x");
  }
  respond = () => predicted("y");
  session.run();
  await settle();
  assert.ok(session.problem === null && session.result?.prediction.answer === "y");
});

test("what cannot be sent is said without a request", async () => {
  const masked = open("masks");
  masked.type("猫在");
  await pass(300);
  assert.equal(masked.problem?.key, "play_no_mask");
  respond = () => predicted("x");
  masked.type("猫在[MASK]");
  await pass(300);
  assert.ok(masked.problem === null && requests.length === 1);
  const beam = open();
  beam.setValue("method", "beam");
  beam.setValue("beam", 0);
  beam.type(CAT);
  await pass(300);
  assert.deepEqual([beam.problem?.key, beam.problem?.values], ["play_wrong_setting", { name: "beam", min: 1, max: 256 }]);
  assert.equal(requests.length, 1);
});

test("a continuation is written only when it is asked for, and streams", async () => {
  const session = open("continuation");
  session.type("一只");
  await pass(1000);
  assert.equal(requests.length, 0);
  respond = () => events('{"delta": "猫"}', '{"delta": "在"}', '{"done": {"answer": "猫在"}}', "[DONE]");
  session.run();
  await settle();
  assert.equal(requests[0].body.stream, true);
  assert.deepEqual(session.streamed, { prompt: "一只", text: "猫在", state: "done" });
  assert.equal(session.result?.prediction.answer, "猫在");
  assert.ok(session.result?.first !== null);
});

test("a stream that breaks keeps what was written; one that was refused leaves nothing", async () => {
  const session = open("continuation");
  session.type("一只");
  respond = () => events('{"delta": "猫"}', '{"delta": "在"}'); // without [DONE]
  session.run();
  await settle();
  assert.deepEqual([session.streamed?.text, session.streamed?.state, session.problem?.key], ["猫在", "stopped", "play_gone"]);
  respond = () => events('{"delta": "狗"}', '{"error": {"status": 504, "detail": "Too slow."}}', "[DONE]");
  session.run();
  await settle();
  assert.deepEqual([session.streamed?.text, session.problem?.status, session.problem?.detail], ["狗", 504, "Too slow."]);
  respond = () => problem(422, "No.");
  session.run();
  await settle();
  assert.deepEqual([session.streamed, session.problem?.detail], [null, "No."]);
});

test("a stopped stream keeps what was written", async () => {
  const session = open("continuation");
  const sent = new TransformStream();
  const writer = sent.writable.getWriter();
  writer.closed.catch(() => {});
  respond = () => new Response(sent.readable);
  session.type("一只");
  session.run();
  void writer.write(new TextEncoder().encode('data: {"delta": "猫"}\n\n')).catch(() => {});
  await settle();
  assert.equal(session.streamed?.state, "running");
  session.stop();
  await settle();
  assert.deepEqual([session.streamed?.text, session.streamed?.state, session.isBusy, session.problem], ["猫", "stopped", false, null]);
});

test("what was typed outlives a reload, by bundle; the glossary outlives the visit", () => {
  const session = open("text", "one");
  session.type("a\r\nb");
  session.setValue("beam", 3);
  session.setTerms([{ source: "猫", target: "cat" }]);
  const again = open("text", "one");
  assert.deepEqual([again.text, again.values, again.terms], ["a\nb", { beam: 3 }, [{ source: "猫", target: "cat" }]]);
  assert.deepEqual([open("text", "other").text, open("text", "other").terms], ["", []]);
  assert.deepEqual([...window.localStorage.kept.keys()], ["manyheads-glossary:one"]);
  window.localStorage.setItem("manyheads-glossary:bad", '[{"source": 1}, {"source": "a", "target": "b"}]');
  window.sessionStorage.setItem("manyheads-playground:bad", "{");
  assert.deepEqual([open("text", "bad").text, open("text", "bad").terms], ["", [{ source: "a", target: "b" }]]);
  Object.defineProperty(window, "localStorage", { get() { throw new Error("no storage"); } });
  assert.deepEqual(open("text", "one").terms, []);
});

test("the key is sent as a header", async () => {
  sessionStorage.setItem("manyheads-key", "secret");
  const session = open();
  session.type(CAT);
  session.run();
  assert.equal(requests[0].headers.Authorization, "Bearer secret");
});

test("an alternative of a mask is chosen until the next answer", async () => {
  respond = () => predicted("x");
  const session = open("masks");
  session.type("[MASK]");
  await pass(300);
  session.choose(0, 2);
  assert.deepEqual(session.chosen, [2]);
  session.run();
  await settle();
  assert.deepEqual(session.chosen, []);
});
