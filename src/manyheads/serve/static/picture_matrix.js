/** @import { Scene } from "./types.js" */
/** @import { Drawn, PictureOptions } from "./picture_style.js" */
// The matrix as a picture.
import { scaleLabel, scaleName, scaleTicks } from "./color_scale.js";
import { svg } from "./dom.js";
import { colorTable, isCausal, labelOf, paintCells } from "./matrix_paint.js";
import { ACCENT, INK, LINE, MAIN, PAPER, ruler, SOFT, WASH } from "./picture_style.js";

const MAX_SHAPES = 10_000; // more cells become one image
const SCALE_WIDTH = 180;

/** @param {Scene} scene @param {PictureOptions} options @returns {Drawn} */
export function matrixPicture(scene, { t, pins }) {
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
