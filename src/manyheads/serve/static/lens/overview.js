// All heads of the model on this text: a row of thumbnails for each layer, grouped by the kind of attention.
/** @import { Context, SurveyHead, View } from "./lens_types.js" */
import { button, powerSwitch, show, switchGroup } from "../shared/controls.js";
import { cssColor, el, setAttributes } from "../shared/dom.js";
import { fixed, percent, signed } from "../shared/figures.js";
import { drawThumbnail, headName, KINDS, parseHead, roleColor, roleLegend, shortName, switchKey, toggled } from "./heads.js";

const MANY_HEADS = 8; // in a row: thumbnails are small then, and the words beside them short

/** @typedef {{ cell: HTMLElement, select: HTMLButtonElement, canvas: HTMLCanvasElement, fill: HTMLElement, label: HTMLElement, power: HTMLButtonElement }} Thumb */

/** @param {HTMLElement} root @param {Context} context @returns {View} */
export function mountOverview(root, context) {
  const { store, t } = context;
  const bar = el("div", { class: "row overview-top" });
  const about = el("p");
  const acts = el("p", { class: "overview-acts" });
  const grids = el("div", { class: "overview-grids" });
  const legend = el("div", { class: "overview-legend" });
  const node = el("div", { class: "overview" },
    el("div", { class: "overview-head" }, bar, el("div", { class: "overview-about" }, about, acts)), grids, legend);
  root.append(node);
  /** @type {Map<string, Thumb>} */
  let thumbs = new Map();
  /** @type {Map<string, HTMLButtonElement>} */
  let layers = new Map();
  /** @type {string[][]} rows of head names, for the arrow keys */
  let rows = [];
  /** @type {string | null} the head that the reader points at */
  let pointed = null;
  /** @type {string | null} */
  let marked = null;
  let asked = "";
  let scrolledTo = "";

  grids.addEventListener("pointerover", (event) => point(nameAt(event.target)));
  grids.addEventListener("pointerleave", () => point(null));
  grids.addEventListener("focusin", (event) => point(nameAt(event.target)));
  grids.addEventListener("focusout", () => point(null));
  grids.addEventListener("keydown", onKey);
  const keys = switchKey(context);

  /** @param {EventTarget | null} target */
  function nameAt(target) {
    const cell = target instanceof Element ? target.closest("[data-head]") : null;
    return cell instanceof HTMLElement ? (cell.dataset.head ?? null) : null;
  }

  /** @param {string | null} name */
  function point(name) {
    if (name === pointed) return;
    pointed = name;
    describe();
    showActs();
  }

  /** @param {string[]} names */
  function switchHeads(names) {
    store.set({ off: toggled([...store.state.off], names) });
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const name = nameAt(event.target);
    if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "o" || event.key === "O") switchHeads([name]);
    else if (!moveFocus(name, event.key)) return;
    event.preventDefault();
  }

  /** @param {string} name @param {string} key @returns {boolean} */
  function moveFocus(name, key) {
    const row = rows.findIndex((names) => names.includes(name));
    const column = rows[row].indexOf(name);
    const moves = /** @type {Record<string, [number, number]>} */ ({
      ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1], ArrowDown: [row + 1, column], ArrowUp: [row - 1, column],
      Home: [row, 0], End: [row, rows[row].length - 1],
    });
    const target = moves[key];
    if (!target) return false;
    const names = rows[Math.min(rows.length - 1, Math.max(0, target[0]))];
    const next = names[Math.min(names.length - 1, Math.max(0, target[1]))];
    for (const [one, thumb] of thumbs) thumb.select.tabIndex = one === next ? 0 : -1;
    thumbs.get(next)?.select.focus();
    return true;
  }

  function buildGrids() {
    thumbs = new Map();
    layers = new Map();
    rows = [];
    const { attentions } = context.data.info;
    return KINDS.flatMap((kind) => {
      const group = attentions.filter((attention) => attention.kind === kind);
      if (group.length === 0) return [];
      const title = el("h3", { id: `overview-${kind}` }, t(`kind_${kind}`));
      const n = Math.max(...group.map((attention) => attention.n_heads));
      const grid = el("div", { class: n > MANY_HEADS ? "thumb-grid is-dense" : "thumb-grid", role: "grid", "aria-labelledby": `overview-${kind}` },
        ...group.map((attention) => buildRow(attention.name, attention.layer, attention.n_heads)));
      grid.style.setProperty("--n", String(n));
      return [title, grid];
    });
  }

  /** @param {string} attention @param {number} layer @param {number} count */
  function buildRow(attention, layer, count) {
    const names = Array.from({ length: count }, (_, number) => headName(attention, number));
    rows.push(names);
    const power = powerSwitch(t("overview_layer_off", { layer: context.headTitle(attention, null) }), true, () => switchHeads(names));
    layers.set(attention, power);
    const header = el("div", { role: "rowheader", class: "thumb-layer" }, el("span", {}, el("span", { class: "layer-word" }, t("overview_layer")), String(layer)), power);
    return el("div", { role: "row", class: "thumb-row" }, header, ...names.map((name, number) => buildCell(name, attention, number)));
  }

  /** @param {string} name @param {string} attention @param {number} number */
  function buildCell(name, attention, number) {
    const canvas = el("canvas", { class: "thumb-map", width: 1, height: 1, "aria-hidden": "true" });
    const fill = el("span", { class: "thumb-fill" });
    const label = el("span", { class: "thumb-label" });
    const select = el("button", { type: "button", class: "thumb-select", tabindex: -1, onclick: () => store.set({ attention, head: number }) },
      el("span", { class: "thumb-stripe" }, fill), canvas);
    const power = powerSwitch(t("overview_off", { head: shortName(name, t) }), true, () => switchHeads([name]));
    power.tabIndex = -1;
    const caption = el("div", { class: "thumb-caption" }, el("span", { class: "thumb-number" }, String(number)), power);
    const cell = el("div", { role: "gridcell", class: "thumb", "data-head": name }, select, caption, label);
    thumbs.set(name, { cell, select, canvas, fill, label, power });
    return cell;
  }

  function refresh() {
    const { state } = store;
    const off = new Set(state.off);
    const selected = headName(state.attention, state.head);
    const roles = rolesByHead();
    const changes = changesByHead();
    const largest = Math.max(1e-9, ...[...changes.values()].map(Math.abs));
    const byImportance = state.colorBy === "importance";
    const focusable = thumbs.has(selected) ? selected : rows[0]?.[0];
    for (const [name, thumb] of thumbs) {
      const role = roles.get(name);
      const change = changes.get(name);
      const isOff = off.has(name);
      thumb.cell.classList.toggle("is-off", isOff);
      thumb.cell.classList.toggle("is-selected", name === selected);
      thumb.cell.classList.toggle("is-dimmed", marked !== null && role?.role !== marked);
      thumb.fill.classList.toggle("is-share", byImportance);
      thumb.fill.classList.toggle("is-harmful", byImportance && (change ?? 0) < 0);
      thumb.fill.style.setProperty("inline-size", byImportance ? `${(100 * Math.abs(change ?? 0)) / largest}%` : "100%");
      thumb.fill.style.setProperty("background-color", byImportance ? "" : roleColor(role));
      thumb.label.textContent = byImportance ? (change === undefined ? "" : signed(change)) : role && role.role !== "unknown" ? context.pick(role.names) : "";
      thumb.label.title = thumb.label.textContent;
      setAttributes(thumb.power, { "aria-checked": String(!isOff) });
      setAttributes(thumb.cell, { "aria-selected": String(name === selected) });
      setAttributes(thumb.select, { "aria-label": spoken(name, role, isOff) });
      if (!grids.contains(document.activeElement)) thumb.select.tabIndex = name === focusable ? 0 : -1;
    }
    for (const [attention, power] of layers) {
      const names = rows.find((row) => parseHead(row[0]).attention === attention) ?? [];
      const n_off = names.filter((name) => off.has(name)).length;
      setAttributes(power, { "aria-checked": String(n_off < names.length) });
    }
  }

  /** @param {string} name @param {SurveyHead | undefined} role @param {boolean} isOff */
  function spoken(name, role, isOff) {
    const head = parseHead(name);
    const parts = [context.headTitle(head.attention, head.number)];
    if (role) parts.push(context.pick(role.names));
    if (isOff) parts.push(t("overview_is_off"));
    return parts.join(", ");
  }

  function describe() {
    const { state } = store;
    const name = pointed ?? headName(state.attention, state.head);
    const head = parseHead(name);
    const traced = context.data.trace?.attentions.find((attention) => attention.name === head.attention)?.heads[head.number];
    const role = rolesByHead().get(name);
    const change = changesByHead().get(name);
    /** @type {string[]} */
    const facts = [];
    if (role) facts.push(context.pick(role.names));
    if (traced) {
      facts.push(t("overview_entropy", { value: fixed(traced.entropy) }));
      if (head.kind !== "cross") facts.push(t("overview_distance", { value: fixed(traced.distance, 1) }));
      facts.push(t("overview_sink", { value: percent(traced.sink) }));
    }
    if (change !== undefined) facts.push(t("overview_change", { value: signed(change, Math.abs(change) < 0.1 ? 4 : 2) }));
    show(about, [name, facts.join(), state.lang], () => [el("b", {}, shortName(name, t)), facts.length ? ` · ${facts.join(" · ")}` : ""]);
  }

  /** Bring the selected head into view, if the overview scrolls by itself; the page does not move. */
  function scrollToSelected() {
    const name = headName(store.state.attention, store.state.head);
    const cell = thumbs.get(name)?.cell;
    if (name === scrolledTo || !cell || root.scrollHeight <= root.clientHeight) return;
    scrolledTo = name;
    const [box, frame] = [cell.getBoundingClientRect(), root.getBoundingClientRect()];
    if (box.top < frame.top || box.bottom > frame.bottom) root.scrollTop += box.top - frame.top - (frame.height - box.height) / 2;
  }

  /** What can be done with the head that is described. */
  function showActs() {
    const { state } = store;
    const name = pointed ?? headName(state.attention, state.head);
    const { attention, number } = parseHead(name);
    const isOff = state.off.includes(name);
    const href = store.address({ page: "head", attention, head: number });
    show(acts, [name, state.lang, isOff, href], () => [
      button(t(isOff ? "overview_switch_on" : "overview_switch_off", { head: shortName(name, t) }), () => switchHeads([name]), { class: "quiet", "data-key": "power" }),
      el("a", { class: "quiet", href, "data-key": "page" }, t("overview_page")),
    ]);
  }

  function rolesByHead() {
    return new Map((context.data.heads?.heads ?? []).map((head) => [head.head, head]));
  }

  /** @returns {Map<string, number>} */
  function changesByHead() {
    const { importance, trace } = context.data;
    if (!importance || importance.trace !== trace?.id) return new Map();
    return new Map(importance.heads.map(({ head, change }) => [head, change]));
  }

  function drawLegend() {
    const { state, data } = { state: store.state, data: context.data };
    show(legend, [state.colorBy, state.lang, data.heads, data.importance, data.trace?.id, marked, asked], () => {
      if (state.colorBy === "importance") return [el("p", { class: "note-small" }, importanceNote())];
      const heads = data.heads?.heads ?? [];
      if (heads.length === 0) return [el("p", { class: "note-small" }, rolesNote())];
      return [roleLegend(heads, marked, context, (role) => { marked = marked === role ? null : role; view.update(); })];
    });
  }

  function rolesNote() {
    const { heads, info } = context.data;
    if (heads?.state === "failed") return heads.message ? context.pick(heads.message) : t("heads_failed");
    if (!heads && !info.is_live) return t("overview_roles_none");
    return t("overview_roles_coming");
  }

  function importanceNote() {
    if (changesByHead().size > 0) return t("overview_importance_note");
    return asked.startsWith("failed ") ? asked.slice(7) : t("overview_importance_coming");
  }

  function askImportance() {
    const { trace } = context.data;
    if (store.state.colorBy !== "importance" || !trace || asked === trace.id || changesByHead().size > 0) return;
    const id = (asked = trace.id);
    context.load.importance().catch((problem) => {
      if (asked === id) asked = `failed ${problem?.detail ?? ""}`;
      drawLegend();
    });
  }

  const view = {
    update() {
      const { state } = store;
      show(bar, [state.lang, state.colorBy], () => [
        el("h2", {}, t("overview_title")),
        switchGroup(t("overview_color"), [["role", t("overview_by_role")], ["importance", t("overview_by_importance")]],
          state.colorBy, (colorBy) => store.set({ colorBy })),
      ]);
      if (show(grids, [context.data.info, state.lang], buildGrids)) drawn = [];
      drawThumbnails();
      askImportance();
      refresh();
      describe();
      showActs();
      drawLegend();
      scrollToSelected();
    },
    destroy() { keys.destroy(); node.remove(); },
  };

  /** @type {unknown[]} */
  let drawn = [];
  function drawThumbnails() {
    const { trace } = context.data;
    const color = cssColor("--main");
    if (!trace || (drawn[0] === trace && drawn[1] === color)) return;
    drawn = [trace, color];
    for (const attention of trace.attentions) {
      attention.thumbnails.forEach((bytes, number) => {
        const thumb = thumbs.get(headName(attention.name, number));
        if (thumb) drawThumbnail(thumb.canvas, bytes, attention.thumbnail_shape, color);
      });
    }
  }
  return view;
}
