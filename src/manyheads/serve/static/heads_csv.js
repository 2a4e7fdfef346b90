// The measures of all heads as a CSV file.
/** @import { HeadSurvey } from "./types.js" */
import { el } from "./dom.js";
import { parseHead } from "./head_names.js";

/** @param {HeadSurvey} survey @returns {string} */
export function headsCsv(survey) {
  const ids = survey.measures.map(({ id }) => id);
  const header = ["head", "attention", "layer", "number", "role", "all_roles", "reach", ...ids, "importance_low", "importance_high"];
  const rows = survey.heads.map((head) => {
    const { kind, layer, number } = parseHead(head.head);
    return [head.head, kind, layer, number, head.role, head.roles.map(({ name }) => name).join("; "), head.reach,
      ...ids.map((id) => head.values[id]), head.importance?.low, head.importance?.high];
  });
  return [header, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** @param {string | number | null | undefined} value */
function field(value) {
  if (value === null || value === undefined || (typeof value === "number" && !Number.isFinite(value))) return "";
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {HeadSurvey} survey @param {string} name of the model */
export function saveHeads(survey, name) {
  const address = URL.createObjectURL(new Blob([headsCsv(survey)], { type: "text/csv;charset=utf-8" }));
  const link = el("a", { href: address, download: `${name.replace(/[^\p{L}\p{N}._-]+/gu, "-")}-heads.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
