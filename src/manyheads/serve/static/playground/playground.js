// The entry of the playground: the bundles of the server, the one in use, language, theme and the key.
/** @import { Language } from "../shared/types.js" */
/** @import { Bundle, PlayContext, PlayProblem, Session, Theme } from "./playground_types.js" */
import { choice, el, setText } from "../shared/dom.js";
import { currentLanguage, readMessages, setLanguage, t } from "../shared/messages.js";
import { readAddress, remember, startState, writeAddress } from "./address.js";
import { asPlayProblem, fetchBundles, storedKey, storeKey } from "./api.js";
import { createSession, isLive } from "./session.js";
import { bundleView, isTranslation, kindOf } from "./view.js";

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const announcement = el("p", { class: "announcement", role: "status", "aria-live": "polite" });
const state = startState();
/** @type {Map<string, Session>} */
const sessions = new Map();
/** @type {Bundle[]} */
let bundles = [];
let announced = 0;
let isPlanned = false;
/** @type {{ update(): void } | null} */
let page = null;

/** @type {PlayContext} */
const context = {
  t,
  lang: currentLanguage,
  hasKey: () => storedKey() !== "",
  announce(message) {
    announcement.textContent = message;
    announcement.classList.add("shown");
    clearTimeout(announced);
    announced = window.setTimeout(() => announcement.classList.remove("shown"), 4000);
  },
};

readMessages();
document.body.append(announcement);
addEventListener("hashchange", () => {
  Object.assign(state, readAddress(location.hash));
  if (bundles.length) build();
  else look();
});
addEventListener("resize", changed);
void start();

async function start() {
  look();
  if (!app.querySelector("form")) frame(el("p", { class: "faint", role: "status" }, t("play_loading")));
  try {
    bundles = await fetchBundles();
  } catch (thrown) {
    const problem = asPlayProblem(thrown);
    if (problem.status === 401) frame(keyForm(problem, () => void start()));
    else frame(el("div", { class: "play-problem", role: "alert" }, el("p", { class: "caution" }, problem.key ? t(problem.key, problem.values) : problem.detail)),
      el("p", {}, el("button", { class: "plain", type: "button", text: t("play_retry"), onclick: () => void start() })));
    return;
  }
  if (bundles.length) build()?.focus({ preventScroll: true });
  else frame(el("p", { class: "caution", role: "alert" }, t("play_none")));
}

/** Updates the page once per turn, however many things changed. */
function changed() {
  if (isPlanned) return;
  isPlanned = true;
  queueMicrotask(() => { isPlanned = false; page?.update(); });
}

