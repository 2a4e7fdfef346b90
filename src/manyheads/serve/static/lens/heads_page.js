// All heads over the corpus: a scatter by two measures, and a table to sort, filter and group.
/** @import { Context, HeadSurvey, SurveyHead, View } from "./lens_types.js" */
import { button, dropdown, progressBar, show } from "../shared/controls.js";
import { cssColor, el, fitCanvas, perFrame, setText } from "../shared/dom.js";
import { digitsFor, drawInterval, figure, fixed, signed, ticks, tickText } from "../shared/figures.js";
import { allHeads, headsByKind, KINDS, parseHead, roleColor, shortName } from "./heads.js";

const N_COLUMNS = 4; // measures in the table

/** @param {HTMLElement} root @param {Context} context @returns {View} */
export function mountHeadsPage(root, context) {
  const { store, t } = context;
  const top = el("div", { class: "heads-top" });
  const axes = el("div", { class: "heads-axes" });
  const filters = el("div", { class: "heads-filters" });
  const table = el("div", { class: "heads-table" });
  const missing = el("p", { class: "note-small" });
  const count = el("span", { class: "heads-count", role: "status" });
  const plot = scatter(context, { point: markRow, open });
  const search = el("input", { type: "search", "data-key": "search", oninput: () => store.set({ find: search.value }) });
  const node = el("div", { class: "heads-page" }, top, axes, plot.root, missing, filters, table);
  root.append(node);
  context.load.survey();

  /** @param {string} head */
  function open(head) {
    const { attention, number } = parseHead(head);
    store.set({ page: "head", attention, head: number });
  }

  /** @param {string | null} head */
  function markRow(head) {
    for (const row of table.querySelectorAll("tr[data-head]")) row.classList.toggle("is-pointed", row instanceof HTMLElement && row.dataset.head === head);
  }

  /** Whether the filters keep a head; a role that no head has does not filter. @param {SurveyHead} head @param {string} role */
  function passes(head, role) {
    const { onlyKind, find } = store.state;
    if (role && !hasRole(head, role)) return false;
    if (onlyKind && parseHead(head.head).kind !== onlyKind) return false;
    const text = find.trim().toLowerCase();
    const names = [head.head, shortName(head.head, t), ...[head, ...head.roles].map((one) => `${one.names.en} ${one.names.zh}`)];
    return !text || names.join(" ").toLowerCase().includes(text);
  }

  /** @param {HeadSurvey} survey */
  function measuresOf(survey) {
    return survey.measures.map(({ id, names }) => ({ id, name: context.pick(names) }));
  }

  /** @param {HeadSurvey | null} survey */
  function buildTop(survey) {
    const count = allHeads(context.data.info).length;
    const title = el("h2", {}, t("heads_title"));
    if (!survey) return [title, el("p", { class: "note-small" }, t("heads_waiting"))];
    const message = survey.message ? context.pick(survey.message) : "";
    if (survey.state === "failed") return [title, el("p", { class: "caution", role: "alert" }, message || t("heads_failed"))];
    const summary = el("p", { class: "note-small" }, t("heads_summary", { count, texts: survey.n_texts }));
    if (survey.state !== "running") return [title, summary];
    return [title, el("p", { class: "note-small" }, message || t("heads_running"), ` · ${t("heads_so_far", { done: survey.heads.length, count })}`), progressBar(t("heads_running"), survey.done)];
  }

  /** @param {{ id: string, name: string }[]} measures @param {[string, string]} axes */
  function buildAxes(measures, [x, y]) {
    const choices = measures.map(({ id, name }) => /** @type {const} */ ([id, name]));
    return [
      dropdown(t("heads_x"), choices, x, (axisX) => store.set({ axisX })),
      dropdown(t("heads_y"), choices, y, (axisY) => store.set({ axisY })),
    ];
  }

  /** @param {HeadSurvey} survey */
  function buildFilters(survey) {
    /** @type {Map<string, string>} */
    const roles = new Map();
    for (const head of survey.heads) for (const role of [{ name: head.role, names: head.names }, ...head.roles]) roles.set(role.name, context.pick(role.names));
    const kinds = [...new Set(context.data.info.attentions.map(({ kind }) => kind))].sort((a, b) => KINDS.indexOf(a) - KINDS.indexOf(b));
    const { onlyRole, onlyKind, groupBy } = store.state;
    search.setAttribute("aria-label", t("heads_search"));
    search.setAttribute("placeholder", t("heads_search"));
    return [
      dropdown(t("heads_role"), [["", t("heads_all")], ...[...roles].sort((a, b) => a[1].localeCompare(b[1]))], onlyRole, (role) => store.set({ onlyRole: role })),
      dropdown(t("heads_kind"), [["", t("heads_all")], ...kinds.map((kind) => /** @type {const} */ ([kind, t(`kind_${kind}`)]))], onlyKind, (value) => store.set({ onlyKind: kinds.find((kind) => kind === value) ?? "" })),
      dropdown(t("heads_group"), [["", t("heads_group_none")], ["role", t("heads_group_role")], ["layer", t("heads_group_layer")]], groupBy, (value) => store.set({ groupBy: value === "role" || value === "layer" ? value : "" })),
      el("span", { class: "field" }, search),
      count,
      button("CSV", () => saveHeads(survey, context.data.info.name), { class: "quiet", title: t("heads_csv"), "aria-label": t("heads_csv") }),
    ];
  }

  /** @param {SurveyHead[]} heads @param {{ id: string, name: string }[]} measures @param {[string, string]} axes */
  function buildTable(heads, measures, axes) {
    const ids = [...new Set([...axes, "importance", "entropy", "distance", "confidence"])].filter((id) => measures.some((measure) => measure.id === id));
    const columns = ids.slice(0, N_COLUMNS).map((id) => {
      const name = measures.find((measure) => measure.id === id)?.name ?? id;
      return { id, name, digits: digitsFor(heads.map((head) => head.values[id])) };
    });
    if (heads.length === 0) return [el("p", { class: "note-small" }, t("heads_none"))];
    const intervals = heads.flatMap((head) => (head.importance ? [head.importance] : []));
    const range = { low: Math.min(0, ...intervals.map((one) => one.low)), high: Math.max(1e-9, ...intervals.map((one) => one.high)) };
    const header = el("thead", {}, el("tr", {}, sortHeader("head", t("heads_head"), ""), sortHeader("role", t("heads_role"), ""),
      ...columns.map(({ id, name }, i) => sortHeader(id, name, i < 2 ? "num" : "num extra")), intervals.length ? el("th", { scope: "col", class: "picture" }, t("heads_importance")) : null));
    const bodies = grouped(heads).map(([title, group]) => el("tbody", {},
      title ? el("tr", { class: "group" }, el("th", { colspan: columns.length + 2 + (intervals.length ? 1 : 0), scope: "rowgroup" }, title, el("span", { class: "faint" }, ` ${group.length}`))) : null,
      ...sorted(group).map((head) => buildRow(head, columns, intervals.length ? range : null))));
    return [el("table", { class: "heads" }, header, ...bodies), ...notes(columns.map(({ id }) => id))];
  }

  /** What importance means, and how far the gradient agrees with it. @param {string[]} ids of the columns */
  function notes(ids) {
    const agreement = context.data.heads?.agreement;
    const lines = [
      ids.some((id) => id.startsWith("importance")) ? t("heads_importance_note") : "",
      agreement ? t("heads_gradient_note", { value: signed(agreement.value), low: signed(agreement.low), high: signed(agreement.high), count: agreement.n_heads }) : "",
    ];
    return lines.filter(Boolean).map((line) => el("p", { class: "note-small" }, line));
  }

  /** @param {string} id @param {string} text @param {string} kind */
  function sortHeader(id, text, kind) {
    const { by, isDown } = order();
    const isSorted = by === id;
    const sort = () => store.set({ sortBy: (isSorted ? !isDown : kind !== "") ? `-${id}` : id });
    return el("th", { scope: "col", class: kind || null, "aria-sort": isSorted ? (isDown ? "descending" : "ascending") : null },
      button(text, sort, { class: "sort", "data-key": `sort ${id}` }), id === "confidence" ? el("span", { class: "column-note" }, t("heads_without_ends")) : null);
  }

  /** @param {SurveyHead} head @param {{ id: string, digits: number }[]} columns @param {{ low: number, high: number } | null} range */
  function buildRow(head, columns, range) {
    const { attention, number } = parseHead(head.head);
    const swatch = el("span", { class: "swatch" });
    swatch.style.setProperty("background-color", roleColor(head));
    const others = head.roles.slice(1).map((role) => context.pick(role.names));
    return el("tr", { "data-head": head.head, onpointerenter: () => plot.mark(head.head), onpointerleave: () => plot.mark(null) },
      el("th", { scope: "row" }, el("a", { href: store.address({ page: "head", attention, head: number }), title: head.head }, shortName(head.head, t))),
      el("td", {}, el("span", { class: "role-name" }, swatch, context.pick(head.names)), others.length ? el("span", { class: "faint more" }, others.join(t("list_comma"))) : null),
      ...columns.map(({ id, digits }, i) => el("td", { class: i < 2 ? "num" : "num extra" }, fixed(head.values[id], digits))),
      range ? el("td", { class: "picture" }, head.importance ? drawInterval(head.importance, range, [{ at: 0, kind: "zero" }]) : null) : null);
  }

  /** @param {SurveyHead[]} heads @returns {[string, SurveyHead[]][]} */
  function grouped(heads) {
    const { groupBy } = store.state;
    if (!groupBy) return [["", heads]];
    /** @type {Map<string, SurveyHead[]>} */
    const groups = new Map();
    for (const head of heads) {
      const key = groupBy === "role" ? context.pick(head.names) : context.headTitle(parseHead(head.head).attention, null);
      groups.set(key, [...(groups.get(key) ?? []), head]);
    }
    return [...groups];
  }

  function order() {
    const { sortBy } = store.state;
    return { by: sortBy.replace(/^-/, ""), isDown: sortBy.startsWith("-") };
  }

  /** @param {SurveyHead[]} heads */
  function sorted(heads) {
    const { by, isDown } = order();
    if (!by || by === "head") return isDown ? [...heads].reverse() : heads;
    const sign = isDown ? -1 : 1;
    if (by === "role") return [...heads].sort((a, b) => sign * context.pick(a.names).localeCompare(context.pick(b.names)));
    return [...heads].sort((a, b) => { // heads without a value come last
      const [one, other] = [a.values[by], b.values[by]];
      if (!Number.isFinite(one) || !Number.isFinite(other)) return Number(Number.isFinite(other)) - Number(Number.isFinite(one));
      return sign * (one - other);
    });
  }

  const view = {
    update() {
      const survey = context.data.heads;
      const { lang, axisX, axisY, onlyRole, onlyKind, find, groupBy, sortBy } = store.state;
      show(top, [survey, lang], () => buildTop(survey));
      const hasHeads = survey !== null && survey.heads.length > 0;
      for (const part of [axes, plot.root, filters, table, missing]) part.hidden = !hasHeads;
      if (!survey || !hasHeads) return;
      const measures = measuresOf(survey);
      const known = (/** @type {string} */ id, /** @type {number} */ i) => measures.find((measure) => measure.id === id) ?? measures[Math.min(i, measures.length - 1)] ?? { id, name: id };
      const [x, y] = [known(axisX, 0), known(axisY, 1)];
      const role = survey.heads.some((head) => hasRole(head, onlyRole)) ? onlyRole : "";
      const place = new Map(headsByKind(context.data.info).map((name, i) => [name, i]));
      const kept = survey.heads.filter((head) => passes(head, role)).sort((a, b) => (place.get(a.head) ?? 0) - (place.get(b.head) ?? 0));
      show(axes, [measures.map(({ name }) => name).join(), x.id, y.id, lang], () => buildAxes(measures, [x.id, y.id]));
      show(filters, [survey, lang, role, onlyKind, groupBy], () => buildFilters(survey));
      if (document.activeElement !== search && search.value !== find) search.value = find;
      setText(count, kept.length === survey.heads.length ? "" : t("heads_count", { kept: kept.length, count: survey.heads.length }));
      plot.update(survey.heads, new Set(kept.map((head) => head.head)), [x, y]);
      const n_missing = plot.missing(survey.heads);
      missing.hidden = n_missing === 0;
      setText(missing, t("heads_missing", { count: n_missing }));
      show(table, [survey, lang, x.id, y.id, role, onlyKind, find, groupBy, sortBy], () => buildTable(kept, measures, [x.id, y.id]));
    },
    destroy() { plot.destroy(); node.remove(); },
  };
  return view;
}

