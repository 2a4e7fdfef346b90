/** @import { Scene } from "./types.js" */
/** @import { Drawn, PictureOptions } from "./picture_style.js" */
// The arcs as a picture.
import { curveOf, layOutArcs, lineOpacity, lineWidth, linksOf, PITCH, strengthOf, WORD_SIZE } from "./arcs_layout.js";
import { decimal, svg } from "./dom.js";
import { ACCENT, INK, MAIN, ruler, SOFT } from "./picture_style.js";

const MAX_WORDS = 160;

/** @param {Scene} scene @param {PictureOptions} options @returns {Drawn} */
export function arcsPicture(scene, { t, pins, mass }) {
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
