// Small pictures of heads, and the color of their roles.
/** @import { Context, SurveyHead } from "./types.js" */
import { el, rgb } from "./dom.js";

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
