// Geometry, colors and painting of the matrix; nothing here listens to events.
/** @import { Translate } from "../shared/types.js" */
/** @import { Context, Scene, Unit } from "./lens_types.js" */
import { cssColor, el, fitCanvas, rgb, setText } from "../shared/dom.js";
import { decimal } from "../shared/figures.js";
import { shownText } from "./head_map.js";

const ANGLE = -0.96; // of slanted column labels, in radians
const LARGEST_CELL = 36;
const MANY = 48; // rows or columns of a large map
const SLANTED_SPACE = 14; // pixels between slanted labels
const LABEL_SPACE = 14; // pixels between row labels
const MAX_LABEL = 132;
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{2}/u; // labels that fill their height

/**
 * @typedef {{ left: number, top: number, right: number, cellWidth: number, cellHeight: number, width: number, height: number,
 *   x: number, y: number, isSlanted: boolean, canvasWidth: number, canvasHeight: number, fit: number }} Geometry
 * The plot starts at (left, top) and is width × height pixels; (x, y) is its first column and row, in cells.
 */

/** Labels are cut, so that a long word does not take the room of the plot. @param {Unit} unit */
export const labelOf = (unit) => (unit.text.length > 18 ? `${shownText(unit).slice(0, 17)}…` : shownText(unit));

/** @param {CanvasRenderingContext2D} pen @param {Unit[]} units */
export function widestLabel(pen, units) {
  let widest = 0;
  for (const unit of units.length > 600 ? units.slice(0, 600) : units) widest = Math.max(widest, pen.measureText(labelOf(unit)).width);
  return Math.min(MAX_LABEL, Math.ceil(widest));
}

/**
 * @param {Scene} scene @param {number} width @param {number} maxHeight @param {{ zoom: number, x: number, y: number }} view
 * @param {number} rowLabel @param {number} columnLabel widest labels in pixels @returns {Geometry}
 */
export function layOut(scene, width, maxHeight, view, rowLabel, columnLabel) {
  const [nQ, nK] = [scene.queries.length, scene.keys.length];
  const left = Math.min(rowLabel, width * 0.34) + 12;
  const upright = Math.min(LARGEST_CELL, (width - left - 8) / nK);
  const isSlanted = columnLabel + 8 > upright * view.zoom;
  const right = isSlanted ? Math.max(8, Math.min(columnLabel * Math.cos(ANGLE), width * 0.2)) : 8;
  const top = isSlanted ? columnLabel * Math.sin(-ANGLE) + 20 : 26;
  let cellWidth = Math.min(LARGEST_CELL, (width - left - right) / nK);
  let cellHeight = Math.min(LARGEST_CELL, maxHeight / nQ);
  // Cells of large maps are square; of small ones they may be wider or higher, for the labels.
  cellHeight = Math.min(cellHeight, Math.max(1.25 * cellWidth, nQ > MANY ? 0 : 18));
  cellWidth = Math.min(cellWidth, Math.max(1.25 * cellHeight, nK > MANY ? 0 : 22));
  if (nQ > MANY && nK > MANY) cellHeight = cellWidth = Math.min(cellWidth, cellHeight);
  const fit = Math.min(cellWidth, cellHeight);
  cellWidth *= view.zoom;
  cellHeight *= view.zoom;
  const plotWidth = Math.min(nK * cellWidth, width - left - right);
  const plotHeight = Math.min(nQ * cellHeight, Math.max(maxHeight, fit * nQ));
  const clamp = (/** @type {number} */ at, /** @type {number} */ n, /** @type {number} */ seen) => Math.max(0, Math.min(n - seen, at));
  return {
    left, top, right, cellWidth, cellHeight, width: plotWidth, height: plotHeight, isSlanted, fit,
    x: clamp(view.x, nK, plotWidth / cellWidth), y: clamp(view.y, nQ, plotHeight / cellHeight),
    canvasWidth: width, canvasHeight: Math.ceil(top + plotHeight + 4),
  };
}

