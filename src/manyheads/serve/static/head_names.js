// Names and order of heads: "encoder.0.self/2" in the address, "encoder 0.2" on the page.

/** @typedef {{ attention: string, number: number, kind: string, layer: number, name: string }} HeadName */

export const KINDS = ["encoder", "decoder", "cross"];

/** @param {string} attention @param {number} number */
export function headName(attention, number) {
  return `${attention}/${number}`;
}

/** @param {string} name @returns {HeadName} */
export function parseHead(name) {
  const [attention, number] = name.split("/");
  const [side, layer, part] = attention.split(".");
  return { attention, number: Number(number), kind: part === "cross" ? "cross" : side, layer: Number(layer), name };
}

/**
 * The short name of a head within its model, such as "encoder 0.2".
 * @param {string} name
 * @param {(key: string) => string} t
 */
export function shortName(name, t) {
  const head = parseHead(name);
  return `${t(`short_${head.kind}`)} ${head.layer}.${head.number}`;
}

/**
 * Every head of a model, in the order of a forward pass.
 * @param {{ attentions: { name: string, n_heads: number }[] }} model
 */
export function allHeads(model) {
  return model.attentions.flatMap((attention) => Array.from({ length: attention.n_heads }, (_, number) => headName(attention.name, number)));
}

/**
 * Every head of a model, kind by kind, layer by layer.
 * @param {{ attentions: { name: string, n_heads: number }[] }} model
 */
export function headsByKind(model) {
  return allHeads(model).map(parseHead)
    .sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || a.layer - b.layer || a.number - b.number).map(({ name }) => name);
}

/**
 * Put heads on, or off if one of them is on.
 * @param {string[]} off
 * @param {string[]} heads
 */
export function toggled(off, heads) {
  const areOff = heads.every((head) => off.includes(head));
  return areOff ? off.filter((head) => !heads.includes(head)) : [...off, ...heads.filter((head) => !off.includes(head))];
}

/**
 * Some of the heads at random, without repetition.
 * @param {string[]} heads
 * @param {number} count
 * @param {() => number} [random]
 */
export function randomHeads(heads, count, random = Math.random) {
  const rest = [...heads];
  /** @type {string[]} */
  const drawn = [];
  while (drawn.length < count && rest.length > 0) drawn.push(...rest.splice(Math.floor(random() * rest.length), 1));
  return heads.filter((head) => drawn.includes(head));
}
