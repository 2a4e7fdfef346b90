/** @import { HeadSurvey, ModelInfo } from "./types.js" */
// Names of attentions, heads and roles in the language in use.
import { pick, t } from "./messages.js";

/** @param {string} name @param {HeadSurvey | null} survey */
export function roleOf(name, survey) {
  for (const head of survey?.heads ?? []) {
    if (head.role === name) return { name: pick(head.names), color: head.color };
    const other = head.roles.find((role) => role.name === name);
    if (other) return { name: pick(other.names), color: head.color };
  }
  return { name, color: "#999999" };
}

/** "Encoder self-attention, layer 0, head 2". @param {string} attention @param {number | null} head @param {ModelInfo} info */
export function headTitle(attention, head, info) {
  const kind = info.attentions.find((one) => one.name === attention)?.kind
    ?? (attention.endsWith("cross") ? "cross" : attention.startsWith("decoder") ? "decoder" : "encoder");
  const layer = attention.split(".")[1] ?? "";
  const values = { kind: t(`kind_${kind}`), layer, head: head ?? "" };
  return t(head === null ? "attention_title" : "head_title", values);
}
