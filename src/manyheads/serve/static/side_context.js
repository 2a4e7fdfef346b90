// One side of a comparison: a view on the page's state with a text, a bundle and pins of its own.
/** @import { Context, Data, State, Store, Trace } from "./types.js" */
import { asProblem } from "./dom.js";
import { headTitle } from "./names.js";

/** Changes of these stay within the side. */
const OWN = /** @type {const} */ (["pins", "keyPins", "at"]);

/**
 * @param {Context} context
 * @param {() => { bundle: string, text: string }} chosen what this side shows
 * @param {() => void} changed
 */
export function sideContext(context, chosen, changed) {
  /** @type {Partial<State>} */
  let own = { pins: [], keyPins: [], at: null };
  /** @type {Trace | null} */
  let trace = null;
  let key = "";
  let problem = "";
  /** @type {Store} */
  const store = {
    get state() { return { ...context.store.state, ...chosen(), answer: null, step: null, off: [], ...own }; },
    set(change, options) {
      const mine = Object.fromEntries(OWN.flatMap((name) => (name in change ? [[name, change[name]]] : [])));
      const others = Object.fromEntries(Object.entries(change).filter(([name]) => !OWN.some((one) => one === name)));
      own = { ...own, ...mine };
      if (Object.keys(others).length) context.store.set(others, options);
      else changed();
    },
    subscribe: (listener) => context.store.subscribe(listener),
    address: (change) => context.store.address({ page: "text", ...chosen(), ...change }),
  };
  /** @type {Data} */
  const data = {
    model: context.data.model,
    get info() { return context.data.model.bundles.find((one) => one.id === chosen().bundle) ?? context.data.info; },
    get trace() { return trace; },
    busy: false, error: null, ablation: null, importance: null,
    get heads() { return chosen().bundle === context.store.state.bundle ? context.data.heads : null; },
  };
  /** @type {Context} */
  const side = { ...context, store, data, headTitle: (attention, head) => headTitle(attention, head, data.info) };
  return {
    context: side,
    get trace() { return trace; },
    get problem() { return problem; },
    /** Load what this side shows, if it is not there. */
    follow() {
      const { bundle, text } = chosen();
      const now = JSON.stringify([bundle, text]);
      if (now === key) return;
      key = now;
      problem = "";
      own = { pins: [], keyPins: [], at: null };
      if (!text.trim()) {
        trace = null;
        return;
      }
      context.load.trace({ bundle, text, answer: null, step: null }).then((found) => {
        if (key !== now) return;
        trace = found;
        changed();
      }).catch((thrown) => {
        if (key !== now) return;
        trace = null;
        problem = asProblem(thrown).detail;
        changed();
      });
    },
  };
}
