// One head: its role with the evidence, heads like it, examples of the corpus, and the effect of switching it off.
/** @import { Context, HeadExamples, SurveyHead, View } from "./types.js" */
import { button, powerSwitch, show, switchKey } from "./controls.js";
import { markedExample } from "./corpus_text.js";
import { asProblem, cssColor, el, percent } from "./dom.js";
import { fixed } from "./figures.js";
import { headEffect } from "./head_effect.js";
import { closestRole, evidenceTable, roleSentence } from "./head_evidence.js";
import { headName, headsByKind, parseHead, shortName, toggled } from "./head_names.js";
import { drawThumbnail, roleColor } from "./thumbnails.js";
import "./head_texts.js";
import "./page_texts.js";

/** @param {HTMLElement} root @param {Context} context @returns {View} */
export function mountHeadPage(root, context) {
  const { store, t } = context;
  const top = el("div", { class: "head-top" });
  const card = el("section", { class: "role-card" });
  const effectRoot = el("section", { class: "head-effect" });
  const nearest = el("section", { class: "head-nearest" });
  const mapTitle = el("h3");
  const map = el("div", { class: "head-map" });
  const examples = el("section", { class: "head-examples" });
  const node = el("div", { class: "head-page" }, top, card, el("div", { class: "head-pair" }, effectRoot, nearest), el("section", {}, mapTitle, map), examples);
  root.append(node);
  const effect = headEffect(effectRoot, context);
  const keys = switchKey(context);
  /** @type {View | null} */
  let mapView = null;
  /** @type {HeadExamples | null} */
  let found = null;
  let asked = "";
  let failure = "";
  let isGone = false;
  context.load.survey();
  import("./head_view.js").then(({ mountHeadView }) => {
    if (isGone) return;
    mapView = mountHeadView(map, context);
    mapView.update();
  }).catch((thrown) => map.replaceChildren(el("p", { class: "caution" }, asProblem(thrown).detail)));

  /** @param {string} name */
  function askExamples(name) {
    const { bundle } = store.state;
    const key = `${bundle} ${name} ${context.data.heads?.state ?? ""}`; // the survey reads the corpus: ask again when it is done
    if (asked === key) return;
    asked = key;
    found = null;
    failure = "";
    const { attention, number } = parseHead(name);
    context.source.examples(bundle, attention, number).then((answer) => {
      if (asked !== key) return;
      found = answer;
      view.update();
    }).catch((thrown) => {
      if (asked !== key) return;
      failure = asProblem(thrown).detail;
      view.update();
    });
  }

  /** @param {string} name */
  function buildTop(name) {
    const names = headsByKind(context.data.info);
    const here = names.indexOf(name);
    const head = parseHead(name);
    const isOff = store.state.off.includes(name);
    /** @param {number} by @param {string} text @param {string} label */
    const neighbour = (by, text, label) => {
      const next = names[here + by];
      const target = next ? parseHead(next) : null;
      return button(text, () => target && store.set({ attention: target.attention, head: target.number }), { class: "quiet", "aria-label": label, "data-key": label, disabled: !target });
    };
    return [
      el("p", { class: "head-back" }, el("a", { href: store.address({ page: "heads" }) }, t("head_back"))),
      el("div", { class: "row" },
        el("h2", { title: name }, context.headTitle(head.attention, head.number)),
        el("div", { class: "head-acts" }, neighbour(-1, "‹", t("head_previous")), neighbour(1, "›", t("head_next")),
          el("a", { class: "quiet", href: store.address({ page: "text" }) }, t("head_open")),
          el("span", { class: "field" }, powerSwitch(t("overview_off", { head: shortName(name, t) }), !isOff, () => store.set({ off: toggled([...store.state.off], [name]) })), t(isOff ? "head_is_off" : "head_is_on")))),
    ];
  }

  /** @param {SurveyHead | undefined} head */
  function buildCard(head) {
    const survey = context.data.heads;
    if (!head && survey?.state === "failed") return [el("p", { class: "caution" }, survey.message ? context.pick(survey.message) : t("heads_failed"))];
    if (!head) return [el("p", { class: "note-small" }, t("head_coming"))];
    const swatch = el("span", { class: "swatch large" });
    swatch.style.setProperty("background-color", roleColor(head));
    const others = head.roles.slice(1).map((role) => context.pick(role.names));
    const close = closestRole(head);
    return [
      el("h3", { class: "role-title" }, swatch, context.pick(head.names)),
      el("p", { class: "role-sentence" }, roleSentence(head, t)),
      others.length ? el("p", { class: "note-small" }, t("head_also", { roles: others.join(t("list_comma")) })) : null,
      close ? el("p", { class: "note-small" }, t("head_close", { role: context.pick(close.names), count: close.n.toLocaleString("en-US") })) : null,
      el("p", { class: "note-small" }, t(`reach_${head.reach}`), survey?.n_texts ? `${t("list_space")}${t("head_texts", { count: survey.n_texts })}` : ""),
      ...evidenceTable(head, context),
    ];
  }

  /** @param {SurveyHead | undefined} head */
  function buildNearest(head) {
    const title = el("h3", {}, t("head_nearest"));
    if (!head) return [];
    if (head.nearest.length === 0) return [title, el("p", { class: "note-small" }, t("head_nearest_none"))];
    const roles = new Map((context.data.heads?.heads ?? []).map((one) => [one.head, one]));
    return [title, el("ul", { class: "nearest" }, ...head.nearest.slice(0, 6).map(({ head: name, distance }) => {
      const other = parseHead(name);
      const role = roles.get(name);
      return el("li", {}, el("a", { href: store.address({ attention: other.attention, head: other.number }) }, thumbnail(name),
        el("span", {}, el("b", {}, shortName(name, t)), el("span", { class: "faint" }, role ? context.pick(role.names) : ""), el("span", { class: "faint" }, fixed(distance)))));
    })), el("p", { class: "note-small" }, t("head_nearest_note"))];
  }

  /** The head's map on the text of the page. @param {string} name */
  function thumbnail(name) {
    const { attention, number } = parseHead(name);
    const traced = context.data.trace?.attentions.find((one) => one.name === attention);
    const canvas = el("canvas", { class: "thumb-map", "aria-hidden": "true" });
    if (traced?.thumbnails[number]) drawThumbnail(canvas, traced.thumbnails[number], traced.thumbnail_shape, cssColor("--main"));
    return canvas;
  }

  function buildExamples() {
    if (context.data.heads?.state === "failed") return []; // the card says why
    const title = [el("h3", {}, t("examples_title")), el("p", { class: "note-small" }, t("examples_note"))];
    if (failure) return [...title, el("p", { class: "caution" }, failure)];
    if (!found) return [...title, el("p", { class: "note-small" }, t("examples_coming"))];
    if (found.examples.length === 0) return [...title, el("p", { class: "note-small" }, t(context.data.heads?.state === "running" ? "examples_coming" : "examples_none"))];
    const strata = [...new Set(found.examples.map((example) => example.stratum))];
    return [...title, ...strata.map((stratum) => el("div", { class: "stratum" }, el("h4", {}, t(`stratum_${stratum}`)),
      el("ol", {}, ...(found?.examples ?? []).filter((example) => example.stratum === stratum).map(buildExample))))];
  }

  /** @param {HeadExamples["examples"][number]} example */
  function buildExample(example) {
    const href = store.address({ page: "text", text: example.text, answer: context.data.info.takes_answer && example.answer !== null ? example.answer : null, pins: [], keyPins: [], at: null });
    const { text, answer } = markedExample(example, parseHead(headName(store.state.attention, store.state.head)).kind);
    return el("li", { class: "corpus-text" },
      el("p", { class: "source", dir: "auto" }, ...text), answer ? el("p", { class: "faint answer-line", dir: "auto" }, ...answer) : null,
      el("p", { class: "corpus-facts" }, el("span", {}, t("examples_weight", { query: example.query, key: example.key, weight: percent(example.weight) })),
        el("span", {}, t("examples_strength", { strength: percent(example.strength) })), el("a", { href }, t("examples_open"))));
  }

  const view = {
    update() {
      const { state } = store;
      const name = headName(state.attention, state.head);
      const survey = context.data.heads;
      const head = survey?.heads.find((one) => one.head === name);
      askExamples(name);
      show(top, [name, state.lang, state.off, context.data.info, store.address()], () => buildTop(name));
      show(card, [head, survey?.state, survey?.n_texts, state.lang], () => buildCard(head));
      show(nearest, [head, state.lang, context.data.trace, cssColor("--main"), store.address()], () => buildNearest(head));
      show(mapTitle, [state.lang], () => [t("head_map")]);
      show(examples, [found, failure, state.lang, name, survey?.state], buildExamples);
      effect.update(name);
      mapView?.update();
    },
    destroy() { isGone = true; keys.destroy(); effect.destroy(); mapView?.destroy?.(); node.remove(); },
  };
  return view;
}
