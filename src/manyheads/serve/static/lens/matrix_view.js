// The matrix of one head: queries down, keys across. Zooms and pans; draws only what is in sight.
/** @import { Context, HeadPart, Scene, Selection } from "./lens_types.js" */
/** @import { Geometry } from "./matrix_paint.js" */
import { cssColor, el, fitCanvas, setText } from "../shared/dom.js";
import { decimal, percent } from "../shared/figures.js";
import { largestLinks, weightOf } from "./head_map.js";
import { colorTable, drawColumnLabel, drawMatrix, drawRowLabel, layOut, paintCells, widestLabel } from "./matrix_paint.js";
import { pinCell, readCell } from "./selection.js";

const FONT = '13px system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
const READABLE = 14; // cells of this size need no zoom
const MAX_CELL = 44;
const MAP_SIZE = 88; // of the small map
const N_DESCRIBED = 40; // rows of the text alternative

/** @param {HTMLElement} root @param {Context} context @param {Selection} selection @returns {HeadPart} */
export function mountMatrix(root, context, selection) {
  const { t, store } = context;
  /** @type {Scene | null} */
  let scene = null;
  /** @type {Geometry | null} */
  let geometry = null;
  let view = { zoom: 1, x: 0, y: 0 };
  /** Painted cells by block size, for the colors in use. @type {Map<string, HTMLCanvasElement>} */
  let painted = new Map();
  let colors = "";
  let drawn = "";
  const base = el("canvas", { "aria-hidden": "true" });
  const over = el("canvas", { class: "over", tabindex: 0, role: "application" });
  const small = el("canvas", { class: "small-map", "aria-hidden": "true", hidden: true });
  const description = el("ul", { class: "unseen" });
  const zoomOut = el("button", { type: "button", class: "icon", text: "−", onclick: () => zoom(1 / 1.5) });
  const zoomIn = el("button", { type: "button", class: "icon", text: "+", onclick: () => zoom(1.5) });
  const whole = el("button", { type: "button", class: "plain", onclick: () => { view = { zoom: 1, x: 0, y: 0 }; draw(); } });
  const tools = el("div", { class: "tools", hidden: true }, zoomOut, zoomIn, whole);
  const stage = el("div", { class: "stage" }, base, over, small);
  const tip = createTip(context, stage);
  root.append(tools, stage, description);

  /** @param {number} factor @param {number} [atX] @param {number} [atY] */
  function zoom(factor, atX, atY) {
    if (!geometry || !scene) return;
    const g = geometry;
    const limit = Math.max(1, MAX_CELL / g.fit);
    const next = Math.max(1, Math.min(limit, view.zoom * factor));
    if (next === view.zoom) return;
    const [px, py] = [atX ?? g.left + g.width / 2, atY ?? g.top + g.height / 2];
    const [cellX, cellY] = [g.x + (px - g.left) / g.cellWidth, g.y + (py - g.top) / g.cellHeight];
    const grow = next / view.zoom;
    view = { zoom: next, x: cellX - (px - g.left) / (g.cellWidth * grow), y: cellY - (py - g.top) / (g.cellHeight * grow) };
    draw();
  }

  function draw() {
    if (!scene) return;
    const width = Math.max(200, Math.floor(stage.clientWidth));
    const ruler = /** @type {CanvasRenderingContext2D} */ (base.getContext("2d"));
    ruler.font = FONT;
    const g = layOut(scene, width, Math.min(560, Math.max(320, innerHeight * 0.7)), view, widestLabel(ruler, scene.queries), widestLabel(ruler, scene.keys));
    geometry = g;
    view = { zoom: view.zoom, x: g.x, y: g.y };
    const palette = cssColor("--main") + cssColor("--paper");
    if (palette !== colors) {
      colors = palette;
      painted = new Map();
    }
    const block = /** @type {[number, number]} */ ([Math.max(1, Math.floor(1 / g.cellHeight)), Math.max(1, Math.floor(1 / g.cellWidth))]);
    let cells = painted.get(String(block));
    if (!cells) painted.set(String(block), (cells = paintCells(scene, block[0], block[1], colorTable(), cssColor("--wash"))));
    const pen = fitCanvas(base, g.canvasWidth, g.canvasHeight);
    pen.font = FONT;
    drawMatrix(pen, scene, g, cells, block);
    const isLarge = g.fit < READABLE;
    tools.hidden = !isLarge && view.zoom === 1;
    stage.classList.toggle("zoomed", view.zoom > 1);
    drawSmallMap(g, cells, block);
    redraw();
  }

  /** Where the visible cells are in the whole. @param {Geometry} g @param {HTMLCanvasElement} cells @param {[number, number]} block */
  function drawSmallMap(g, cells, block) {
    small.hidden = view.zoom === 1;
    if (small.hidden || !scene) return;
    const [nQ, nK] = [scene.queries.length, scene.keys.length];
    const scale = MAP_SIZE / Math.max(nQ, nK);
    const pen = fitCanvas(small, nK * scale, nQ * scale);
    pen.imageSmoothingEnabled = nQ > MAP_SIZE;
    pen.drawImage(cells, 0, 0, nK / block[1], nQ / block[0], 0, 0, nK * scale, nQ * scale);
    pen.strokeStyle = cssColor("--accent");
    pen.lineWidth = 1.5;
    pen.strokeRect(g.x * scale + 1, g.y * scale + 1, (g.width / g.cellWidth) * scale - 2, (g.height / g.cellHeight) * scale - 2);
  }

  function redraw() {
    if (!scene || !geometry) return;
    const g = geometry;
    const key = [drawn, g.canvasWidth, g.canvasHeight].join();
    drawn = key;
    const pen = fitCanvas(over, g.canvasWidth, g.canvasHeight);
    const [main, accent, paper] = [cssColor("--main"), cssColor("--accent"), cssColor("--paper")];
    pen.lineWidth = 1.5;
    pen.save();
    pen.beginPath();
    pen.rect(g.left - 2, g.top - 2, g.width + 4, g.height + 4);
    pen.clip();
    for (const k of selection.incoming()) outline(pen, accent, g.left + (k - g.x) * g.cellWidth, g.top, g.cellWidth, g.height);
    for (const q of selection.outgoing()) outline(pen, main, g.left, g.top + (q - g.y) * g.cellHeight, g.width, g.cellHeight);
    pen.restore();
    pen.font = `600 ${FONT}`;
    for (const q of selection.outgoing()) {
      const y = g.top + (q - g.y) * g.cellHeight;
      if (y < g.top - 1 || y > g.top + g.height - 1) continue;
      pen.fillStyle = paper;
      pen.fillRect(0, y + g.cellHeight / 2 - 9, g.left - 3, 18);
      drawRowLabel(pen, scene.queries[q], q, g, main);
    }
    for (const k of selection.incoming()) {
      const x = g.left + (k - g.x) * g.cellWidth;
      if (x < g.left - 1 || x > g.left + g.width - 1) continue;
      clearColumnLabel(pen, x + g.cellWidth / 2, g, paper);
      drawColumnLabel(pen, scene.keys[k], k, g, accent);
    }
  }

  /** @param {PointerEvent | WheelEvent} event */
  function place(event) {
    const box = over.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
  /** @param {{ x: number, y: number }} at @returns {[number | null, number | null]} */
  function cellAt({ x, y }) {
    const g = geometry;
    if (!g || !scene) return [null, null];
    const q = y >= g.top && y < g.top + g.height ? Math.floor(g.y + (y - g.top) / g.cellHeight) : null;
    // A slanted label hangs over the columns to its right.
    const shifted = y < g.top && g.isSlanted ? x - (g.top - y) / Math.tan(0.96) : x;
    const k = shifted >= g.left && shifted < g.left + g.width && x >= g.left ? Math.floor(g.x + (shifted - g.left) / g.cellWidth) : null;
    return [q, y > g.top + g.height ? null : k];
  }

  /** @type {{ x: number, y: number, viewX: number, viewY: number, isPan: boolean } | null} */
  let press = null;
  over.addEventListener("pointerdown", (event) => {
    const at = place(event);
    press = { ...at, viewX: view.x, viewY: view.y, isPan: false };
  });
  over.addEventListener("pointermove", (event) => {
    const at = place(event);
    if (press && geometry && view.zoom > 1 && event.buttons && Math.hypot(at.x - press.x, at.y - press.y) > 4) {
      if (!press.isPan) over.setPointerCapture(event.pointerId);
      tip.hide();
      press.isPan = true;
      view = { zoom: view.zoom, x: press.viewX - (at.x - press.x) / geometry.cellWidth, y: press.viewY - (at.y - press.y) / geometry.cellHeight };
      draw();
      return;
    }
    const [q, k] = cellAt(at);
    selection.hover(q, k);
    if (scene) tip.show(scene, q, k, at.x, at.y);
  });
  over.addEventListener("pointerup", (event) => {
    const [q, k] = cellAt(place(event));
    if (press && !press.isPan) pin(q, k);
    press = null;
  });
  over.addEventListener("pointerleave", () => { press = null; tip.hide(); selection.hover(null, null); });
  over.addEventListener("blur", () => tip.hide());
  over.addEventListener("wheel", (event) => {
    if (!geometry) return;
    const isUseful = geometry.fit < READABLE && !(view.zoom === 1 && event.deltaY > 0);
    if (!isUseful && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = place(event);
    zoom(Math.exp(-event.deltaY / 400), at.x, at.y);
  }, { passive: false });
  over.addEventListener("keydown", (event) => {
    const moves = /** @type {Record<string, [number, number]>} */ ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] });
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) {
      selection.move(...moves[event.key]);
      keepInSight();
      tipAtCell();
    } else if (event.key === "Enter" || event.key === " ") pin(selection.query, selection.key);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") whole.click();
    else return;
    event.preventDefault();
  });

  /** A cell, or a label: then its row or its column. @param {number | null} q @param {number | null} k */
  function pin(q, k) {
    if (scene && q !== null && k !== null) pinCell(store, scene, q, k);
    else selection.toggle(q, k);
  }

  /** The number beside the cell that the keyboard selects. */
  function tipAtCell() {
    const [g, q, k] = [geometry, selection.query, selection.key];
    if (g && scene) tip.show(scene, q, k, g.left + ((k ?? 0) - g.x + 1) * g.cellWidth - 8, g.top + ((q ?? 0) - g.y) * g.cellHeight + 8);
  }

  function keepInSight() {
    const g = geometry;
    if (!g || view.zoom === 1) return;
    const [seenX, seenY] = [g.width / g.cellWidth, g.height / g.cellHeight];
    const follow = (/** @type {number | null} */ at, /** @type {number} */ from, /** @type {number} */ seen) =>
      at === null || (at >= from && at + 1 <= from + seen) ? from : at < from ? at : at + 1 - seen;
    view = { zoom: view.zoom, x: follow(selection.key, g.x, seenX), y: follow(selection.query, g.y, seenY) };
    draw();
  }

  function describe() {
    if (!scene) return;
    const { attention, head } = scene;
    over.setAttribute("aria-label", t("matrix_name", { head: context.headTitle(attention.name, head), rows: scene.queries.length, columns: scene.keys.length }));
    setText(whole, t("whole"));
    zoomIn.setAttribute("aria-label", t("zoom_in"));
    zoomOut.setAttribute("aria-label", t("zoom_out"));
    const shown = scene;
    const rows = shown.queries.slice(0, N_DESCRIBED).map((query, q) => {
      const keys = largestLinks(shown, q, 1).slice(0, 3).map((k) => `${shown.keys[k].text} ${shown.kind === "weights" ? percent(weightOf(shown, q, k)) : decimal(weightOf(shown, q, k), 3)}`);
      return el("li", { text: `${query.text}: ${keys.join(", ")}` });
    });
    description.setAttribute("aria-label", t("matrix_rows"));
    description.replaceChildren(...rows);
  }

  const watcher = new ResizeObserver(() => { if (geometry && Math.floor(stage.clientWidth) !== geometry.canvasWidth) draw(); });
  watcher.observe(stage);
  return {
    setScene(next) {
      const isOther = !scene || scene.queries.length !== next.queries.length || scene.keys.length !== next.keys.length;
      if (isOther) view = { zoom: 1, x: 0, y: 0 };
      if (scene !== next) painted = new Map();
      if (scene !== next) tip.hide();
      scene = next;
      describe();
      draw();
    },
    redraw,
    destroy: () => watcher.disconnect(),
  };
}

