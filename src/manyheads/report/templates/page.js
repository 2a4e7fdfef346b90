"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("figures").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const text = (name, values = {}) => data.texts[name][root.lang].replace(/\{(\w+)\}/g, (field, key) => values[key]);

  // The reader's choices survive a reload of the page. A browser may forbid storage for local files.
  const store = (area, key, value) => { try { window[area].setItem("manyheads." + key, value); } catch { /* not saved */ } };
  const load = (area, key) => { try { return window[area].getItem("manyheads." + key); } catch { return null; } };

  const language = load("localStorage", "language") || ((navigator.language || "en").startsWith("zh") ? "zh" : "en");
  let axis = load("localStorage", "axis") === "minute" ? "minute" : "step";
  let cursor = null; // the position on the axis that the reader points at

  // ---- numbers
  function format(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 1000) return Math.round(value).toLocaleString("en-US");
    if (size !== 0 && size < 0.001) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e-", "e−");
    return String(parseFloat(value.toPrecision(size >= 100 ? 4 : 3))).replace("-", "−");
  }

  function exact(value) { // for read-outs: always three digits, unlike tick labels
    const size = Math.abs(value);
    return value !== null && size >= 0.01 && size < 100 ? value.toPrecision(3).replace("-", "−") : format(value);
  }

  function roundTicks(low, high, count) {
    const rough = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) || 10 * power;
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(parseFloat((i * step).toPrecision(12)));
    return { ticks, step };
  }

  function logTicks(low, high) {
    const ticks = [];
    const factors = Math.log10(high / low) > 2.5 ? [1] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const factor of factors) {
        const tick = parseFloat((factor * 10 ** power).toPrecision(3));
        if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
      }
    }
    return ticks;
  }

  // ---- a curve: positions on the axis, each with a smoothed value, a minimum and a maximum
  function curveOf(name) {
    if (name === "score") {
      const values = data.validations.map((one) => one[2]);
      const xs = data.validations.map((one) => one[axis === "step" ? 0 : 1]);
      return { name, xs, mean: values, low: values, high: values, bold: values, dots: true };
    }
    const [mean, low, high] = data.curves[name];
    return { name, xs: data[axis], mean, low, high, bold: name === "rate" ? mean : smooth(mean), dots: false };
  }

  // A centered moving average, which does not lag; its window shrinks near the beginning, where curves are steep.
  function smooth(values) {
    const reach = Math.round(values.length / 60);
    return values.map((value, i) => {
      const known = values.slice(i - Math.min(reach, i), i + Math.min(reach, i) + 1).filter((one) => one !== null);
      return value === null ? null : known.reduce((sum, one) => sum + one, 0) / known.length;
    });
  }

  function verticalScale(curve, height) {
    const lows = curve.low.filter((value) => value !== null), highs = curve.high.filter((value) => value !== null);
    let low = Math.min(...lows), high = Math.max(...highs);
    const middle = [...highs].sort((a, b) => a - b)[highs.length >> 1];
    if (curve.name !== "score" && curve.name !== "rate" && low > 0 && high > 20 * middle) { // one spike would flatten the rest
      const ratio = Math.log(high / low);
      return { y: (value) => height - (Math.log(Math.max(value, low) / low) / ratio) * height, ticks: logTicks(low, high) };
    }
    if (!["loss", "score"].includes(curve.name) || low < 0.5 * high) low = Math.min(0, low);
    if (high === low) high = low + (Math.abs(low) || 1);
    const { step } = roundTicks(low, high, height / 48);
    low = Math.floor(low / step + 1e-9) * step;
    high = Math.ceil(high / step - 1e-9) * step;
    return { y: (value) => height - ((value - low) / (high - low)) * height, ticks: roundTicks(low, high, Math.round((high - low) / step)).ticks };
  }

  // ---- drawing
  function element(kind, attributes, parent, content) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (content !== undefined) made.textContent = content;
    if (parent) parent.append(made);
    return made;
  }

  const path = (points) => points.map((point, i) => (i ? "L" : "M") + point.map((value) => value.toFixed(1)).join(" ")).join("");

  function draw(plot) {
    const curve = curveOf(plot.dataset.curve);
    plot.replaceChildren();
    const indices = curve.xs.map((_, i) => i).filter((i) => curve.bold[i] !== null);
    if (!indices.length) { plot.textContent = text("empty"); return; }
    const margin = { left: 46, right: 10, top: 10, bottom: 24 };
    const width = Math.max(80, plot.clientWidth - margin.left - margin.right);
    const height = plot.clientHeight - margin.top - margin.bottom;
    const svg = element("svg", { role: "img", tabindex: 0, "aria-label": labelOf(plot, curve, indices) }, plot);
    const area = element("g", { transform: `translate(${margin.left} ${margin.top})` }, svg);
    const end = Math.max(data[axis][data[axis].length - 1] || 0, curve.xs[curve.xs.length - 1]) || 1;
    const x = (value) => (value / end) * width;
    const { y, ticks } = verticalScale(curve, height);
    for (const tick of ticks) {
      element("line", { class: "grid", x1: 0, x2: width, y1: y(tick), y2: y(tick) }, area);
      element("text", { x: -8, y: y(tick) + 4, "text-anchor": "end" }, area, format(tick));
    }
    const across = roundTicks(0, end, width / 90).ticks;
    across.forEach((tick) => {
      const isAtEdge = x(tick) > width - 14;
      element("text", { x: isAtEdge ? width : x(tick), y: height + 20, "text-anchor": isAtEdge ? "end" : "middle" }, area, format(tick));
    });
    if (!curve.dots && curve.name !== "rate") {
      const [lows, highs] = [curve.low, curve.high].map((side) => indices.map((i) => [x(curve.xs[i]), y(side[i])]));
      const isThinned = indices.some((i) => curve.low[i] !== curve.high[i]);
      element("path", { class: isThinned ? "raw band" : "raw", d: isThinned ? path([...highs, ...lows.reverse()]) + "Z" : path(highs) }, area);
    }
    element("path", { class: "smooth", d: path(indices.map((i) => [x(curve.xs[i]), y(curve.bold[i])])) }, area);
    if (curve.dots) drawDots(area, curve, x, y, width);
    else if (indices.length === 1) element("circle", { class: "dot", cx: x(curve.xs[indices[0]]), cy: y(curve.bold[indices[0]]), r: 3 }, area);
    const line = element("line", { class: "cursor", y1: 0, y2: height, visibility: "hidden" }, area);
    const here = element("circle", { class: "here", r: 3.5, visibility: "hidden" }, area);
    plot.showCursor = (value) => {
      const at = value === null ? null : nearest(curve.xs, indices, value);
      for (const one of [line, here]) one.setAttribute("visibility", at === null ? "hidden" : "visible");
      plot.parentElement.querySelector("output").textContent = at === null ? newest(curve, indices) : readout(curve, at, width);
      if (at === null) return;
      line.setAttribute("x1", x(curve.xs[at])); line.setAttribute("x2", x(curve.xs[at]));
      here.setAttribute("cx", x(curve.xs[at])); here.setAttribute("cy", y(curve.bold[at]));
    };
    plot.move = (by) => {
      const at = cursor === null ? indices.length - 1 : indices.indexOf(nearest(curve.xs, indices, cursor)) + by;
      moveCursor(curve.xs[indices[Math.max(0, Math.min(indices.length - 1, at))]]);
    };
    svg.addEventListener("pointermove", (event) => {
      const left = svg.getBoundingClientRect().left + margin.left;
      moveCursor(Math.max(0, Math.min(1, (event.clientX - left) / width)) * end);
    });
    svg.addEventListener("pointerleave", () => moveCursor(null));
    svg.addEventListener("blur", () => moveCursor(null));
    svg.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
      if (by) { plot.move(by); event.preventDefault(); }
      if (event.key === "Escape") moveCursor(null);
    });
    plot.showCursor(cursor);
  }

  function drawDots(area, curve, x, y, width) {
    const radius = curve.xs.length > 60 ? 1.5 : 3;
    curve.xs.forEach((position, i) => element("circle", { class: "dot", cx: x(position), cy: y(curve.mean[i]), r: radius }, area));
    const i = data.best;
    const [left, top] = [x(curve.xs[i]), y(curve.mean[i])];
    element("circle", { class: "best", cx: left, cy: top, r: 5 }, area);
    const isBelow = top < 22;
    element("text", { class: "annotation", x: Math.min(left, width), y: top + (isBelow ? 24 : -12), "text-anchor": left > width - 60 ? "end" : left < 40 ? "start" : "middle" },
      area, text("best", { value: exact(curve.mean[i]) }));
  }

  const nearest = (xs, indices, value) => indices.reduce((best, i) => (Math.abs(xs[i] - value) < Math.abs(xs[best] - value) ? i : best), indices[0]);

  function positionLabel(value) {
    return text(axis, { value: format(value) });
  }

  function readout(curve, i, width) {
    const isSpread = !curve.dots && curve.name !== "rate" && curve.high[i] !== curve.low[i];
    const spread = isSpread ? ` (${exact(curve.low[i])}–${exact(curve.high[i])})` : "";
    const where = spread && width < 280 ? "" : `${positionLabel(curve.xs[i])} · `; // too narrow; the large curves show the position
    return `${where}${exact(curve.mean[i])}${spread}`;
  }

  const newest = (curve, indices) => exact(curve.bold[indices[indices.length - 1]]);

  function labelOf(plot, curve, indices) {
    const first = indices[0], last = indices[indices.length - 1];
    const title = plot.parentElement.querySelector("h3 ." + root.lang).textContent;
    const best = curve.dots ? `, ${text("best", { value: exact(curve.mean[data.best]) })}` : "";
    const [from, to] = [first, last].map((i) => `${exact(curve.bold[i])} (${positionLabel(curve.xs[i])})`);
    return text("range", { title, from, to }) + best;
  }

  function moveCursor(value) { cursor = value; for (const plot of plots) if (plot.showCursor) plot.showCursor(value); }
  function drawAll() { for (const plot of plots) draw(plot); }

  // ---- choices
  function chooser(id, chosen, choose) {
    const group = document.getElementById(id);
    const press = (value) => { for (const button of group.children) button.setAttribute("aria-pressed", String(button.value === value)); };
    group.hidden = false;
    press(chosen);
    for (const button of group.children) {
      button.addEventListener("click", () => { store("localStorage", id, button.value); press(button.value); choose(button.value); drawAll(); });
    }
  }

  function setLanguage(chosen) {
    root.lang = chosen;
    for (const one of document.querySelectorAll("[data-language]")) {
      try { one.textContent = new Intl.DisplayNames([chosen === "zh" ? "zh-Hans" : "en"], { type: "language" }).of(one.dataset.language); } catch { /* keep the code */ }
    }
    updateStale();
  }

  function updateStale() {
    const minutes = Math.floor((Date.now() / 1000 - Number(root.dataset.made)) / 60);
    const line = document.getElementById("stale");
    line.hidden = !root.dataset.reload || minutes < 5;
    line.textContent = text("stale", { minutes: minutes.toLocaleString("en-US") });
  }

  // ---- keep the scroll position and open sections when the page reloads
  const details = [...document.querySelectorAll("details")];
  const detailsKey = (one, i) => `${one.querySelector("summary").textContent}#${i}`;
  function saveView() {
    const open = details.map((one, i) => (one.open ? detailsKey(one, i) : null)).filter(Boolean);
    store("sessionStorage", "view", JSON.stringify({ path: location.pathname, top: scrollY, open }));
  }
  function restoreView() {
    let saved = null;
    try { saved = JSON.parse(load("sessionStorage", "view")); } catch { /* none */ }
    store("sessionStorage", "view", "null"); // used once: a later visit starts at the top
    if (!saved || saved.path !== location.pathname) return;
    details.forEach((one, i) => { if (saved.open.includes(detailsKey(one, i))) one.open = true; });
    scrollTo(0, saved.top);
  }
  function reload() {
    const isReading = document.hidden || cursor !== null || String(getSelection()) !== "";
    if (isReading) { setTimeout(reload, 2000); return; }
    saveView();
    location.reload();
  }

  setLanguage(language);
  chooser("language", language, setLanguage);
  chooser("axis", axis, (chosen) => { axis = chosen; cursor = null; });
  drawAll();
  addEventListener("resize", drawAll);
  restoreView();
  if (root.dataset.reload) setTimeout(reload, 1000 * Number(root.dataset.reload));
})();
