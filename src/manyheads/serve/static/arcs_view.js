/** @import { Context, HeadPart, Scene, Selection } from "./types.js" */
/** @import { ArcsLayout, Link, Word } from "./arcs_layout.js" */
// Arcs between words: the source over the target for cross-attention, one row of words for self-attention.
import { curveOf, layOutArcs, lineOpacity, lineWidth, linksOf, PITCH, strengthOf, WORD_SIZE } from "./arcs_layout.js";
import { cssColor, el, fitCanvas } from "./dom.js";
import { createPager } from "./pager.js";

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
const MAX_WORDS = 120;

/** @param {HTMLElement} root @param {Context} context @param {Selection} selection @returns {HeadPart} */
export function mountArcs(root, context, selection) {
  const { t, store } = context;
  /** @type {Scene | null} */
  let scene = null;
  /** @type {ArcsLayout | null} */
  let layout = null;
  /** @type {Link[]} */
  let links = [];
  let row = /** @type {"query" | "key"} */ ("query");
  const pager = createPager(context, () => draw());
  const base = el("canvas", { "aria-hidden": "true" });
  const over = el("canvas", { class: "over", tabindex: 0, role: "application" });
  const stage = el("div", { class: "stage arcs" }, base, over);
  const legend = el("p", { class: "hint" });
  root.append(pager.root, stage, legend);

  function draw() {
    if (!scene) return;
    const width = Math.max(240, Math.floor(stage.clientWidth));
    const parts = pager.parts(scene, Math.min(MAX_WORDS, Math.floor((width - 48) / PITCH)));
    const ruler = /** @type {CanvasRenderingContext2D} */ (base.getContext("2d"));
    ruler.font = `${WORD_SIZE}px ${FAMILY}`;
    links = linksOf(scene, parts, store.state.mass);
    layout = layOutArcs(scene, parts, links, width, (text) => ruler.measureText(text).width);
    const pen = fitCanvas(base, width, layout.height);
    const color = cssColor("--main");
    for (const link of links) drawLink(pen, scene, layout, link, color, 0.8);
    redraw();
  }

  function redraw() {
    if (!scene || !layout) return;
    if (pager.follow(selection)) return draw();
    const pen = fitCanvas(over, layout.width, layout.height);
    const [main, accent, ink, soft, paper] = ["--main", "--accent", "--ink", "--soft", "--paper"].map(cssColor);
    const [outgoing, incoming] = [new Set(selection.outgoing()), new Set(selection.incoming())];
    const isQuiet = outgoing.size === 0 && incoming.size === 0;
    base.style.setProperty("opacity", isQuiet ? "1" : "0.13");
    /** @type {Map<number, number>} strength of the words that are looked at, and of those that look */
    const seen = new Map();
    const seeing = new Map();
    for (const link of links) {
      const strength = strengthOf(scene, link.value);
      if (incoming.has(link.key) && !outgoing.has(link.query)) {
        drawLink(pen, scene, layout, link, accent, 1);
        seeing.set(link.query, Math.max(strength, seeing.get(link.query) ?? 0));
      }
    }
    for (const link of links) {
      if (!outgoing.has(link.query)) continue;
      drawLink(pen, scene, layout, link, main, 1);
      seen.set(link.key, Math.max(strengthOf(scene, link.value), seen.get(link.key) ?? 0));
    }
    const pinned = { query: new Set(selection.pinnedQueries()), key: new Set(selection.pinnedKeys()) };
    for (const word of layout.words) {
      const isQuery = word.row !== "key" && outgoing.has(word.index);
      const isKey = word.row !== "query" && incoming.has(word.index);
      const strength = Math.max(word.row !== "query" ? seen.get(word.index) ?? 0 : 0, word.row !== "key" ? seeing.get(word.index) ?? 0 : 0);
      const isPinned = (word.row !== "key" && pinned.query.has(word.index)) || (word.row !== "query" && pinned.key.has(word.index));
      const color = isQuery ? main : isKey ? accent : word.unit.kind === "text" ? ink : soft;
      drawWord(pen, word, color, { opacity: isQuiet || isQuery || isKey ? 1 : 0.45 + 0.55 * Math.sqrt(strength), isBold: isQuery || isKey, isPinned, paper });
    }
  }

  /** @param {PointerEvent} event @returns {Word | null} */
  function wordAt(event) {
    if (!layout) return null;
    const box = over.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const { key, query } = layout.bands;
    let best = null;
    let distance = 14;
    for (const word of layout.words) {
      const band = word.row === "key" ? key : query;
      if (y < band[0] || y > band[1]) continue;
      // A slanted word leans to the right, away from its row.
      const lean = word.turn && word.row !== "both" ? Math.abs(y - word.y) / Math.tan(Math.abs(word.turn)) : 0;
      const gap = Math.max(0, Math.abs(x - word.x - lean) - word.half);
      if (gap < distance) [best, distance] = [word, gap];
    }
    return best;
  }
  /** @param {Word | null} word @returns {[number | null, number | null]} */
  const ends = (word) => (!word ? [null, null] : word.row === "both" ? [word.index, word.index] : word.row === "query" ? [word.index, null] : [null, word.index]);

  over.addEventListener("pointermove", (event) => selection.hover(...ends(wordAt(event))));
  over.addEventListener("pointerleave", () => selection.hover(null, null));
  over.addEventListener("click", (event) => {
    const word = wordAt(/** @type {PointerEvent} */ (event));
    if (word) selection.toggle(...ends(word));
  });
  over.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !scene) return;
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step || event.key === "ArrowUp" || event.key === "ArrowDown") {
      if (event.key === "ArrowUp") row = "key";
      if (event.key === "ArrowDown") row = "query";
      const last = (scene.isSelf || row === "query" ? scene.queries : scene.keys).length - 1;
      const now = row === "query" ? selection.query : selection.key;
      const next = Math.max(0, Math.min(last, now === null ? 0 : now + step));
      selection.hover(scene.isSelf || row === "query" ? next : null, scene.isSelf || row === "key" ? next : null);
      if (pager.show(scene.isSelf || row === "query" ? "queries" : "keys", next)) draw();
    } else if (event.key === "Enter" || event.key === " ") selection.toggle(selection.query, selection.key);
    else if (!pager.key(event.key)) return;
    event.preventDefault();
  });

  const watcher = new ResizeObserver(() => { if (layout && Math.floor(stage.clientWidth) !== layout.width) draw(); });
  watcher.observe(stage);
  return {
    setScene(next) {
      scene = next;
      over.setAttribute("aria-label", t(scene.isSelf ? "arcs_name_self" : "arcs_name_cross", { head: context.headTitle(next.attention.name, next.head) }));
      legend.textContent = !scene.isSelf ? t("arcs_cross") : t(scene.attention.kind === "decoder" ? "arcs_causal" : "arcs_self");
      draw();
    },
    redraw,
    destroy: () => watcher.disconnect(),
  };
}

