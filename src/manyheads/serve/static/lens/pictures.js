// Saves what is shown as SVG or PNG (drawn here) or PDF (drawn by the server).
/** @import { Context, Scene, Selection, Unit } from "./lens_types.js" */
import { el, svg } from "../shared/dom.js";
import { decimal } from "../shared/figures.js";
import { curveOf, layOutArcs, lineOpacity, lineWidth, linksOf, PITCH, strengthOf, WORD_SIZE } from "./arcs.js";
import { meanReceived, shownText, weightOf } from "./head_map.js";
import { colorTable, isCausal, labelOf, paintCells, scaleLabel, scaleName, scaleTicks } from "./matrix_paint.js";

const MARGIN = 28;
const HEAD = 58; // room for the title
const PNG_SCALE = 3;
const MAX_PIXELS = 30e6; // of a PNG

/**
 * A picture with title, legend and white background; colors are plain, so that it looks the same everywhere.
 * @param {Context} context @param {"matrix" | "arcs" | "text"} name @param {Scene} scene @param {Selection} selection
 */
function makePicture(context, name, scene, selection) {
  const { t, store } = context;
  const pins = { queries: selection.pinnedQueries(), keys: selection.pinnedKeys() };
  const drawn = { matrix: matrixPicture, arcs: arcsPicture, text: textPicture }[name](scene, { t, pins, mass: store.state.mass });
  const hidden = scene.hidden ? ` · ${t("picture_hidden", { share: (100 * scene.hidden.share).toFixed(1) })}` : "";
  const below = [`${scene.attention.name}/${scene.head}`, t(`kind_${scene.kind}`), t(`unit_${store.state.unit}`)].join(" · ") + hidden;
  const title = context.headTitle(scene.attention.name, scene.head);
  const [width, height] = [Math.ceil(Math.max(drawn.width, ruler(18)(title), ruler(12)(below)) + 2 * MARGIN), Math.ceil(drawn.height + HEAD + 2 * MARGIN)];
  const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FAMILY },
    svg("title", { text: `${title}: ${scene.trace.text.slice(0, 200)}` }),
    svg("rect", { width, height, fill: PAPER }),
    svg("text", { x: MARGIN, y: MARGIN + 14, "font-size": 18, fill: INK, text: title }),
    svg("text", { x: MARGIN, y: MARGIN + 36, "font-size": 12, fill: SOFT, text: below }),
    svg("g", { transform: `translate(${MARGIN} ${MARGIN + HEAD})` }, drawn.node));
  return { root, width, height };
}

/** @param {ReturnType<typeof makePicture>} picture */
const sourceOf = (picture) => `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(picture.root)}\n`;

