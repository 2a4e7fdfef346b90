// Keeps the data of the page current, from the server or from the file that the page is saved in.
/** @import { Problem } from "../shared/types.js" */
/** @import { Data, HeadMap, LensFile, Load, Side, Source, Store, Trace, TraceRequest, Unit, WalkRow } from "./lens_types.js" */
import { asProblem } from "../shared/dom.js";
import { currentLanguage, t } from "../shared/messages.js";
import { decodeBase64, decodeMap, inflate } from "./head_map.js";

// ---------------------------------------------------------------- a new trace when the text changes, an ablation when heads are switched off

const POLL = 1000; // milliseconds between two questions about the survey
const MAX_MAPS = 64; // maps kept, 1 MB each at 512 × 512
const MAX_TRACES = 8;

/**
 * @template T
 * A cache of promises that forgets the oldest entry and every failure.
 * @param {number} limit
 */
function promiseCache(limit) {
  /** @type {Map<string, Promise<T>>} */
  const entries = new Map();
  const get = (/** @type {string} */ key, /** @type {() => Promise<T>} */ make) => {
    let found = entries.get(key);
    if (found) entries.delete(key); // and back in as the newest
    else {
      found = make();
      found.catch(() => entries.delete(key));
    }
    entries.set(key, found);
    if (entries.size > limit) entries.delete(/** @type {string} */ (entries.keys().next().value));
    return found;
  };
  return Object.assign(get, { forget: (/** @type {string} */ key) => entries.delete(key) });
}

/**
 * @param {Store} store @param {Source} source @param {Data} data @param {() => void} changed
 * @returns {Load & { follow(names: ReadonlySet<string>): void }}
 */
