// Names, order, colors and thumbnails of heads, and which head to show first.
/** @import { Context, HeadSurvey, ModelInfo, SurveyHead, Trace } from "./lens_types.js" */
import { el, isTyping, rgb } from "../shared/dom.js";
import { pick, t } from "../shared/messages.js";
import { decodeBase64 } from "./head_map.js";

// ---------------------------------------------------------------- names and order: "encoder.0.self/2" in the address, "encoder 0.2" on the page

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

/** The key o switches the selected head, wherever the focus is but in a text field. @param {Context} context */
export function switchKey({ store }) {
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key.toLowerCase() !== "o" || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    store.set({ off: toggled([...store.state.off], [headName(store.state.attention, store.state.head)]) });
  };
  addEventListener("keydown", onKey);
  return { destroy: () => removeEventListener("keydown", onKey) };
}

// ---------------------------------------------------------------- names in the language in use

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
  const kind = info.attentions.find((traced) => traced.name === attention)?.kind
    ?? (attention.endsWith("cross") ? "cross" : attention.startsWith("decoder") ? "decoder" : "encoder");
  const layer = attention.split(".")[1] ?? "";
  const values = { kind: t(`kind_${kind}`), layer, head: head ?? "" };
  return t(head === null ? "attention_title" : "head_title", values);
}

// ---------------------------------------------------------------- thumbnails and roles

/**
 * Draw a map of bytes: the byte is the opacity of the color.
 * @param {HTMLCanvasElement} canvas @param {string} base64 @param {[number, number]} shape rows, columns @param {string} color
 */
export function drawThumbnail(canvas, base64, [height, width], color) {
  const bytes = atob(base64);
  const [red, green, blue] = rgb(color);
  const image = new ImageData(Math.max(1, width), Math.max(1, height));
  const pixels = image.data;
  for (let i = 0; i < Math.min(bytes.length, width * height); i++) {
    pixels[4 * i] = red;
    pixels[4 * i + 1] = green;
    pixels[4 * i + 2] = blue;
    pixels[4 * i + 3] = bytes.charCodeAt(i);
  }
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d")?.putImageData(image, 0, 0);
}

/** The color of a head's role; none for unknown, whose color in the survey is close to paper. @param {SurveyHead | undefined} head */
export function roleColor(head) {
  return head && head.role !== "unknown" ? head.color : "";
}

/**
 * The roles of these heads with their colors and how many heads have them; pressing one marks its heads.
 * @param {SurveyHead[]} heads @param {string | null} marked @param {Context} context @param {(role: string) => void} choose
 */
export function roleLegend(heads, marked, { pick, t }, choose) {
  /** @type {Map<string, SurveyHead[]>} */
  const groups = new Map();
  for (const head of heads) groups.set(head.role, [...(groups.get(head.role) ?? []), head]);
  const sorted = [...groups.values()].sort((a, b) => Number(a[0].role === "unknown") - Number(b[0].role === "unknown") || b.length - a.length);
  return el("div", { class: "role-legend", role: "group", "aria-label": t("overview_legend") }, ...sorted.map(([head, ...rest]) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.setProperty("background-color", roleColor(head));
    return el("button", { type: "button", class: "role-entry", "aria-pressed": String(marked === head.role), "data-key": head.role, onclick: () => choose(head.role) },
      swatch, pick(head.names), el("span", { class: "count" }, String(rest.length + 1)));
  }));
}

// ---------------------------------------------------------------- the head to show first

const BY_PREFERENCE = ["cross", "decoder", "encoder"]; // the most telling kind first

/** @param {Trace} trace @returns {{ attention: string, head: number } | null} */
export function telling(trace) {
  const kind = BY_PREFERENCE.find((one) => trace.attentions.some((attention) => attention.kind === one));
  let best = null;
  let most = -Infinity;
  for (const attention of trace.attentions.filter((traced) => traced.kind === kind)) {
    for (let head = 0; head < attention.n_heads; head++) {
      const score = variety(attention.thumbnails[head], attention.thumbnail_shape) - (attention.heads[head]?.sink ?? 0);
      if (score > most) [best, most] = [{ attention: attention.name, head }, score];
    }
  }
  return best;
}

/** Share of different columns among the largest cells of the rows, times how large these are. @param {string} thumbnail @param {[number, number]} shape */
function variety(thumbnail, [rows, columns]) {
  const bytes = decodeBase64(thumbnail);
  const seen = new Set();
  let sharpness = 0;
  for (let row = 0; row < rows; row++) {
    const cells = bytes.subarray(row * columns, (row + 1) * columns);
    const best = cells.reduce((most, value, column) => (value > cells[most] ? column : most), 0);
    seen.add(best);
    sharpness += (cells[best] / 255) ** 2 / rows;
  }
  return (seen.size / Math.max(1, Math.min(rows, columns))) * sharpness;
}