/** @param {ReturnType<typeof makePicture>} picture @returns {Promise<Blob>} */
async function pngOf(picture) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(sourceOf(picture))}`;
  await image.decode();
  const scale = Math.min(PNG_SCALE, Math.sqrt(MAX_PIXELS / (picture.width * picture.height)));
  const canvas = el("canvas", { width: Math.round(picture.width * scale), height: Math.round(picture.height * scale) });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no PNG"))), "image/png"));
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * @param {Context} context @param {"matrix" | "arcs" | "text"} name @param {() => Scene | null} sceneOf @param {Selection} selection
 */
export function pictureButtons(context, name, sceneOf, selection) {
  const { t, source, store } = context;
  const fileName = (/** @type {Scene} */ scene, /** @type {string} */ format) => `${scene.attention.name}.${scene.head}.${name}.${format}`;
  /** @param {"svg" | "png"} format */
  async function save(format) {
    const scene = sceneOf();
    if (!scene) return;
    const picture = makePicture(context, name, scene, selection);
    const blob = format === "svg" ? new Blob([sourceOf(picture)], { type: "image/svg+xml" }) : await pngOf(picture);
    download(blob, fileName(scene, format));
    context.announce(t("saved", { name: fileName(scene, format) }));
  }
  const buttons = /** @type {const} */ (["svg", "png"]).map((format) => el("button", { type: "button", class: "format", text: format.toUpperCase(), onclick: () => void save(format) }));
  const pdf = el("a", { class: "format", text: "PDF", hidden: true });
  const root = el("div", { class: "formats" }, ...buttons, pdf);
  return {
    root,
    update() {
      const scene = sceneOf();
      const { unit, kind, lang, mass } = store.state;
      const address = scene && name !== "text" ? source.pictureUrl(scene.trace.id, scene.attention.name, scene.head, { format: "pdf", view: name, unit, kind, lang, mass: String(mass) }) : null;
      pdf.hidden = !address;
      if (address && scene) {
        pdf.href = address;
        pdf.download = fileName(scene, "pdf");
      }
      const labeled = [...buttons, pdf];
      for (const button of labeled) button.setAttribute("aria-label", t("save_as", { part: t(`part_${name}`), format: button.textContent ?? "" }));
    },
  };
}

// ---------------------------------------------------------------- colors and type: plain values, because CSS variables turn black outside a browser

const PAPER = "#ffffff";
const INK = "#1b1d21";
const SOFT = "#5d636e";
const LINE = "#e3e5e9";
const WASH = "#f1f2f5";
const MAIN = "#0b62a4";
const ACCENT = "#b8500a";
const FAMILY = "Helvetica Neue, Helvetica, Arial, PingFang SC, Microsoft YaHei, Noto Sans CJK SC, WenQuanYi Micro Hei, sans-serif";

/** Width of a text in pixels. @param {number} size */
function ruler(size) {
  const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  pen.font = `${size}px ${FAMILY}`;
  return (/** @type {string} */ text) => pen.measureText(text).width;
}

/** @typedef {{ t: import("../shared/types.js").Translate, pins: { queries: number[], keys: number[] }, mass: number }} PictureOptions */
/** @typedef {{ node: SVGGElement, width: number, height: number }} Drawn */

// ---------------------------------------------------------------- the arcs

const MAX_WORDS = 160;

/** @param {Scene} scene @param {PictureOptions} options @returns {Drawn} */
function arcsPicture(scene, { t, pins, mass }) {
  const measure = ruler(WORD_SIZE);
  const parts = { queries: { start: 0, end: Math.min(MAX_WORDS, scene.queries.length) }, keys: { start: 0, end: Math.min(MAX_WORDS, scene.keys.length) } };
  const natural = Math.max(...[scene.queries, scene.keys].map((units) => units.slice(0, MAX_WORDS).reduce((sum, unit) => sum + measure(unit.text) + 20, 0)));
  const width = Math.max(420, Math.min(natural, Math.max(1100, MAX_WORDS && (Math.max(parts.queries.end, parts.keys.end) * PITCH + 60))));
  const links = linksOf(scene, parts, mass);
  const layout = layOutArcs(scene, parts, links, width, measure);
  const [from, to] = [new Set(pins.queries), new Set(pins.keys)];
  const isQuiet = !from.size && !to.size;
  const node = svg("g");
  for (const link of links) {
    const curve = curveOf(scene, layout, link);
    const isOut = from.has(link.query);
    if (!curve || (!isQuiet && !isOut && !to.has(link.key))) continue;
    const [a, b, c, d, e, f, g, h] = curve.map((x) => +x.toFixed(1));
    const strength = strengthOf(scene, link.value);
    node.append(svg("path", { d: `M${a} ${b}C${c} ${d} ${e} ${f} ${g} ${h}`, fill: "none", stroke: isQuiet || isOut ? MAIN : ACCENT, "stroke-width": +lineWidth(strength).toFixed(2), "stroke-opacity": +lineOpacity(strength).toFixed(2) }));
  }
  for (const word of layout.words) {
    const color = word.row !== "key" && from.has(word.index) ? MAIN : word.row !== "query" && to.has(word.index) ? ACCENT : word.unit.kind === "text" ? INK : SOFT;
    const size = word.unit.kind === "special" ? WORD_SIZE - 3 : WORD_SIZE;
    const look = { fill: color, "font-size": size, "font-weight": color === MAIN || color === ACCENT ? 600 : null };
    if (word.isStacked) {
      const characters = [...word.text];
      characters.forEach((character, i) => node.append(svg("text", { ...look, x: word.x, y: word.y + (i - (characters.length - 1) / 2) * (WORD_SIZE + 1) + size * 0.36, "text-anchor": "middle", text: character })));
      continue;
    }
    const turn = (word.turn * 180) / Math.PI;
    node.append(svg("text", { ...look, transform: `translate(${word.x.toFixed(1)} ${word.y.toFixed(1)}) rotate(${turn.toFixed(1)})`, y: +(size * 0.36).toFixed(1), "text-anchor": word.turn && word.row !== "both" ? "start" : "middle", text: word.text }));
  }
  const note = `${t(scene.isSelf ? (scene.attention.kind === "decoder" ? "arcs_causal" : "arcs_self") : "arcs_cross")} ${t("picture_mass", { mass: Math.round(100 * mass) })}`;
  node.append(legend(scene, layout.height + 14, note));
  return { node, width: Math.max(width, ruler(11)(note)), height: layout.height + 44 };
}

/** @param {Scene} scene @param {number} y @param {string} note */
function legend(scene, y, note) {
  const node = svg("g", { transform: `translate(0 ${y})`, "font-size": 11, fill: SOFT });
  [0.1, 0.5, 1].forEach((strength, i) => {
    const x = i * 92;
    const name = scene.kind === "weights" ? `${100 * strength} %` : decimal(strength * scene.largest, 2);
    node.append(svg("line", { x1: x, y1: 0, x2: x + 34, y2: 0, stroke: MAIN, "stroke-width": lineWidth(strength), "stroke-opacity": lineOpacity(strength) }), svg("text", { x: x + 42, y: 4, text: name }));
  });
  node.append(svg("text", { x: 0, y: 24, text: note }));
  return node;
}

// ---------------------------------------------------------------- the matrix

const MAX_SHAPES = 10_000; // more cells become one image
const SCALE_WIDTH = 180;

/** @param {Scene} scene @param {PictureOptions} options @returns {Drawn} */
function matrixPicture(scene, { t, pins }) {
  const [nQ, nK] = [scene.queries.length, scene.keys.length];
  const cell = Math.max(3, Math.min(26, 900 / Math.max(nQ, nK)));
  const size = Math.min(12, Math.max(9, cell * 0.6));
  const measure = ruler(size);
  const every = Math.max(1, Math.ceil((size + 2) / cell));
  const left = Math.min(160, Math.max(...scene.queries.map((unit) => measure(labelOf(unit))))) + 8;
  const widest = Math.min(160, Math.max(...scene.keys.map((unit) => measure(labelOf(unit)))));
  const isLevel = widest < cell - 2;
  const top = isLevel ? size + 8 : widest * 0.82 + 12;
  const [width, height] = [nK * cell, nQ * cell];
  const node = svg("g");
  node.append(...cells(scene, left, top, cell));
  node.append(svg("rect", { x: left, y: top, width, height, fill: "none", stroke: LINE }));
  scene.queries.forEach((unit, q) => {
    const isPinned = pins.queries.includes(q);
    if (q % every && !isPinned) return;
    node.append(svg("text", { x: left - 6, y: top + (q + 0.5) * cell + size * 0.35, "text-anchor": "end", "font-size": size, fill: isPinned ? MAIN : unit.kind === "text" ? INK : SOFT, "font-weight": isPinned ? 600 : null, text: labelOf(unit) }));
  });
  scene.keys.forEach((unit, k) => {
    const isPinned = pins.keys.includes(k);
    if (k % every && !isPinned) return;
    const x = left + (k + 0.5) * cell;
    const place = isLevel ? { x, y: top - 6, "text-anchor": "middle" } : { transform: `translate(${(x + size * 0.3).toFixed(1)} ${top - 6}) rotate(-55)` };
    node.append(svg("text", { ...place, "font-size": size, fill: isPinned ? ACCENT : unit.kind === "text" ? INK : SOFT, "font-weight": isPinned ? 600 : null, text: labelOf(unit) }));
  });
  for (const k of pins.keys) node.append(svg("rect", { x: left + k * cell, y: top, width: cell, height, fill: "none", stroke: ACCENT, "stroke-width": 1.5 }));
  for (const q of pins.queries) node.append(svg("rect", { x: left, y: top + q * cell, width, height: cell, fill: "none", stroke: MAIN, "stroke-width": 1.5 }));
  const name = scaleName(t, scene);
  node.append(scale(scene, left, top + height + 24, name, t("scale_masked")));
  const overhang = isLevel ? 0 : widest * 0.6;
  return { node, width: Math.max(left + width + overhang, left + SCALE_WIDTH + 20 + ruler(11)(name) + (isCausal(scene) ? 90 : 0)), height: top + height + 56 };
}

/** @param {Scene} scene @param {number} left @param {number} top @param {number} cell @returns {SVGElement[]} */
function cells(scene, left, top, cell) {
  const [nQ, nK] = [scene.queries.length, scene.keys.length];
  const table = colorTable(MAIN, PAPER);
  if (nQ * nK > MAX_SHAPES) {
    const address = paintCells(scene, 1, 1, table, WASH).toDataURL("image/png");
    return [svg("image", { x: left, y: top, width: nK * cell, height: nQ * cell, href: address, preserveAspectRatio: "none", "image-rendering": "pixelated" })];
  }
  const shapes = [];
  const gap = cell >= 9 ? 1 : 0;
  for (let q = 0; q < nQ; q++) {
    if (isCausal(scene) && q + 1 < nK) shapes.push(svg("rect", { x: +(left + (q + 1) * cell).toFixed(2), y: +(top + q * cell).toFixed(2), width: +((nK - q - 1) * cell).toFixed(2), height: +cell.toFixed(2), fill: WASH }));
    for (let k = 0; k < nK; k++) {
      const step = Math.round(255 * Math.sqrt(scene.values[q * nK + k] / (scene.largest || 1)));
      if (step < 2) continue;
      shapes.push(svg("rect", { x: +(left + k * cell).toFixed(2), y: +(top + q * cell).toFixed(2), width: +(cell - gap).toFixed(2), height: +(cell - gap).toFixed(2), fill: hex(table, step) }));
    }
  }
  return shapes;
}

/** @param {Uint8ClampedArray} table @param {number} step */
const hex = (table, step) => `#${[0, 1, 2].map((c) => table[3 * step + c].toString(16).padStart(2, "0")).join("")}`;