export function createLoader(store, source, data, changed) {
  const maps = /** @type {ReturnType<typeof promiseCache<HeadMap>>} */ (promiseCache(MAX_MAPS));
  const walks = /** @type {ReturnType<typeof promiseCache<WalkRow>>} */ (promiseCache(500));
  const traces = /** @type {ReturnType<typeof promiseCache<Trace>>} */ (promiseCache(MAX_TRACES));
  let traceStop = new AbortController();
  let ablationStop = new AbortController();
  let polling = "";
  let n_busy = 0;

  /** @param {TraceRequest} request */
  const keyOf = (request) => JSON.stringify([request.bundle, request.text, request.answer, request.step]);

  /** @type {Map<string, TraceRequest>} */
  const requests = new Map();
  /** @param {TraceRequest} request */
  async function getTrace(request) {
    const trace = await traces(keyOf(request), () => source.trace(request).then(withWords));
    requests.set(trace.id, request);
    return trace;
  }
  /**
   * A server that was started again does not know the traces of its predecessor: traces the text again, once.
   * @template T
   * @param {string} id @param {() => Promise<T>} work @returns {Promise<T>}
   */
  async function revived(id, work) {
    try {
      return await work();
    } catch (thrown) {
      const request = requests.get(id);
      if (!data.info.is_live || !request || asProblem(thrown).status !== 404) throw thrown;
      await source.trace(request);
      return work();
    }
  }

  /** Shows that something is computed, keeps the former result, reports a failure. @param {AbortSignal} signal @param {() => Promise<void>} work */
  async function guarded(signal, work) {
    n_busy += 1;
    data.busy = true;
    changed();
    try {
      await work();
      if (!signal.aborted) data.error = null;
    } catch (thrown) {
      if (!signal.aborted) data.error = asProblem(thrown);
    } finally {
      n_busy -= 1;
      data.busy = n_busy > 0;
      changed();
    }
  }

  function loadTrace() {
    const { bundle, text, answer, step } = store.state;
    traceStop.abort();
    const stop = (traceStop = new AbortController());
    if (!text.trim()) {
      data.error = null;
      changed();
      return;
    }
    void guarded(stop.signal, async () => {
      const request = { bundle, text, answer, step };
      const trace = await getTrace(request);
      if (stop.signal.aborted) return;
      data.trace = trace;
      data.ablation = null;
      data.importance = null;
      changed();
      loadAblation();
    });
  }

  function loadAblation() {
    const { off } = store.state;
    const trace = data.trace;
    ablationStop.abort();
    const stop = (ablationStop = new AbortController());
    if (!trace || off.length === 0) {
      data.ablation = null;
      changed();
      return;
    }
    void guarded(stop.signal, async () => {
      const ablation = await revived(trace.id, () => source.ablate(trace.id, off, stop.signal));
      if (!stop.signal.aborted) data.ablation = ablation;
    });
  }

  async function poll() {
    const bundle = store.state.bundle;
    if (polling === bundle) return;
    polling = bundle;
    while (polling === bundle && store.state.bundle === bundle) {
      try {
        const survey = await source.survey(bundle);
        if (store.state.bundle !== bundle) break;
        data.heads = survey;
        changed();
        if (survey.state !== "running") return; // `polling` stays: asked once is enough
      } catch {
        return; // no survey in this file, or the server is gone: its pages say so
      }
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
    if (polling === bundle) polling = "";
  }

  return {
    retry() {
      const { bundle, text, answer, step } = store.state;
      traces.forget(keyOf({ bundle, text, answer, step }));
      loadTrace();
    },
    trace: getTrace,
    map: (trace, attention, head, kind) =>
      maps(`${trace.id} ${attention} ${head} ${kind}`, () => revived(trace.id, () => source.map(trace, attention, head, kind))),
    walk: (trace, attention, head, query) =>
      walks(`${trace.id} ${attention} ${head} ${query}`, () => revived(trace.id, () => source.walk(trace.id, attention, head, query))),
    async importance() {
      const trace = data.trace;
      if (!trace || data.importance?.trace === trace.id) return;
      const importance = await source.importance(trace.id);
      if (data.trace?.id === trace.id) data.importance = importance;
      changed();
    },
    survey: () => void poll(),
    follow(names) {
      if (names.has("bundle")) {
        data.info = data.model.bundles.find((one) => one.id === store.state.bundle) ?? data.model.bundles[0];
        data.heads = null;
        polling = "";
        void poll();
      }
      if (["bundle", "text", "answer", "step"].some((name) => names.has(name))) loadTrace();
      else if (names.has("off")) loadAblation();
    },
  };
}

// ---------------------------------------------------------------- words of text without spaces

const NO_SPACES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;

/** Joins the characters of each word. @param {Side} side @returns {Unit[]} */
function wordsOf(side) {
  const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
  // Offsets of units count code points, those of the segmenter UTF-16 units.
  /** @type {number[]} */
  const segmentAt = [];
  let segment = 0;
  for (const { segment: text } of segmenter.segment(side.text)) {
    for (const _ of text) segmentAt.push(segment);
    segment++;
  }
  const characters = Array.from(side.text);
  /** @type {Unit[]} */
  const words = [];
  let last = -1;
  for (const unit of side.characters) {
    const here = unit.kind === "special" || unit.end <= unit.start ? -1 : segmentAt[unit.start] ?? -1;
    const word = words.at(-1);
    if (word && here >= 0 && here === last) {
      word.end = unit.end;
      word.text = characters.slice(word.start, word.end).join("");
      word.parts = merged([...word.parts, ...unit.parts]);
      if (unit.kind === "text") word.kind = "text";
    } else {
      words.push({ ...unit, parts: [...unit.parts] });
    }
    last = here;
  }
  return words;
}

/** Adds up the shares of each token. @param {[number, number][]} parts @returns {[number, number][]} */
function merged(parts) {
  /** @type {Map<number, number>} */
  const shares = new Map();
  for (const [position, share] of parts) shares.set(position, (shares.get(position) ?? 0) + share);
  return [...shares];
}

/** Replaces the words of every side whose script has no spaces. @param {Trace} trace @returns {Trace} */
export function withWords(trace) {
  if (!("Segmenter" in Intl)) return trace;
  const { source, target, written } = trace.sides;
  for (const side of [source, target, written]) {
    if (side && NO_SPACES.test(side.text)) side.words = wordsOf(side);
  }
  return trace;
}

// ---------------------------------------------------------------- the server of `manyheads lens`

/** @param {string} path */
const address = (path) => new URL(`api/${path}`, document.baseURI).href;

/** @param {Response} response @returns {Promise<Problem>} */
async function problemOf(response) {
  try {
    const body = await response.json();
    if (typeof body?.detail === "string") return { title: String(body.title ?? ""), status: response.status, detail: body.detail };
  } catch { /* not JSON */ }
  return { title: response.statusText, status: response.status, detail: t("server_status", { status: response.status }) };
}

/** @param {string} path @param {Omit<RequestInit, "headers"> & { headers?: Record<string, string> }} [options] */
async function ask(path, options) {
  /** @type {Response} */
  let response;
  try {
    // Problems are reported in the language of the page.
    response = await fetch(address(path), { ...options, headers: { ...options?.headers, "Accept-Language": currentLanguage() } });
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === "AbortError") throw thrown;
    /** @type {Problem} */
    const problem = { title: "offline", status: 0, detail: t("server_gone") };
    throw problem;
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] */
async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return (await ask(path, { method: "POST", headers, body: JSON.stringify(body), signal })).json();
}

