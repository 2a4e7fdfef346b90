// Requests to the server of `manyheads serve`: JSON, and server-sent events. Every failure is a PlayProblem.
/** @import { Bundle, PlayProblem, Prediction } from "./playground_types.js" */
import { currentLanguage } from "../shared/messages.js";

const KEY = "manyheads-key"; // in sessionStorage
const SHORTEST_WAIT = 1; // seconds, where a 429 does not say how long

/** @typedef {{ bundle: string, texts: string[], [name: string]: unknown }} Body */
/** @typedef {{ delta?: string, done?: Prediction, error?: { status?: number, detail?: string }, detail?: string, status?: number }} StreamEvent */

/** @param {string} path */
export const address = (path) => new URL(path, document.baseURI).href;

/** @returns {string} */
export function storedKey() {
  try { return sessionStorage.getItem(KEY) ?? ""; } catch { return ""; }
}

/** @param {string} key */
export function storeKey(key) {
  try { sessionStorage.setItem(KEY, key); } catch { /* it is asked for again */ }
}

/** @param {number} status @param {string} detail @param {Partial<PlayProblem>} [more] @returns {PlayProblem} */
const problem = (status, detail, more = {}) => ({ status, detail, retryAfter: 0, ...more });

/** @param {unknown} thrown @returns {thrown is PlayProblem} */
function isProblem(thrown) {
  return typeof thrown === "object" && thrown !== null && "status" in thrown && "retryAfter" in thrown;
}

/** Whatever was thrown, as a problem. @param {unknown} thrown */
export function asPlayProblem(thrown) {
  return isProblem(thrown) ? thrown : problem(0, thrown instanceof Error ? thrown.message : String(thrown));
}

/** @param {unknown} thrown */
export const isAbort = (thrown) => thrown instanceof DOMException && thrown.name === "AbortError";

const gone = () => problem(0, "", { key: "play_gone" });

/** @param {Response} response @returns {Promise<PlayProblem>} */
async function problemOf(response) {
  const retryAfter = waitOf(response);
  try {
    const body = await response.json();
    if (typeof body?.detail === "string" && body.detail) return problem(response.status, body.detail, { retryAfter });
  } catch { /* not JSON */ }
  return problem(response.status, "", { key: "play_status", values: { status: response.status }, retryAfter });
}

/** Seconds to wait: Retry-After is a number of seconds or a date. @param {Response} response */
function waitOf(response) {
  const header = response.headers.get("Retry-After");
  if (header === null) return response.status === 429 ? SHORTEST_WAIT : 0;
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(SHORTEST_WAIT, Math.ceil(seconds)) : SHORTEST_WAIT;
}

/** @param {string} path @param {AbortSignal} [signal] @param {Body} [body] */
async function ask(path, signal, body) {
  const key = storedKey();
  /** @type {Record<string, string>} */
  const headers = { "Accept-Language": currentLanguage() };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  /** @type {Response} */
  let response;
  try {
    response = await fetch(address(path), { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (thrown) {
    throw isAbort(thrown) ? thrown : gone();
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** @template T @param {Promise<T>} reading @returns {Promise<T>} */
async function read(reading) {
  try {
    return await reading;
  } catch (thrown) {
    throw isAbort(thrown) ? thrown : gone();
  }
}

/** @returns {Promise<Bundle[]>} */
export async function fetchBundles() {
  return (await read((await ask("v1/bundles")).json())).bundles;
}

/** @param {Body} body @param {AbortSignal} signal @returns {Promise<Prediction>} */
export async function predict(body, signal) {
  const answer = await read((await ask("v1/predict", signal, body)).json());
  const prediction = answer?.predictions?.[0];
  if (!prediction) throw problem(0, "", { key: "play_no_answer" });
  return prediction;
}

/** The events of a stream, until [DONE]. @param {Body} body @param {AbortSignal} signal @returns {AsyncGenerator<StreamEvent>} */
export async function* stream(body, signal) {
  const response = await ask("v1/predict", signal, { ...body, stream: true });
  if (!response.body) throw gone();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await read(reader.read());
      if (done) throw gone(); // without [DONE], the answer is incomplete
      const [events, left] = splitEvents(rest + value);
      rest = left;
      for (const data of events) {
        if (data === "[DONE]") return;
        /** @type {StreamEvent} */
        const event = JSON.parse(data);
        const failed = event.error ?? (event.detail ? event : null);
        if (failed) throw problem(failed.status ?? 500, failed.detail ?? "");
        yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The data of the complete events of a text, and what follows them. @param {string} text @returns {[string[], string]} */
export function splitEvents(text) {
  const blocks = text.replace(/\r\n?/g, "\n").split("\n\n");
  const left = blocks.pop() ?? "";
  const events = blocks.map((block) => block.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, "")).join("\n"));
  return [events.filter((data) => data !== ""), left];
}
