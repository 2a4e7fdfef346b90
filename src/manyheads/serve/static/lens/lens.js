// The entry of the page: makes the store, the source and the context, and mounts the views of each page.
/** @import { Context, Data, Mount, PageName, Source, State, View } from "./lens_types.js" */
import { asProblem, choice, el, isTyping, setText } from "../shared/dom.js";
import { currentLanguage, pick, readMessages, setLanguage, t } from "../shared/messages.js";
import { allHeads, headTitle, roleOf, telling } from "./heads.js";
import { createLoader, fileSource, serverSource } from "./loader.js";
import { createStore } from "./store.js";

/** @typedef {() => Promise<Mount>} MountLater */
/** The regions of each page: class of the region, and the view in it. @type {Record<PageName, [string, MountLater][]>} */
const PAGES = {
  text: [
    ["region-input", async () => (await import("./text_box.js")).mountTextBox],
    ["region-answer", async () => (await import("./answer_view.js")).mountAnswerView],
    ["region-ablation", async () => (await import("./ablation_panel.js")).mountAblationPanel],
    ["region-overview", async () => (await import("./overview.js")).mountOverview],
    ["region-head", async () => (await import("./head_view.js")).mountHeadView],
    ["region-numbers", async () => (await import("./numbers_view.js")).mountNumbersView],
  ],
  heads: [["region-full", async () => (await import("./heads_page.js")).mountHeadsPage]],
  head: [["region-full", async () => (await import("./head_page.js")).mountHeadPage]],
  compare: [["region-full", async () => (await import("./compare_page.js")).mountComparePage]],
  tour: [
    ["region-input", async () => (await import("./text_box.js")).mountTextBox],
    ["region-full", async () => (await import("./tour.js")).mountTourView],
  ],
};
const COLUMNS = new Set(["region-overview", "region-head"]); // side by side on wide screens
const TABS = /** @type {const} */ (["text", "heads", "compare", "tour"]);

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const store = createStore();
readMessages();
setLanguage(store.state.lang);
void start();

async function start() {
  applyLook(store.state);
  app.replaceChildren(el("main", { class: "lens" }, el("p", { class: "faint", role: "status", text: t("loading") })));
  const source = document.getElementById("lens-data") ? fileSource() : serverSource();
  try {
    run(source, await source.model());
  } catch (thrown) {
    const problem = asProblem(thrown);
    app.replaceChildren(el("main", { class: "lens" },
      el("p", { class: "caution", role: "alert", text: `${t("start_failed")} ${problem.detail}` }),
      el("p", {}, el("button", { class: "plain", type: "button", text: t("try_again"), onclick: () => void start() }))));
  }
}

/** @param {Source} source @param {import("./lens_types.js").Model} model */
function run(source, model) {
  const info = model.bundles.find((one) => one.id === store.state.bundle) ?? model.bundles[0];
  /** @type {Data} */
  const data = { model, info, trace: null, busy: false, error: null, ablation: null, heads: null, importance: null };
  let isPlanned = false;
  const changed = () => { // views update once per turn, however many things changed
    if (isPlanned) return;
    isPlanned = true;
    queueMicrotask(() => { isPlanned = false; update(); });
  };
  const load = createLoader(store, source, data, changed);
  const foot = el("p", { class: "announcement", role: "status", "aria-live": "polite" });
  let announced = 0;
  /** @type {Context} */
  const context = {
    store, source, t, pick, data, load,
    role: (name) => roleOf(name, data.heads),
    headTitle: (attention, head) => headTitle(attention, head, data.info),
    announce(message) {
      foot.textContent = message;
      foot.classList.add("shown");
      clearTimeout(announced);
      announced = window.setTimeout(() => foot.classList.remove("shown"), 4000);
    },
  };

  const keys = keysDialog(context);
  const top = header(context, keys.open);
  const page = el("div", { class: "page" });
  app.replaceChildren(el("main", { class: "lens" }, top.root, page), foot, keys.root);
  /** @type {View[]} */
  let views = [];
  let mounted = "";

  function mountPage() {
    const name = store.state.page;
    if (mounted === name) return;
    mounted = name;
    for (const view of views) view.destroy?.();
    views = [];
    page.className = `page page-${name}`;
    const columns = el("div", { class: "columns" });
    page.replaceChildren();
    for (const [region, later] of PAGES[name]) {
      const root = el("div", { class: `region ${region}` });
      if (COLUMNS.has(region)) page.append(columns);
      (COLUMNS.has(region) ? columns : page).append(root);
      later().then((mount) => {
        if (mounted !== name || !root.isConnected) return;
        const view = mount(root, context);
        views.push(view);
        view.update();
      }).catch((thrown) => {
        root.replaceChildren(el("p", { class: "caution", text: `${t("view_failed")} ${asProblem(thrown).detail}` }));
      });
    }
  }

  function update() {
    mountPage();
    top.update();
    for (const view of views) view.update();
  }

  store.subscribe((names) => {
    fillIn(context); // an address that was pasted may leave things open too
    setLanguage(store.state.lang);
    if (names.has("lang") || names.has("theme")) applyLook(store.state);
    load.follow(names);
    changed();
  });
  const isOpen = !store.state.attention;
  fillIn(context);
  if (isOpen) chooseHead(context, changed);
  listenToKeys(context, keys);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  addEventListener("resize", changed);
  update();
  load.follow(new Set(["bundle"]));
}