/** @param {string} path */
const get = async (path) => (await ask(path)).json();

/** @returns {Source} */
export function serverSource() {
  const part = encodeURIComponent;
  return {
    model: () => get("model"),
    trace: (request, signal) => post("trace", request, signal),
    async map(trace, attention, head, kind) {
      const response = await ask(`traces/${part(trace.id)}/heads/${part(attention)}/${head}/${kind}`);
      const scale = Number(response.headers.get("X-Scale") ?? 1);
      const found = trace.attentions.find((traced) => traced.name === attention);
      return decodeMap(await inflate(response.body), scale, found?.n_queries ?? 0, found?.n_keys ?? 0);
    },
    ablate: (trace, heads, signal) => post("ablate", { trace, heads }, signal),
    importance: (trace) => post("importance", { trace }),
    contrast: (trace, position, instead) => post("contrast", { trace, position, instead }),
    walk: (trace, attention, head, query) => get(`traces/${part(trace)}/walk/${part(attention)}/${head}/${query}`),
    survey: (bundle) => get(`heads?bundle=${part(bundle)}`),
    examples: (bundle, attention, head) => get(`heads/${part(attention)}/${head}/examples?bundle=${part(bundle)}`),
    effect: (bundle, attention, head) => get(`heads/${part(attention)}/${head}/effect?bundle=${part(bundle)}`),
    timeline: (bundle) => get(`timeline?bundle=${part(bundle)}`),
    stored: () => [],
    pictureUrl: (trace, attention, head, request) =>
      address(`traces/${part(trace)}/picture/${part(attention)}/${head}?${new URLSearchParams(request)}`),
    pageUrl: (trace) => address(`traces/${part(trace)}/page.html`),
  };
}

// ---------------------------------------------------------------- a saved page

/** @returns {Promise<never>} */
function missing() {
  /** @type {Problem} */
  const problem = { title: "not in this file", status: 404, detail: t("not_in_file") };
  return Promise.reject(problem);
}

/** @template T @param {T | null | undefined} value @returns {Promise<T>} */
const found = (value) => (value === null || value === undefined ? missing() : Promise.resolve(value));

/** @returns {LensFile} */
function read() {
  try {
    const file = JSON.parse(document.getElementById("lens-data")?.textContent ?? "");
    if (file?.model?.bundles?.length && Array.isArray(file.traces)) return file;
  } catch { /* reported below */ }
  /** @type {Problem} */
  const problem = { title: "bad file", status: 422, detail: t("bad_file") };
  throw problem;
}

/** @returns {Source} */
export function fileSource() {
  /** @type {LensFile} */
  let file;
  return {
    async model() {
      file = read();
      return file.model;
    },
    trace(request) {
      const candidates = file.traces.filter((trace) => trace.bundle === request.bundle && trace.text === request.text && trace.step === request.step);
      return found(candidates.find((candidate) => request.answer === null || candidate.answer === request.answer));
    },
    async map(trace, attention, head, kind) {
      const stored = await found(file.maps?.[trace.id]?.[`${attention}/${head}`]);
      const shape = trace.attentions.find((traced) => traced.name === attention);
      const bytes = await inflate(new Blob([decodeBase64(stored.weights.data)]).stream());
      const map = decodeMap(bytes, stored.weights.scale, shape?.n_queries ?? 0, shape?.n_keys ?? 0);
      // The norm of what a key contributes is its weight times the norm of its value: the file has one number per key.
      if (kind === "norms") map.values.forEach((weight, i) => { map.values[i] = weight * stored.value_norms[i % map.n_keys]; });
      return map;
    },
    ablate: (trace, heads) => {
      const wanted = [...heads].sort().join();
      const entries = Object.entries(file.ablations?.[trace] ?? {});
      return found(entries.find(([key]) => key.split(",").sort().join() === wanted)?.[1]);
    },
    importance: (trace) => found(file.importance?.[trace]),
    contrast: missing,
    walk: (trace, attention, head, query) => found(file.walks?.[trace]?.[`${attention}/${head}/${query}`]),
    survey(bundle) {
      const survey = file.survey;
      if (survey && "heads" in survey && Array.isArray(survey.heads)) return found(/** @type {any} */ (survey));
      return found(/** @type {Record<string, any> | null} */ (survey)?.[bundle]);
    },
    examples: (_bundle, attention, head) => found(file.examples?.[`${attention}/${head}`]),
    effect: missing,
    timeline: missing,
    stored: () => file.traces,
    pictureUrl: () => null,
    pageUrl: () => null,
  };
}
