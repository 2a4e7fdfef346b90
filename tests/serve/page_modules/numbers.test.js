// Numbers as text: rounding, percentages, signs, ticks of axes.
import assert from "node:assert/strict";
import { test } from "node:test";

import { scaleLabel, scaleTicks } from "#page/lens/matrix_paint.js";
import { asProblem, rgb } from "#page/shared/dom.js";
import { decimal, digitsFor, figure, fixed, percent, points, roundPercent, signed, tickText, ticks, tinyPercent } from "#page/shared/figures.js";
import { keyName, roundToSum, strongestKey, weightTexts } from "#page/lens/numbers_view.js";

/** Pseudorandom numbers around 0, the same in every run. */
function numbers(n, seed = 1) {
  let state = seed;
  return Array.from({ length: n }, () => {
    state = (state * 48271) % 2147483647;
    return (4 * state) / 2147483647 - 2;
  });
}
const sum = (values) => values.reduce((total, x) => total + x, 0);

test("displayed terms add up to the displayed total, and each is off by less than one unit", () => {
  for (let seed = 1; seed < 30; seed++) {
    const terms = numbers(32, seed);
    const rounded = roundToSum(terms, 3);
    assert.equal(sum(rounded).toFixed(3), sum(terms).toFixed(3));
    rounded.forEach((x, i) => assert.ok(Math.abs(x - terms[i]) < 0.001));
  }
});

test("percentages have one digit and are never 100 % or 0 % for a share that is not", () => {
  const shown = [0, 0.0004, 0.001, 0.1234, 0.9994, 0.9996, 1, -0.0004, -0.25].map(percent);
  assert.deepEqual(shown, ["0.0 %", "<0.1 %", "0.1 %", "12.3 %", "99.9 %", ">99.9 %", "100 %", ">−0.1 %", "−25.0 %"].map((text) => text.replace(" ", "\u00a0")));
});

test("weights of a row add up to 100 %, and none is shown as 0 or 100 that is not", () => {
  const walk = (...weights) => ({ keys: weights.map((weight) => ({ weight, weight_unscaled: null })) });
  assert.deepEqual(weightTexts(walk(1 / 3, 1 / 3, 1 / 3)).map(parseFloat).sort(), [33.33, 33.33, 33.34]);
  assert.deepEqual(weightTexts(walk(0.99999, 0.00001, 0)), [">99.99\u00a0%", "<0.01\u00a0%", "0\u00a0%"]);
  assert.deepEqual(weightTexts(walk(1, 0)), ["100.00\u00a0%", "0\u00a0%"]);
  assert.equal(strongestKey(walk(0.1, 0.6, 0.3)), 1);
});

test("minus signs are true ones, and there is no negative zero", () => {
  assert.equal(decimal(-1.25, 1), "−1.3");
  assert.equal(decimal(-0.001, 2), "0.00");
  assert.deepEqual([signed(0.5), signed(-0.5), signed(0.001), signed(null)], ["+0.50", "−0.50", "0.00", "–"]);
  assert.equal(points(0.1234, 0.2), "+7.7"); // of 12.3 % and 20.0 %
});

test("figures keep three significant digits", () => {
  assert.deepEqual([1234567, 123.456, 1.23456, 0.0123456, 0, 0.00012, -1500, null, NaN].map(figure),
    ["1,234,567", "123.5", "1.23", "0.0123", "0", "1.2e−4", "−1,500", "–", "–"]);
  assert.equal(fixed(undefined), "–");
  assert.deepEqual([[1500], [150], [15, undefined], [0.15], [0.015], []].map(digitsFor), [0, 1, 2, 3, 5, 5]);
});

test("probabilities of whole answers keep their digits", () => {
  assert.deepEqual([0.5, 0.00012, 1e-9].map(tinyPercent), ["50.0\u00a0%", "0.012\u00a0%", "<0.0001\u00a0%"]);
  assert.deepEqual([0.256, 0.005].map(roundPercent), ["26\u00a0%", "0.5\u00a0%"]);
});

test("ticks are round values within the range", () => {
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(-3.2, 7, 4), [0, 5]);
  assert.deepEqual(ticks(2, 2, 4), [2]);
  assert.deepEqual([-0.30000000000000004, 12345678].map(tickText), ["−0.3", "12345700"]);
});

test("the scale of the matrix names weights in percent and norms as they are", () => {
  assert.deepEqual(scaleTicks(0.8), [0, 0.2, 0.8]);
  assert.deepEqual([0, 0.05, 0.5].map((value) => scaleLabel(value, true)), ["0", "5.0 %", "50 %"]);
  assert.deepEqual([0.05, 0.5].map((value) => scaleLabel(value, false)), ["0.050", "0.50"]);
});

test("colors are read from long and short names", () => {
  assert.deepEqual(rgb("#0b62a4"), [11, 98, 164]);
  assert.deepEqual(rgb("#fff"), [255, 255, 255]);
});

test("whatever is thrown becomes a problem", () => {
  const problem = { title: "x", status: 422, detail: "y" };
  assert.equal(asProblem(problem), problem);
  assert.deepEqual(asProblem(new Error("broken")), { title: "Error", status: 0, detail: "broken" });
  assert.deepEqual(asProblem("text"), { title: "Error", status: 0, detail: "text" });
});

test("a token that is only a space is visible", () => {
  assert.deepEqual(["▁", "▁cat", "猫"].map(keyName), ["␣", "cat", "猫"]);
});