function look() {
  const root = document.documentElement;
  setLanguage(state.lang);
  root.lang = state.lang;
  if (state.theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = state.theme;
  document.title = `${state.bundle ? `${state.bundle} · ` : ""}manyheads`;
}

/** @param {Partial<typeof state>} change */
function set(change) {
  Object.assign(state, change);
  remember(state);
  history.replaceState(null, "", writeAddress(state));
  const active = document.activeElement;
  const key = active instanceof HTMLElement ? active.dataset.key : undefined;
  if (bundles.length) build();
  else void start();
  const again = [...app.querySelectorAll("[data-key]")].find((node) => node instanceof HTMLElement && node.dataset.key === key);
  if (key && again instanceof HTMLElement) again.focus({ preventScroll: true });
}

/** @param {string} name @returns {Session} */
function sessionOf(name) {
  const found = sessions.get(name);
  if (found) return found;
  const bundle = bundles.find((model) => model.name === name) ?? bundles[0];
  const made = createSession(bundle, changed);
  sessions.set(name, made);
  if (made.text && isLive(bundle)) made.run(); // what was typed before a reload
  return made;
}

/** Builds the page of the bundle in use; what was typed and answered is in its session. */
function build() {
  if (!bundles.some(({ name }) => name === state.bundle)) state.bundle = bundles[0].name;
  history.replaceState(null, "", writeAddress(state));
  look();
  const session = sessionOf(state.bundle);
  const view = bundleView(session, context);
  const key = el("div", {});
  let isAsked = false;
  frame(modelLine(session.bundle), key, view.root);
  page = {
    update() {
      const isNeeded = session.problem?.status === 401;
      if (isNeeded && session.problem && !isAsked) key.replaceChildren(keyForm(session.problem, () => session.run()));
      else if (!isNeeded) key.replaceChildren();
      isAsked = isNeeded && !session.isBusy;
      view.update();
    },
  };
  page.update();
  return view.field;
}

/** The head of the page with what follows. @param {...HTMLElement} children */
function frame(...children) {
  const language = choice({ values: /** @type {const} */ (["en", "zh"]), choose: (lang) => set({ lang: /** @type {Language} */ (lang) }) });
  const theme = choice({ values: /** @type {const} */ (["auto", "light", "dark"]), choose: (one) => set({ theme: /** @type {Theme} */ (one) }) });
  language.show(state.lang, t("play_language"), (lang) => (lang === "en" ? "English" : "中文"));
  theme.show(state.theme, t("play_theme"), (one) => t(`play_${one}`));
  for (const node of [...language.root.children, ...theme.root.children]) if (node instanceof HTMLButtonElement) node.dataset.key = node.value;
  const nav = el("nav", { "aria-label": t("play_pages") }, el("a", { href: "./", "aria-current": "page", onclick: (/** @type {Event} */ event) => event.preventDefault() }, t("play_playground")),
    !bundles.length || storedKey() ? null : el("a", { href: state.bundle ? `lens/${encodeURIComponent(state.bundle)}/` : "lens/" }, t("play_lens")), // the lens page cannot send a key
    el("a", { href: "docs" }, t("play_docs")));
  app.replaceChildren(el("main", { class: "lens play" },
    el("header", { class: "top" }, el("span", { class: "brand" }, "manyheads"), nav, el("div", { class: "switches" }, theme.root, language.root)), ...children));
}

/** The bundle in use, and the others. @param {Bundle} bundle */
function modelLine(bundle) {
  const facts = [
    isTranslation(bundle) ? bundle.languages.slice(0, 2).join(" → ") : bundle.languages.join(", "),
    t(`play_task_${kindOf(bundle)}`),
    Number.isFinite(bundle.n_parameters) ? t("play_parameters", { n: (bundle.n_parameters / 1e6).toFixed(1) }) : "",
    bundle.version ? t("play_version", { version: bundle.version }) : "",
  ];
  const hasKinds = new Set(bundles.map(kindOf)).size > 1;
  const select = el("select", { id: "play-bundle", "data-key": "bundle", onchange: () => set({ bundle: select.value }) },
    ...bundles.map((each) => el("option", { value: each.name, selected: each.name === bundle.name }, hasKinds ? `${each.name} – ${t(`play_task_${kindOf(each)}`)}` : each.name)));
  return el("div", { class: "model-line" }, el("h1", { dir: "auto" }, bundle.name), el("p", { class: "faint facts" }, facts.filter(Boolean).join(" · ")),
    bundles.length > 1 ? el("p", { class: "play-bundle" }, el("label", { for: "play-bundle" }, t("play_bundle")), select) : null);
}

/** Asks for the key of the server. @param {PlayProblem} problem @param {() => void} act */
function keyForm(problem, act) {
  const field = el("input", { id: "play-key", type: "password", autocomplete: "off", required: true });
  const line = el("p", { class: "caution", role: "alert" }, t(storedKey() ? "play_key_wrong" : "play_key_needed"));
  const form = el("form", { class: "play-key" }, line, el("label", { for: "play-key" }, t("play_key")), field,
    el("button", { type: "submit", class: "primary" }, t("play_key_use")), el("p", { class: "hint" }, t("play_key_kept")));
  line.title = problem.detail;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!field.value.trim()) return;
    storeKey(field.value.trim());
    setText(line, "");
    act();
  });
  queueMicrotask(() => field.focus());
  return form;
}