/** The 256 colors from paper to `to`, for √(value / largest). @param {string} [to] @param {string} [paper] @returns {Uint8ClampedArray} */
export function colorTable(to = cssColor("--main"), paper = cssColor("--paper")) {
  const [from, end] = [rgb(paper), rgb(to)];
  const table = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) for (let c = 0; c < 3; c++) table[3 * i + c] = from[c] + ((end[c] - from[c]) * i) / 255;
  return table;
}

/** Whether later keys are masked: the rows of a decoder do not look ahead. @param {Scene} scene */
export const isCausal = (scene) => scene.isSelf && scene.attention.kind === "decoder";

/**
 * One pixel per cell, or per block of cells with its largest value: a single strong link stays visible from afar.
 * @param {Scene} scene @param {number} blockQ @param {number} blockK @param {Uint8ClampedArray} table @param {string} masked
 */
export function paintCells(scene, blockQ, blockK, table, masked) {
  const [nQ, nK] = [scene.queries.length, scene.keys.length];
  const [rows, columns] = [Math.ceil(nQ / blockQ), Math.ceil(nK / blockK)];
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = pen.createImageData(columns, rows);
  const largest = scene.largest || 1;
  const wash = rgb(masked);
  const hasMask = isCausal(scene);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let value = 0;
      const isMasked = hasMask && column * blockK >= (row + 1) * blockQ;
      for (let q = row * blockQ; q < Math.min(nQ, (row + 1) * blockQ); q++) {
        for (let k = column * blockK; k < Math.min(nK, (column + 1) * blockK); k++) value = Math.max(value, scene.values[q * nK + k]);
      }
      const step = 3 * Math.round(255 * Math.sqrt(value / largest));
      const at = 4 * (row * columns + column);
      for (let c = 0; c < 3; c++) image.data[at + c] = isMasked && value === 0 ? wash[c] : table[step + c];
      image.data[at + 3] = 255;
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

/** Draws the visible cells and the labels. @param {CanvasRenderingContext2D} pen @param {Scene} scene @param {Geometry} g @param {HTMLCanvasElement} cells @param {[number, number]} block */
export function drawMatrix(pen, scene, g, cells, block) {
  pen.imageSmoothingEnabled = false;
  pen.drawImage(cells, g.x / block[1], g.y / block[0], g.width / g.cellWidth / block[1], g.height / g.cellHeight / block[0], g.left, g.top, g.width, g.height);
  pen.strokeStyle = cssColor("--paper");
  pen.lineWidth = 1;
  if (Math.min(g.cellWidth, g.cellHeight) >= 9) {
    pen.beginPath();
    for (let k = Math.ceil(g.x); (k - g.x) * g.cellWidth < g.width; k++) line(pen, g.left + (k - g.x) * g.cellWidth, g.top, 0, g.height);
    for (let q = Math.ceil(g.y); (q - g.y) * g.cellHeight < g.height; q++) line(pen, g.left, g.top + (q - g.y) * g.cellHeight, g.width, 0);
    pen.stroke();
  }
  pen.strokeStyle = cssColor("--line");
  pen.strokeRect(g.left - 0.5, g.top - 0.5, g.width + 1, g.height + 1);
  const soft = cssColor("--soft");
  const ink = cssColor("--ink");
  const everyQ = Math.max(1, Math.ceil(LABEL_SPACE / g.cellHeight));
  const slanted = scene.keys.some((unit) => WIDE.test(unit.text)) ? SLANTED_SPACE + 4 : SLANTED_SPACE;
  const everyK = Math.max(1, Math.ceil((g.isSlanted ? slanted : 1) / g.cellWidth));
  for (const q of visible(g.y, g.height / g.cellHeight, scene.queries.length, everyQ)) drawRowLabel(pen, scene.queries[q], q, g, scene.queries[q].kind === "text" ? ink : soft);
  for (const k of visible(g.x, g.width / g.cellWidth, scene.keys.length, everyK)) drawColumnLabel(pen, scene.keys[k], k, g, scene.keys[k].kind === "text" ? ink : soft);
}

/** @param {CanvasRenderingContext2D} pen @param {number} x @param {number} y @param {number} dx @param {number} dy */
function line(pen, x, y, dx, dy) {
  pen.moveTo(Math.round(x) + 0.5 * (dx ? 0 : 1), Math.round(y) + 0.5 * (dy ? 0 : 1));
  pen.lineTo(Math.round(x + dx) + 0.5 * (dx ? 0 : 1), Math.round(y + dy) + 0.5 * (dy ? 0 : 1));
}

/** Whole cells in sight, every so many. @param {number} first @param {number} n_seen @param {number} n @param {number} every */
function visible(first, n_seen, n, every) {
  const found = [];
  for (let i = Math.ceil((first - 0.4) / every) * every; i <= first + n_seen - 0.6 && i < n; i += every) found.push(i);
  return found;
}

/** @param {CanvasRenderingContext2D} pen @param {Unit} unit @param {number} q @param {Geometry} g @param {string} color */
export function drawRowLabel(pen, unit, q, g, color) {
  pen.fillStyle = color;
  pen.textAlign = "end";
  pen.textBaseline = "middle";
  pen.fillText(labelOf(unit), g.left - 8, g.top + (q - g.y + 0.5) * g.cellHeight + 0.5, g.left - 10);
}

/** @param {CanvasRenderingContext2D} pen @param {Unit} unit @param {number} k @param {Geometry} g @param {string} color */
export function drawColumnLabel(pen, unit, k, g, color) {
  pen.fillStyle = color;
  const x = g.left + (k - g.x + 0.5) * g.cellWidth;
  if (!g.isSlanted) {
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    pen.fillText(labelOf(unit), x, g.top - 9);
    return;
  }
  pen.save();
  pen.translate(x + 2, g.top - 7);
  pen.rotate(ANGLE);
  pen.textAlign = "start";
  pen.textBaseline = "middle";
  pen.fillText(labelOf(unit), 0, 0, MAX_LABEL);
  pen.restore();
}

// ---------------------------------------------------------------- the legend: colors grow with the square root of the value

const WIDTH = 160;
const HEIGHT = 8;

/** Values named on the scale, from 0 to the largest. @param {number} largest */
export const scaleTicks = (largest) => [0, 0.25, 1].map((share) => share * largest);

/** @param {number} value @param {boolean} isWeight */
export const scaleLabel = (value, isWeight) => {
  if (value === 0) return "0";
  if (!isWeight) return decimal(value, value < 0.1 ? 3 : 2);
  return `${(100 * value).toFixed(100 * value < 10 ? 1 : 0)} %`;
};

/** @param {Translate} t @param {Scene} scene */
export const scaleName = (t, scene) => `${t(scene.kind === "weights" ? "scale_weights" : "scale_norms")} ${t("scale_root")}`.replace(" （", "（");

/** @param {Context} context */
export function colorScale({ t }) {
  const canvas = el("canvas", { "aria-hidden": "true" });
  const labels = el("div", { class: "scale-labels" });
  const name = el("span", { class: "scale-name" });
  const masked = el("span", { class: "scale-masked", hidden: true });
  const root = el("div", { class: "scale" }, name, el("div", {}, canvas, labels), masked);
  return {
    root,
    /** @param {Scene} scene */
    update(scene) {
      const pen = fitCanvas(canvas, WIDTH, HEIGHT);
      const table = colorTable();
      for (let x = 0; x < WIDTH; x++) {
        const step = 3 * Math.round((255 * x) / (WIDTH - 1));
        pen.fillStyle = `rgb(${table[step]}, ${table[step + 1]}, ${table[step + 2]})`;
        pen.fillRect(x, 0, 1.5, HEIGHT);
      }
      pen.strokeStyle = cssColor("--line");
      pen.strokeRect(0.5, 0.5, WIDTH - 1, HEIGHT - 1);
      setText(name, scaleName(t, scene));
      masked.hidden = !isCausal(scene);
      setText(masked, t("scale_masked"));
      labels.replaceChildren(...scaleTicks(scene.largest).map((value) => el("span", { text: scaleLabel(value, scene.kind === "weights") })));
    },
  };
}