/** @param {CanvasRenderingContext2D} pen @param {Scene} scene @param {ArcsLayout} layout @param {Link} link @param {string} color @param {number} opacity */
function drawLink(pen, scene, layout, link, color, opacity) {
  const curve = curveOf(scene, layout, link);
  if (!curve) return;
  const strength = strengthOf(scene, link.value);
  pen.globalAlpha = opacity * lineOpacity(strength);
  pen.strokeStyle = color;
  pen.lineWidth = lineWidth(strength);
  pen.beginPath();
  pen.moveTo(curve[0], curve[1]);
  pen.bezierCurveTo(curve[2], curve[3], curve[4], curve[5], curve[6], curve[7]);
  pen.stroke();
  pen.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} pen @param {Word} word @param {string} color @param {{ opacity: number, isBold: boolean, isPinned: boolean, paper: string }} look */
function drawWord(pen, word, color, { opacity, isBold, isPinned }) {
  pen.save();
  pen.font = `${isBold ? "600 " : ""}${word.unit.kind === "special" ? WORD_SIZE - 3 : WORD_SIZE}px ${FAMILY}`;
  pen.fillStyle = color;
  pen.strokeStyle = color;
  pen.globalAlpha = opacity;
  pen.textBaseline = "middle";
  pen.translate(word.x, word.y);
  if (word.isStacked) {
    const characters = [...word.text];
    pen.textAlign = "center";
    characters.forEach((character, i) => pen.fillText(character, 0, (i - (characters.length - 1) / 2) * (WORD_SIZE + 1)));
  } else {
    pen.rotate(word.turn);
    pen.textAlign = word.turn && word.row !== "both" ? "start" : "center";
    pen.fillText(word.text, 0, 0, word.turn ? 112 : undefined);
    if (isPinned) {
      const half = pen.measureText(word.text).width / 2;
      const from = pen.textAlign === "start" ? 0 : -half;
      pen.fillRect(from, WORD_SIZE / 2 + 2, 2 * half, 2);
    }
  }
  pen.restore();
}