/** @param {CanvasRenderingContext2D} pen @param {string} color @param {number} x @param {number} y @param {number} width @param {number} height */
function outline(pen, color, x, y, width, height) {
  pen.strokeStyle = color;
  pen.strokeRect(x + 0.25, y + 0.25, Math.max(1, width - 0.5), Math.max(1, height - 0.5));
}

/** @param {CanvasRenderingContext2D} pen @param {number} x @param {Geometry} g @param {string} paper */
function clearColumnLabel(pen, x, g, paper) {
  pen.save();
  pen.fillStyle = paper;
  pen.translate(x + 2, g.top - 7);
  if (g.isSlanted) pen.rotate(-0.96);
  pen.fillRect(g.isSlanted ? -1 : -g.cellWidth / 2, g.isSlanted ? -8 : -16, g.isSlanted ? g.top / Math.sin(0.96) : g.cellWidth, 16);
  pen.restore();
}

// ---------------------------------------------------------------- the number of one cell

const GAP = 12;

/** @param {Context} context @param {HTMLElement} stage */
function createTip(context, stage) {
  const root = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
  stage.append(root);
  let shown = "";
  let cancel = () => {};

  function hide() {
    cancel();
    shown = "";
    root.hidden = true;
  }
  /** Above and to the right, or where there is room. @param {number} x @param {number} y */
  function place(x, y) {
    const left = x + GAP + root.offsetWidth > stage.clientWidth ? Math.max(0, x - GAP - root.offsetWidth) : x + GAP;
    const top = y - GAP - root.offsetHeight < 0 ? y + 2 * GAP : y - GAP - root.offsetHeight;
    root.style.setProperty("transform", `translate(${Math.round(left)}px, ${Math.round(top)}px)`);
  }
  return {
    hide,
    /** @param {Scene} scene @param {number | null} q @param {number | null} k @param {number} x @param {number} y */
    show(scene, q, k, x, y) {
      if (q === null || k === null || q >= scene.queries.length || k >= scene.keys.length) return hide();
      const cell = [scene.trace.id, scene.attention.name, scene.head, scene.kind, scene.queries.length, q, k].join();
      root.hidden = false;
      if (cell !== shown) {
        cancel();
        shown = cell;
        cancel = readCell(context, scene, q, k, (text) => { setText(root, text); place(x, y); });
      }
      place(x, y);
    },
  };
}
