/** @import { LensFile, Problem, Source } from "./types.js" */
// The data embedded in a page that `manyheads lens --html` wrote.
import { decodeBase64, decodeMap, inflate } from "./head_map.js";
import { t } from "./messages.js";

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
      const candidates = file.traces.filter((one) => one.bundle === request.bundle && one.text === request.text && one.step === request.step);
      return found(candidates.find((one) => request.answer === null || one.answer === request.answer));
    },
    async map(trace, attention, head, kind) {
      const stored = await found(file.maps?.[trace.id]?.[`${attention}/${head}`]);
      const shape = trace.attentions.find((one) => one.name === attention);
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
