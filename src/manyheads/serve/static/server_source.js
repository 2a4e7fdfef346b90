/** @import { Problem, Source } from "./types.js" */
// The data from the server of `manyheads lens`.
import { decodeMap, inflate } from "./head_map.js";
import { currentLanguage, t } from "./messages.js";

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
      const found = trace.attentions.find((one) => one.name === attention);
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
