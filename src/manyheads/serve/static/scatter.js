// Heads as points by two measures. The shape of a point is the kind of attention, its color the role.
/** @import { Context, SurveyHead } from "./types.js" */
import { cssColor, el, fitCanvas, perFrame } from "./dom.js";
import { figure, tickText, ticks } from "./figures.js";
import { KINDS, parseHead, shortName } from "./head_names.js";
import { roleColor } from "./thumbnails.js";

/** @typedef {{ id: string, name: string }} Axis */
/** @typedef {{ head: SurveyHead, x: number, y: number }} Point */

const MARGIN = { left: 56, right: 18, top: 14, bottom: 44 };
const RADIUS = 6;
const REACH = 18; // pixels from the pointer to a point

/**
 * @param {Context} context
 * @param {{ point: (head: string | null) => void, open: (head: string) => void }} acts
 */
export function scatter(context, acts) {
  const { t } = context;
  const canvas = el("canvas", { class: "scatter-canvas", tabindex: 0, role: "img" });
  const output = el("output", { class: "scatter-output", "aria-live": "polite" });
  const legend = el("div", { class: "scatter-legend" });
  const root = el("figure", { class: "scatter" }, canvas, el("figcaption", {}, output, legend));
  /** @type {Point[]} */
  let points = [];
  /** @type {[Axis, Axis]} */
  let axes = [{ id: "", name: "" }, { id: "", name: "" }];
  /** @type {ReadonlySet<string>} */
  let kept = new Set();
  /** @type {string | null} */
  let pointed = null;
  const draw = perFrame(paint);
  const watcher = new ResizeObserver(draw);
  watcher.observe(root);

  canvas.addEventListener("pointermove", (event) => pointAt(nearest(event.offsetX, event.offsetY)));
  canvas.addEventListener("pointerleave", () => pointAt(null));
  canvas.addEventListener("click", (event) => {
    const head = nearest(event.offsetX, event.offsetY);
    if (head) acts.open(head);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && pointed) acts.open(pointed);
    else if (event.key === "ArrowRight" || event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowLeft" || event.key === "ArrowUp") step(-1);
    else return;
    event.preventDefault();
  });

  /** @param {string | null} head */
  function pointAt(head) {
    if (head === pointed) return;
    acts.point(head);
    mark(head);
  }

  /** @param {string | null} head */
  function mark(head) {
    pointed = head;
    canvas.classList.toggle("is-pointing", head !== null);
    const found = points.find((point) => point.head.head === head);
    output.textContent = found ? describe(found) : t("scatter_hint");
    draw();
  }

  /** @param {Point} point */
  function describe({ head }) {
    const values = axes.map((axis) => `${axis.name} ${figure(head.values[axis.id])}`);
    return [shortName(head.head, t), context.pick(head.names), ...values].join(" · ");
  }

  /** From left to right, with the keyboard. @param {number} by */
  function step(by) {
    const order = points.filter((point) => kept.has(point.head.head)).sort((a, b) => a.x - b.x);
    const now = order.findIndex((point) => point.head.head === pointed);
    const next = order[now < 0 ? (by > 0 ? 0 : order.length - 1) : (now + by + order.length) % order.length];
    if (next) pointAt(next.head.head);
  }

  /** @param {number} x @param {number} y */
  function nearest(x, y) {
    const [toX, toY] = scales();
    let best = null;
    let least = REACH;
    for (const point of points) {
      if (!kept.has(point.head.head)) continue;
      const distance = Math.hypot(toX.place(point.x) - x, toY.place(point.y) - y);
      if (distance < least) [best, least] = [point.head.head, distance];
    }
    return best;
  }

  function size() {
    const width = root.clientWidth || 600;
    return { width, height: Math.round(Math.min(460, Math.max(280, width * 0.5))) };
  }

  function scales() {
    const { width, height } = size();
    return [
      scale(points.map((point) => point.x), MARGIN.left, width - MARGIN.right),
      scale(points.map((point) => point.y), height - MARGIN.bottom, MARGIN.top),
    ];
  }

  function paint() {
    if (!root.isConnected) return;
    const { width, height } = size();
    const pen = fitCanvas(canvas, width, height);
    const [toX, toY] = scales();
    const color = { soft: cssColor("--soft"), line: cssColor("--line"), ink: cssColor("--ink"), paper: cssColor("--paper") };
    const font = getComputedStyle(root).fontFamily;
    pen.font = `12px ${font}`;
    pen.lineWidth = 1;
    pen.strokeStyle = color.line;
    pen.fillStyle = color.soft;
    drawAxes(pen, toX, toY, width, height);
    const order = [...points].sort((a, b) => Number(kept.has(a.head.head)) - Number(kept.has(b.head.head)) || Number(a.head.head === pointed) - Number(b.head.head === pointed));
    for (const { head, x, y } of order) {
      pen.globalAlpha = kept.has(head.head) ? 1 : 0.15;
      const isPointed = head.head === pointed;
      drawShape(pen, parseHead(head.head).kind, toX.place(x), toY.place(y), isPointed ? RADIUS + 2 : RADIUS);
      pen.fillStyle = roleColor(head) || color.paper;
      pen.fill();
      pen.lineWidth = isPointed ? 2 : 1;
      pen.strokeStyle = isPointed ? color.ink : color.soft;
      pen.stroke();
    }
    pen.globalAlpha = 1;
    const found = points.find((point) => point.head.head === pointed);
    if (found) drawLabel(pen, found, toX.place(found.x), toY.place(found.y), width, color, font);
  }

  /**
   * @param {CanvasRenderingContext2D} pen @param {Scale} toX @param {Scale} toY @param {number} width @param {number} height
   */
  function drawAxes(pen, toX, toY, width, height) {
    const bottom = height - MARGIN.bottom;
    const line = (/** @type {number[]} */ [x1, y1, x2, y2]) => { pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke(); };
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of ticks(toX.low, toX.high, width / 110)) {
      const x = Math.round(toX.place(value)) + 0.5;
      line([x, MARGIN.top, x, bottom]);
      pen.fillText(tickText(value), x, bottom + 7);
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of ticks(toY.low, toY.high, height / 70)) {
      const y = Math.round(toY.place(value)) + 0.5;
      line([MARGIN.left, y, width - MARGIN.right, y]);
      pen.fillText(tickText(value), MARGIN.left - 8, y);
    }
    pen.textBaseline = "bottom";
    pen.fillText(axes[0].name, width - MARGIN.right, height - 2);
    pen.save();
    pen.translate(12, MARGIN.top);
    pen.rotate(-Math.PI / 2);
    pen.textBaseline = "top";
    pen.fillText(axes[1].name, 0, -10);
    pen.restore();
  }

  /**
   * @param {CanvasRenderingContext2D} pen @param {Point} point @param {number} x @param {number} y @param {number} width
   * @param {{ ink: string, paper: string }} color @param {string} font
   */
  function drawLabel(pen, { head }, x, y, width, color, font) {
    const text = `${shortName(head.head, t)} · ${context.pick(head.names)}`;
    pen.font = `600 13px ${font}`;
    const room = pen.measureText(text).width + 14;
    const toLeft = x + room > width;
    pen.textAlign = toLeft ? "right" : "left";
    pen.textBaseline = "middle";
    pen.lineWidth = 4;
    pen.strokeStyle = color.paper;
    pen.strokeText(text, x + (toLeft ? -13 : 13), y);
    pen.fillStyle = color.ink;
    pen.fillText(text, x + (toLeft ? -13 : 13), y);
  }

  /** @param {SurveyHead[]} heads */
  function fillLegend(heads) {
    const kinds = KINDS.filter((kind) => heads.some((head) => parseHead(head.head).kind === kind));
    legend.replaceChildren(...kinds.map((kind) => {
      const sample = el("canvas", { "aria-hidden": "true" });
      const pen = fitCanvas(sample, 14, 14);
      drawShape(pen, kind, 7, 7, 5);
      pen.strokeStyle = cssColor("--soft");
      pen.stroke();
      return el("span", { class: "role-entry" }, sample, t(`short_${kind}`));
    }));
  }

  return {
    root, mark,
    /** @param {SurveyHead[]} heads @param {ReadonlySet<string>} visible heads that pass the filter @param {[Axis, Axis]} chosen */
    update(heads, visible, chosen) {
      axes = chosen;
      kept = visible;
      points = heads.flatMap((head) => {
        const [x, y] = chosen.map((axis) => head.values[axis.id]);
        return Number.isFinite(x) && Number.isFinite(y) ? [{ head, x, y }] : [];
      });
      canvas.setAttribute("aria-label", t("scatter_label", { count: points.length, x: chosen[0].name, y: chosen[1].name }));
      fillLegend(heads);
      mark(points.some((point) => point.head.head === pointed) ? pointed : null);
    },
    /** Heads that lack one of the two values. @param {SurveyHead[]} heads */
    missing: (heads) => heads.length - points.length,
    destroy: () => watcher.disconnect(),
  };
}

/** @typedef {{ low: number, high: number, place: (value: number) => number }} Scale */

/** @param {number[]} values @param {number} from @param {number} to @returns {Scale} */
function scale(values, from, to) {
  let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  [low, high] = [low - room, high + room];
  return { low, high, place: (value) => from + ((value - low) / (high - low)) * (to - from) };
}

/** @param {CanvasRenderingContext2D} pen @param {string} kind @param {number} x @param {number} y @param {number} radius */
function drawShape(pen, kind, x, y, radius) {
  pen.beginPath();
  if (kind === "encoder") pen.arc(x, y, radius, 0, 2 * Math.PI);
  else if (kind === "decoder") pen.rect(x - radius * 0.9, y - radius * 0.9, radius * 1.8, radius * 1.8);
  else {
    pen.moveTo(x, y - radius * 1.15);
    pen.lineTo(x + radius * 1.1, y + radius * 0.85);
    pen.lineTo(x - radius * 1.1, y + radius * 0.85);
    pen.closePath();
  }
}
