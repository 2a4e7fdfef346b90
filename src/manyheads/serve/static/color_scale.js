/** @import { Context, Scene, Translate } from "./types.js" */
// The legend of the matrix: colors grow with the square root of the value.
import { cssColor, decimal, el, fitCanvas, setText } from "./dom.js";
import { colorTable, isCausal } from "./matrix_paint.js";

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
