// All heads over the corpus: a scatter by two measures, and a table to sort, filter and group.
/** @import { Context, HeadSurvey, SurveyHead, View } from "./types.js" */
import { button, dropdown, progressBar, show } from "./controls.js";
import { el, setText } from "./dom.js";
import { digitsFor, drawInterval, fixed } from "./figures.js";
import { KINDS, allHeads, headsByKind, parseHead, shortName } from "./head_names.js";
import { saveHeads } from "./heads_csv.js";
import { roleColor } from "./thumbnails.js";
import { scatter } from "./scatter.js";
import "./head_texts.js";
import "./page_texts.js";

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
    return [el("table", { class: "heads" }, header, ...bodies), columns.some(({ id }) => id === "importance") ? el("p", { class: "note-small" }, t("heads_importance_note")) : null];
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
  return head.role === role || head.roles.some((one) => one.name === role);
}
