/** @import { Data, HeadMap, Load, Source, Store, Trace, TraceRequest, WalkRow } from "./types.js" */
// Keeps the data of the page current: a new trace when the text changes, an ablation when heads are switched off.
import { asProblem } from "./dom.js";
import { withWords } from "./word_units.js";

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