/** @param {Scene} scene @param {number} x @param {number} y @param {string} name @param {string} masked */
function scale(scene, x, y, name, masked) {
  const table = colorTable(MAIN, PAPER);
  const node = svg("g", { transform: `translate(${x} ${y})`, "font-size": 11, fill: SOFT });
  const n = 60;
  for (let i = 0; i < n; i++) node.append(svg("rect", { x: (i * SCALE_WIDTH) / n, y: 0, width: SCALE_WIDTH / n + 0.4, height: 8, fill: hex(table, Math.round((255 * i) / (n - 1))) }));
  node.append(svg("rect", { x: 0, y: 0, width: SCALE_WIDTH, height: 8, fill: "none", stroke: LINE }), svg("text", { x: SCALE_WIDTH + 10, y: 8, text: name }));
  const end = SCALE_WIDTH + 26 + ruler(11)(name);
  if (isCausal(scene)) node.append(svg("rect", { x: end, y: -1, width: 12, height: 10, fill: WASH, stroke: LINE }), svg("text", { x: end + 18, y: 8, text: masked }));
  scaleTicks(scene.largest).forEach((value, i, ticks) => node.append(svg("text", {
    x: SCALE_WIDTH * Math.sqrt(value / (scene.largest || 1)), y: 22, "text-anchor": i === 0 ? "start" : i === ticks.length - 1 ? "end" : "middle", text: scaleLabel(value, scene.kind === "weights"),
  })));
  return node;
}