/** @param {SurveyHead} head @param {string} role */
function hasRole(head, role) {
  return head.role === role || head.roles.some((each) => each.name === role);
}

// ---------------------------------------------------------------- the measures as a CSV file

/** @param {HeadSurvey} survey @returns {string} */
export function headsCsv(survey) {
  const ids = survey.measures.map(({ id }) => id);
  const header = ["head", "attention", "layer", "number", "role", "all_roles", "reach", ...ids, "importance_low", "importance_high"];
  const rows = survey.heads.map((head) => {
    const { kind, layer, number } = parseHead(head.head);
    return [head.head, kind, layer, number, head.role, head.roles.map(({ name }) => name).join("; "), head.reach,
      ...ids.map((id) => head.values[id]), head.importance?.low, head.importance?.high];
  });
  return [header, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** @param {string | number | null | undefined} value */
function field(value) {
  if (value === null || value === undefined || (typeof value === "number" && !Number.isFinite(value))) return "";
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {HeadSurvey} survey @param {string} name of the model */
function saveHeads(survey, name) {
  const address = URL.createObjectURL(new Blob([headsCsv(survey)], { type: "text/csv;charset=utf-8" }));
  const link = el("a", { href: address, download: `${name.replace(/[^\p{L}\p{N}._-]+/gu, "-")}-heads.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// ---------------------------------------------------------------- the scatter: shapes are kinds of attention, colors are roles

/** @typedef {{ id: string, name: string }} Axis */
/** @typedef {{ head: SurveyHead, x: number, y: number }} Point */

const MARGIN = { left: 56, right: 18, top: 14, bottom: 44 };
const RADIUS = 6;
const REACH = 18; // pixels from the pointer to a point

/**
 * @param {Context} context
 * @param {{ point: (head: string | null) => void, open: (head: string) => void }} acts
 */
function scatter(context, acts) {
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
