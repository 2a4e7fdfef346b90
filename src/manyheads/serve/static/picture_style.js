// Colors and type of saved pictures: plain values, because CSS variables turn black outside a browser.
export const PAPER = "#ffffff";
export const INK = "#1b1d21";
export const SOFT = "#5d636e";
export const LINE = "#e3e5e9";
export const WASH = "#f1f2f5";
export const MAIN = "#0b62a4";
export const ACCENT = "#b8500a";
export const FAMILY = "Helvetica Neue, Helvetica, Arial, PingFang SC, Microsoft YaHei, Noto Sans CJK SC, WenQuanYi Micro Hei, sans-serif";

/** Width of a text in pixels. @param {number} size */
export function ruler(size) {
  const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  pen.font = `${size}px ${FAMILY}`;
  return (/** @type {string} */ text) => pen.measureText(text).width;
}

/** @typedef {{ t: import("./types.d.ts").Translate, pins: { queries: number[], keys: number[] }, mass: number }} PictureOptions */
/** @typedef {{ node: SVGGElement, width: number, height: number }} Drawn */
