// Numbers as text, round values for axes, and the drawing of an interval as in report.html.
import { svg } from "./dom.js";

/** "12.3 %", without false precision, and never 100 % for less; the space does not break. @param {number} share */
export function percent(share) {
  const value = 100 * share;
  if (value !== 0 && Math.abs(value) < 0.1) return value > 0 ? "<0.1\u00a0%" : ">−0.1\u00a0%";
  if (value >= 99.95 && value < 100) return ">99.9\u00a0%";
  return `${minus(value.toFixed(Math.abs(value) >= 99.95 ? 0 : 1))}\u00a0%`;
}

/** A number with a true minus sign. @param {number} value @param {number} digits */
export function decimal(value, digits) {
  return minus(value.toFixed(digits));
}

/** @param {string} text */
function minus(text) {
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

/** Three significant digits. @param {number | null | undefined} value */
export function figure(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US").replace("-", "−");
  if (size === 0) return "0";
  if (size < 0.001) return value.toExponential(1).replaceAll("-", "−");
  return value.toPrecision(size >= 100 ? 4 : 3).replace("-", "−");
}

/** A fixed number of digits, for columns. @param {number | null | undefined} value @param {number} [digits] */
export function fixed(value, digits = 2) {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : decimal(value, digits);
}

/** How many digits a column of these values needs. @param {(number | undefined)[]} values */
export function digitsFor(values) {
  const largest = Math.max(0, ...values.map((value) => (Number.isFinite(value) ? Math.abs(Number(value)) : 0)));
  return largest >= 1000 ? 0 : largest >= 100 ? 1 : largest >= 1 ? 2 : largest >= 0.1 ? 3 : 5;
}

/** How many digits tell the ends of an interval apart. @param {number} low @param {number} high */
export function digitsBetween(low, high) {
  for (let digits = 2; digits < 9; digits++) if (low.toFixed(digits) !== high.toFixed(digits)) return digits;
  return 2;
}

/** With its sign. @param {number | null | undefined} value @param {number} [digits] */
export function signed(value, digits = 2) {
  const text = fixed(value, digits);
  return value !== null && value !== undefined && value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** A change of probability in percentage points: the difference of the displayed values. @param {number} before @param {number} after @param {number} [digits] */
export function points(before, after, digits = 1) {
  return signed((Math.round(1000 * after) - Math.round(1000 * before)) / 10, digits);
}

/** A probability that may be tiny: the answer of many tokens. @param {number} share */
export function tinyPercent(share) {
  if (share >= 0.001) return percent(share);
  return share >= 1e-6 ? `${parseFloat((100 * share).toPrecision(2))}\u00a0%` : "<0.0001\u00a0%";
}

/** Without decimals where they tell nothing. @param {number} share */
export function roundPercent(share) {
  return share >= 0.01 && share <= 0.99 ? `${Math.round(100 * share)}\u00a0%` : percent(share);
}

/** Round values for an axis. @param {number} low @param {number} high @param {number} count */
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) ?? 10 * power;
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) values.push(parseFloat((i * step).toPrecision(12)));
  return values;
}

/** @param {number} value */
export function tickText(value) {
  return String(parseFloat(value.toPrecision(6))).replace("-", "−");
}

/**
 * Draw an interval with its value, and marks for the values it is compared with.
 * @param {{ value: number, low: number, high: number }} interval
 * @param {{ low: number, high: number }} range
 * @param {{ at: number, kind: "baseline" | "control" | "zero" }[]} [marks]
 */
export function drawInterval(interval, range, marks = []) {
  const width = range.high - range.low || 1;
  const share = (/** @type {number} */ value) => Math.min(1, Math.max(0, (value - range.low) / width));
  const place = (/** @type {number} */ value) => `${(100 * share(value)).toFixed(2)}%`;
  const length = Math.max(0.4, 100 * (share(interval.high) - share(interval.low)));
  return svg("svg", { class: "interval", height: 16, "aria-hidden": "true" },
    svg("line", { class: "mark-axis", x1: 0, x2: "100%", y1: 8, y2: 8 }),
    ...marks.filter((mark) => Number.isFinite(mark.at)).map((mark) =>
      svg("line", { class: `mark-${mark.kind}`, x1: place(mark.at), x2: place(mark.at), y1: 1, y2: 15 })),
    svg("rect", { x: place(interval.low), width: `${length.toFixed(2)}%`, y: 4, height: 8 }),
    svg("circle", { cx: place(interval.value), cy: 8, r: 3.5 }));
}