// ---------------------------------------------------------------- the colored text

const WIDTH = 640;
const SIZE = 16;
const LINE_HEIGHT = 32;
const MAX_UNITS = 400;

/** @param {Scene} scene @param {PictureOptions} options @returns {Drawn} */
function textPicture(scene, { t, pins }) {
  const node = svg("g", { "font-size": SIZE });
  const isQuiet = !pins.queries.length && !pins.keys.length;
  const received = meanReceived(scene);
  const largest = received.reduce((a, b) => Math.max(a, b), 0) || 1;
  const share = (/** @type {number} */ value) => strengthOf(scene, value) ** 0.7;
  const out = (/** @type {number} */ k) => share(pins.queries.reduce((most, q) => Math.max(most, weightOf(scene, q, k)), 0));
  const inward = (/** @type {number} */ q) => share(pins.keys.reduce((most, k) => Math.max(most, weightOf(scene, q, k)), 0));
  let y = 0;
  const rows = scene.isSelf
    ? [{ name: "", units: scene.keys, isKeys: true, isQueries: true }]
    : [{ name: t("side_source"), units: scene.keys, isKeys: true, isQueries: false }, { name: t("side_written"), units: scene.queries, isKeys: false, isQueries: true }];
  for (const { name, units, isKeys, isQueries } of rows) {
    if (name) node.append(svg("text", { x: 0, y: (y += 14), "font-size": 12, fill: SOFT, text: name }));
    y += name ? 10 : 0;
    const quiet = (/** @type {number} */ i) => (isQuiet && isKeys ? received[i] / largest : 0);
    y = write(node, units, y, (i) => ({
      out: isKeys ? out(i) : 0, inward: isQueries && !isQuiet ? inward(i) : quiet(i),
      isPinned: (isQueries && pins.queries.includes(i)) || (isKeys && pins.keys.includes(i)),
    }));
    y += 12;
  }
  node.append(svg("text", { x: 0, y: y + 12, "font-size": 11, fill: SOFT, text: t(isQuiet ? "text_quiet" : "text_selected") }));
  return { node, width: WIDTH, height: y + 20 };
}

/** @param {SVGGElement} node @param {Unit[]} units @param {number} top @param {(index: number) => { out: number, inward: number, isPinned: boolean }} look @returns {number} */
function write(node, units, top, look) {
  const measure = ruler(SIZE);
  let x = 0;
  let y = top;
  units.slice(0, MAX_UNITS).forEach((unit, i) => {
    const width = measure(shownText(unit)) + 6;
    if (x + width > WIDTH) [x, y] = [0, y + LINE_HEIGHT];
    const { out, inward, isPinned } = look(i);
    if (out > 0.01) node.append(svg("rect", { x, y: y + 3, width, height: 24, fill: MAIN, "fill-opacity": +(0.5 * out).toFixed(3), rx: 2 }));
    if (inward > 0.01) node.append(svg("rect", { x, y: y + 24, width, height: 4, fill: ACCENT, "fill-opacity": +inward.toFixed(3) }));
    node.append(svg("text", { x: x + 3, y: y + 20, fill: unit.kind === "special" ? SOFT : INK, "font-weight": isPinned ? 700 : null, text: shownText(unit) }));
    x += width + (unit.kind === "text" && /[a-z]/i.test(unit.text) ? 4 : 2);
  });
  return y + LINE_HEIGHT;
}
