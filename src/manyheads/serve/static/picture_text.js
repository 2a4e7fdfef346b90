/** @import { Scene, Unit } from "./types.js" */
/** @import { Drawn, PictureOptions } from "./picture_style.js" */
// The colored text as a picture.
import { strengthOf } from "./arcs_layout.js";
import { svg } from "./dom.js";
import { meanReceived, shownText, weightOf } from "./head_map.js";
import { ACCENT, INK, MAIN, ruler, SOFT } from "./picture_style.js";

const WIDTH = 640;
const SIZE = 16;
const LINE_HEIGHT = 32;
const MAX_UNITS = 400;

/** @param {Scene} scene @param {PictureOptions} options @returns {Drawn} */
export function textPicture(scene, { t, pins }) {
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
