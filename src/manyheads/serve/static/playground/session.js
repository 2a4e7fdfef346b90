// The session of one bundle: what was typed, the requests for it, and their newest answer.
/** @import { Bundle, Draft, PlayProblem, Session, Term, Value } from "./playground_types.js" */
import { asPlayProblem, isAbort, predict, stream } from "./api.js";
import { bodyOf, MASK, wrongSetting } from "./request.js";

const PAUSE = 250; // milliseconds without a key before a request is sent
const TICK = 500;
const FRAME = 40; // milliseconds between two pictures of a stream

/** Whether every change of the text is answered at once. @param {Bundle} bundle */
export const isLive = ({ answer_form }) => answer_form !== "continuation";

/** @param {Bundle} bundle @param {() => void} changed @returns {Session} */
export function createSession(bundle, changed) {
  const draft = readDraft(bundle.name);
  /** @type {AbortController | null} */
  let running = null;
  let newest = 0;
  let planned = 0;
  let ticking = 0;

  /** @type {Session} */
  const session = {
    bundle, text: draft.text, values: draft.values, terms: readTerms(bundle.name),
    result: null, streamed: null, problem: null, waitUntil: 0, isBusy: false, chosen: [],
    type(text) {
      session.text = text.replace(/\r\n?/g, "\n"); // as a text field holds it
      keep();
      plan(PAUSE);
    },
    setValue(name, value) {
      if (value === undefined) delete session.values[name];
      else session.values[name] = value;
      keep();
      plan(PAUSE);
    },
    setTerms(terms) {
      session.terms = terms;
      write("localStorage", termsKey(bundle.name), terms);
      plan(PAUSE);
    },
    choose(mask, guess) {
      session.chosen[mask] = guess;
      changed();
    },
    run,
    stop() {
      if (session.streamed?.state === "running") session.streamed.state = "stopped";
      cancel();
      changed();
    },
    release() {
      clearTimeout(planned);
      clearInterval(ticking);
      session.stop();
    },
  };
  return session;

  function keep() {
    write("sessionStorage", draftKey(bundle.name), { text: session.text, values: session.values });
  }

  /** Older requests are aborted, and an answer that still arrives is dropped. */
  function cancel() {
    newest++;
    running?.abort();
    running = null;
    session.isBusy = false;
  }

  /** @param {number} pause */
  function plan(pause) {
    clearTimeout(planned);
    if (isLive(bundle)) planned = window.setTimeout(run, pause);
    changed();
  }

  function run() {
    clearTimeout(planned);
    if (session.waitUntil) return; // the countdown ends with the newest text
    cancel();
    const local = localProblem();
    if (local || isNothing()) {
      session.problem = local;
      if (!local) session.result = null;
      changed();
      return;
    }
    const number = newest;
    running = new AbortController();
    session.isBusy = true;
    changed();
    (isLive(bundle) ? answer(number, running.signal) : generate(number, running.signal)).then(() => {
      if (number === newest) session.problem = null;
    }, (thrown) => {
      if (number === newest && !isAbort(thrown)) fail(asPlayProblem(thrown));
    }).finally(() => {
      if (number !== newest) return;
      session.isBusy = false;
      changed();
    });
  }

  /** @param {number} number @param {AbortSignal} signal */
  async function answer(number, signal) {
    const { text } = session;
    const started = performance.now();
    const prediction = await predict(bodyOf(session), signal);
    if (number !== newest) return;
    session.result = { text, prediction, milliseconds: performance.now() - started, first: null };
    session.chosen = [];
  }

  /** @param {number} number @param {AbortSignal} signal */
  async function generate(number, signal) {
    const started = performance.now();
    const { text } = session;
    const streamed = { prompt: text, text: "", state: /** @type {"running" | "stopped" | "done"} */ ("running") };
    /** @type {number | null} */
    let first = null;
    let drawn = 0;
    session.streamed = streamed;
    session.result = null;
    try {
      for await (const event of stream(bodyOf(session), signal)) {
        if (number !== newest) return;
        first ??= performance.now() - started;
        streamed.text += event.delta ?? "";
        if (event.done) session.result = { text, prediction: event.done, milliseconds: performance.now() - started, first };
        if (performance.now() - drawn < FRAME) continue;
        drawn = performance.now();
        changed();
      }
      streamed.state = "done";
    } finally {
      if (streamed.state === "running" && session.streamed === streamed) {
        if (signal.aborted || streamed.text) streamed.state = "stopped";
        else session.streamed = null; // refused before the first token
      }
    }
  }

  /** @returns {PlayProblem | null} */
  function localProblem() {
    const wrong = wrongSetting(session);
    if (wrong) return { status: 422, detail: "", key: "play_wrong_setting", values: { name: wrong.name, min: wrong.min ?? 0, max: wrong.max ?? 0 }, retryAfter: 0 };
    if (bundle.answer_form === "masks" && session.text.trim() && !session.text.includes(MASK)) return { status: 422, detail: "", key: "play_no_mask", retryAfter: 0 };
    return null;
  }

  function isNothing() {
    return isLive(bundle) && !session.text.trim();
  }

  /** @param {PlayProblem} problem */
  function fail(problem) {
    session.problem = problem;
    if ((problem.status !== 429 && problem.status !== 503) || !problem.retryAfter) return;
    session.waitUntil = Date.now() + 1000 * problem.retryAfter;
    clearInterval(ticking);
    ticking = window.setInterval(() => {
      if (Date.now() >= session.waitUntil) {
        clearInterval(ticking);
        session.waitUntil = 0;
        run();
      }
      changed();
    }, TICK);
  }
}

const draftKey = (/** @type {string} */ name) => `manyheads-playground:${name}`;
const termsKey = (/** @type {string} */ name) => `manyheads-glossary:${name}`;

/** @typedef {"localStorage" | "sessionStorage"} Place */

/** @param {Place} place @param {string} key @param {unknown} value */
function write(place, key, value) {
  try { window[place].setItem(key, JSON.stringify(value)); } catch { /* full, or none */ }
}

/** @param {Place} place @param {string} key @returns {any} */
function readStored(place, key) {
  try { return JSON.parse(window[place].getItem(key) ?? "null"); } catch { return null; }
}

/** @param {string} name @returns {Draft} */
function readDraft(name) {
  const draft = readStored("sessionStorage", draftKey(name));
  /** @type {Record<string, Value>} */
  const values = draft?.values && typeof draft.values === "object" ? draft.values : {};
  return { text: typeof draft?.text === "string" ? draft.text : "", values };
}

/** @param {string} name @returns {Term[]} */
function readTerms(name) {
  const terms = readStored("localStorage", termsKey(name));
  return Array.isArray(terms) ? terms.filter((term) => typeof term?.source === "string" && typeof term?.target === "string") : [];
}