/** Completes an address that leaves things open, or that belongs to another model. @param {Context} context */
function fillIn({ store, source, data }) {
  const { state } = store;
  const stored = source.stored();
  const info = data.model.bundles.find((one) => one.id === state.bundle) ?? data.info;
  /** @type {Partial<State>} */
  const change = { bundle: info.id };
  const attention = info.attentions.find((traced) => traced.name === state.attention)
    ?? info.attentions.findLast((traced) => traced.kind === "cross") ?? info.attentions[0];
  change.attention = attention.name;
  change.head = state.attention === attention.name && state.head < attention.n_heads ? state.head : 0;
  change.off = state.off.filter((head) => allHeads(info).includes(head));
  if (!state.text) {
    change.text = stored[0]?.text ?? info.examples[0] ?? "";
    change.answer = null;
  }
  store.set(change, { isMinor: true });
}

/** An address without a head gets a telling one, as soon as the first trace is there. @param {Context} context @param {() => void} changed */
function chooseHead({ store, load }, changed) {
  const { bundle, text, answer, step, attention, head } = store.state;
  if (!text.trim()) return;
  load.trace({ bundle, text, answer, step }).then((trace) => {
    const isUntouched = store.state.attention === attention && store.state.head === head && store.state.text === text;
    const found = isUntouched ? telling(trace) : null;
    if (found) store.set(found, { isMinor: true });
    changed();
  }, () => { /* the text box reports it */ });
}

/** @param {State} state */
function applyLook(state) {
  const root = document.documentElement;
  root.lang = state.lang === "zh" ? "zh" : "en";
  if (state.theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = state.theme;
}

/** The line at the top: pages, language, theme. @param {Context} context @param {() => void} openKeys */
function header({ store, data }, openKeys) {
  const name = el("h1", { class: "name", dir: "auto" });
  const facts = el("p", { class: "faint facts" });
  const tabs = TABS.map((tab) => el("a", { href: "#", onclick: (/** @type {Event} */ event) => {
    event.preventDefault();
    store.set({ page: tab });
  } }));
  const nav = el("nav", { class: "tabs" }, ...tabs);
  const language = choice({ values: /** @type {const} */ (["en", "zh"]), choose: (lang) => store.set({ lang }) });
  const theme = choice({ values: /** @type {const} */ (["auto", "light", "dark"]), choose: (theme) => store.set({ theme }) });
  const help = el("button", { type: "button", class: "icon", text: "?", onclick: openKeys });
  const progress = el("div", { class: "working", role: "progressbar" }, el("div"));
  const root = el("header", { class: "lens-head" },
    el("div", { class: "top" }, el("span", { class: "brand", text: "manyheads lens" }),
      el("div", { class: "switches" }, help, theme.root, language.root)),
    el("div", { class: "model-line" }, name, facts), nav, progress);
  return {
    root,
    update() {
      const { state } = store;
      setText(name, data.info.name);
      setText(facts, [
        data.info.languages.join(" → "), t(`task_${data.info.answer_form}`),
        t("parameters", { n: (data.info.n_parameters / 1e6).toFixed(1) }), data.info.is_live ? "" : t("in_a_file"),
      ].filter(Boolean).join(" · "));
      document.title = `${data.info.name} · manyheads lens`;
      nav.setAttribute("aria-label", t("pages"));
      TABS.forEach((tab, i) => {
        setText(tabs[i], t(`page_${tab}`));
        tabs[i].href = store.address({ page: tab });
        const isHere = state.page === tab || (tab === "heads" && state.page === "head");
        if (isHere) tabs[i].setAttribute("aria-current", "page");
        else tabs[i].removeAttribute("aria-current");
      });
      language.show(currentLanguage(), t("language"), (lang) => (lang === "en" ? "English" : "中文"));
      help.setAttribute("aria-label", t("keys"));
      help.title = t("keys");
      theme.show(state.theme, t("theme"), (one) => t(`theme_${one}`));
      progress.setAttribute("aria-label", t("computing"));
      progress.classList.toggle("active", data.busy);
      progress.setAttribute("aria-hidden", String(!data.busy));
    },
  };
}

/** @param {Context} context @param {ReturnType<typeof keysDialog>} dialog */
function listenToKeys(context, dialog) {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "?") {
      event.preventDefault();
      dialog.open();
    } else if (event.key === "Escape" && !dialog.root.open) {
      context.store.set({ pins: [], keyPins: [], at: null });
    }
  });
}

// ---------------------------------------------------------------- the list of keys

const ROWS = [
  ["← ↑ → ↓", "keys_move"], ["Enter", "keys_pin"], ["Esc", "keys_clear"], ["o", "keys_off"], ["+ −", "keys_zoom"], ["0", "keys_whole"],
  ["[ ]", "keys_window"], ["← →", "keys_tour"], ["?", "keys_help"],
];

/** @param {Context} context */
function keysDialog({ t }) {
  const root = el("dialog", { class: "keys" });
  root.addEventListener("click", (event) => { if (event.target === root) root.close(); });
  return {
    root,
    open() {
      const rows = ROWS.map(([key, message]) => el("div", {}, el("dt", {}, ...key.split(" ").map((one) => el("kbd", { text: one }))), el("dd", { text: t(message) })));
      root.setAttribute("aria-label", t("keys"));
      root.replaceChildren(el("h2", { text: t("keys") }), el("dl", {}, ...rows),
        el("button", { type: "button", class: "plain", text: t("close"), onclick: () => root.close() }));
      root.showModal();
    },
  };
}
