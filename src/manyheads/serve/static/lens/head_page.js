// One head: its role with the evidence, heads like it, examples of the corpus, and the effect of switching it off.
/** @import { Translate } from "../shared/types.js" */
/** @import { Context, HeadEffect, HeadExamples, SurveyHead, View } from "./lens_types.js" */
import { button, powerSwitch, progressBar, show } from "../shared/controls.js";
import { asProblem, cssColor, el } from "../shared/dom.js";
import { digitsBetween, drawInterval, fixed, percent, signed } from "../shared/figures.js";
import { sentences } from "../shared/messages.js";
import { drawThumbnail, headName, headsByKind, parseHead, roleColor, shortName, switchKey, toggled } from "./heads.js";

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
      el("p", { class: "note-small" }, sentences(t, [t(`reach_${head.reach}`), survey?.n_texts ? t("head_texts", { count: survey.n_texts }) : ""])),
      head.importance ? el("p", { class: "note-small" }, importanceSentence(head.importance, head.values)) : null,
      ...evidenceTable(head, context),
    ];
  }

  /** @param {NonNullable<SurveyHead["importance"]>} importance @param {SurveyHead["values"]} values */
  function importanceSentence({ value, low, high }, values) {
    const digits = digitsBetween(low, high);
    return t("head_importance", {
      value: signed(value, digits), low: signed(low, digits), high: signed(high, digits),
      mean: signed(values.importance_mean, digits), resample: signed(values.importance_resample, digits),
    });
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
      const head = survey?.heads.find((surveyed) => surveyed.head === name);
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

// ---------------------------------------------------------------- the evidence: statistics with intervals, baselines and random controls

const DESCRIBED = ["alignment", "antecedent", "previous-token", "next-token", "attention-sink", "eos", "punctuation", "duplicate-token", "induction", "rare-word", "positional", "unknown"];

const STANDS_OUT = 0.05; // above the baseline and the random model

/** What the role means, in one sentence. @param {SurveyHead} head @param {Translate} t */
function roleSentence(head, t) {
  const [family, offset] = head.role.split(" ");
  if (/[<>]$/.test(head.role)) return t(head.role.endsWith(">") ? "role_to_head" : "role_to_dependent", { relation: head.role.slice(0, -1) });
  return DESCRIBED.includes(family) ? t(`role_${family.replaceAll("-", "_")}`, { offset: (offset ?? "").replace("-", "−") }) : "";
}

/**
 * The statistic of a head without a role that stands out most against its baseline and a random model, if one does.
 * @param {SurveyHead} head
 */
function closestRole(head) {
  if (head.role !== "unknown") return null;
  const margin = (/** @type {SurveyHead["evidence"][number]} */ one) => one.value - Math.max(one.baseline, Number.isFinite(one.control) ? one.control : -Infinity);
  const best = head.evidence.filter((statistic) => margin(statistic) >= STANDS_OUT).sort((a, b) => margin(b) - margin(a))[0];
  if (!best) return null;
  return { names: { en: best.names.en.replace(/: correct$/, ""), zh: best.names.zh.replace(/：正确率$/, "") }, n: best.n };
}

/** What a baseline is, in words. @param {string} name @param {Translate} t */
function baselineName(name, t) {
  const offset = /^offset([+-]?\d+)$/.exec(name);
  if (offset) return t("baseline_offset", { offset: offset[1].replace("-", "−") });
  const neighbor = /^neighbor([+-]\d+)$/.exec(name);
  if (neighbor) return t("baseline_neighbor", { offset: neighbor[1].replace("-", "−") });
  return name === "uniform" || name === "diagonal" ? t(`baseline_${name}`) : name;
}

/** @param {SurveyHead} head @param {Context} context */
function evidenceTable(head, context) {
  const { t } = context;
  if (head.evidence.length === 0) return [];
  const decisive = new Set(head.roles.map((role) => role.statistic));
  const first = head.evidence.filter((statistic) => decisive.has(statistic.id));
  const rest = head.evidence.filter((statistic) => !decisive.has(statistic.id));
  const legend = el("p", { class: "note-small evidence-legend" },
    ...(/** @type {const} */ (["value", "baseline", "control"])).map((kind) => el("span", {}, key(kind), t(`evidence_${kind}`))));
  const shown = first.length ? first : rest.slice(0, 4);
  const hidden = first.length ? rest : rest.slice(4);
  return [
    table(shown, context), legend,
    hidden.length ? el("details", {}, el("summary", {}, t("evidence_all", { count: hidden.length })), table(hidden, context)) : null,
  ];
}

/** @param {"value" | "baseline" | "control"} kind */
function key(kind) {
  return el("span", { class: `evidence-key is-${kind}`, "aria-hidden": "true" });
}

/** @param {SurveyHead["evidence"]} rows @param {Context} context */
function table(rows, { t, pick }) {
  return el("div", { class: "evidence-scroll" }, el("table", { class: "evidence" },
    el("thead", {}, el("tr", {}, ...["statistic", "number", "interval", "picture", "baseline_column", "control_column", "cases"].map((name) => (name === "picture"
      ? el("td", { class: "picture" })
      : el("th", { scope: "col", class: name === "statistic" || name === "baseline_column" ? name : "num" }, t(`evidence_${name}`)))))),
    el("tbody", {}, ...rows.map((row) => {
      const inUnit = [row.value, row.low, row.high, row.baseline, row.control].every((value) => value >= 0 && value <= 1);
      const all = [row.low, row.high, row.baseline, row.control].filter(Number.isFinite);
      const range = inUnit ? { low: 0, high: 1 } : { low: Math.min(0, ...all), high: Math.max(...all) };
      return el("tr", {},
        el("th", { scope: "row" }, pick(row.names)),
        el("td", { class: "num" }, el("b", {}, fixed(row.value))),
        el("td", { class: "num faint" }, `[${fixed(row.low)}, ${fixed(row.high)}]`),
        el("td", { class: "picture" }, drawInterval(row, range, [{ at: row.baseline, kind: "baseline" }, { at: row.control, kind: "control" }])),
        el("td", { class: "baseline_column", "data-label": t("evidence_baseline_column") }, fixed(row.baseline), el("span", { class: "faint" }, ` ${baselineName(row.baseline_by, t)}`)),
        el("td", { class: "num", "data-label": t("evidence_control_column") }, fixed(row.control)),
        el("td", { class: "num faint", "data-label": t("evidence_cases") }, row.n.toLocaleString("en-US")));
    }))));
}

// ---------------------------------------------------------------- what the validation set loses without the head

const POLL = 1000; // milliseconds

const STORED = "manyheads effect"; // the start of the keys of stored measurements

/** Keep a finished measurement for this session of the browser. @param {string} model @param {string} head @param {HeadEffect} effect */
function keep(model, head, effect) {
  try {
    sessionStorage.setItem([STORED, model, head, effect.n_rows].join("\n"), JSON.stringify(effect));
  } catch { /* no storage: it is measured again after a reload */ }
}

/** The measurement of this session on most rows. @param {string} model @param {string} head @returns {HeadEffect | null} */
function kept(model, head) {
  try {
    const start = [STORED, model, head, ""].join("\n");
    const keys = Object.keys(sessionStorage).filter((key) => key.startsWith(start)).sort((a, b) => Number(b.slice(start.length)) - Number(a.slice(start.length)));
    const effect = JSON.parse(sessionStorage.getItem(keys[0] ?? "") ?? "null");
    return effect?.state === "ready" ? effect : null;
  } catch {
    return null;
  }
}

/** @param {HTMLElement} root @param {Context} context */
function headEffect(root, context) {
  const { t } = context;
  /** @type {HeadEffect | null} */
  let effect = null;
  let key = "";
  let failure = "";
  let isRunning = false;
  let isGone = false;
  let isEarlier = false; // measured before the page was opened, or before another head was
  let last = "";

  async function measure() {
    const mine = key;
    const { attention, number } = parseHead(last);
    const { bundle } = context.store.state;
    const { name } = context.data.info;
    const head = last;
    isRunning = true;
    isEarlier = false;
    effect = null;
    failure = "";
    render();
    try {
      while (!isGone && key === mine) {
        const answer = await context.source.effect(bundle, attention, number);
        if (answer.state === "ready") keep(name, head, answer);
        if (key !== mine || isGone) return;
        effect = answer;
        if (answer.state !== "running") break;
        render();
        await new Promise((resolve) => setTimeout(resolve, POLL));
      }
    } catch (thrown) {
      if (key !== mine) return;
      failure = asProblem(thrown).detail;
    }
    isRunning = false;
    render();
  }

  function build() {
    const title = el("h3", {}, t("effect_title"));
    if (failure) return [title, el("p", { class: "note-small" }, failure)];
    if (effect?.state === "ready") return [title, ...result(effect)];
    if (effect?.state === "failed") return [title, el("p", { class: "caution" }, effect.message ? context.pick(effect.message) : t("effect_failed"))];
    if (isRunning) {
      return [title, el("p", { class: "note-small", role: "status" }, effect?.message ? context.pick(effect.message) : t("effect_running")), progressBar(t("effect_running"), effect?.done ?? null)];
    }
    if (!context.data.info.is_live) return [title, el("p", { class: "note-small" }, t("not_in_file"))];
    return [title, el("p", { class: "note-small" }, t("effect_why")), button(t("effect_measure"), () => void measure(), { class: "quiet" })];
  }

  /** @param {HeadEffect} found */
  function result({ metric, baseline, change, low, high, n_rows }) {
    const isClear = low > 0 || high < 0;
    const room = Math.max(Math.abs(low), Math.abs(high)) * 1.15 || 1;
    const digits = digitsBetween(low, high);
    const isPoint = low === high; // an interval of no width would claim too much
    const verdict = isPoint ? "effect_alike" : isClear ? (change < 0 ? "effect_lower" : "effect_higher") : "effect_unclear";
    return [
      el("p", { class: "effect-number" }, el("b", {}, signed(change, digits)), ` ${metric}`, isPoint ? null : el("span", { class: "faint" }, ` [${signed(low, digits)}, ${signed(high, digits)}]`)),
      isPoint ? null : el("div", { class: "effect-interval" }, drawInterval({ value: change, low, high }, { low: -room, high: room }, [{ at: 0, kind: "zero" }])),
      el("p", { class: isClear ? "effect-verdict" : "effect-verdict is-unclear" }, t(verdict)),
      el("p", { class: "note-small" }, sentences(t, [t("effect_facts", { metric, baseline: fixed(baseline), rows: n_rows.toLocaleString("en-US") }), isEarlier ? t("effect_earlier") : ""])),
      isEarlier && context.data.info.is_live ? button(t("effect_again"), () => void measure(), { class: "quiet" }) : null,
    ];
  }

  function render() {
    show(root, [key, effect, failure, isRunning, isEarlier, context.store.state.lang], build);
  }

  return {
    /** @param {string} name */
    update(name) {
      const now = `${context.store.state.bundle} ${name}`;
      if (now !== key) {
        key = now;
        last = name;
        effect = kept(context.data.info.name, name);
        isEarlier = effect !== null;
        failure = "";
        isRunning = false;
      }
      render();
    },
    destroy() { isGone = true; },
  };
}

// ---------------------------------------------------------------- a text of the corpus, with the query and the key that the head links

/** @typedef {HeadExamples["examples"][number]} Example */
/** @typedef {{ start: number, end: number, kind: "query" | "key" }} Place */

/**
 * The text and the answer as parts. Queries of decoder and cross-attention are words of the answer, so are keys of the decoder's.
 * @param {Example} example @param {string} kind of attention
 */
function markedExample(example, kind) {
  const hasAnswer = Boolean(example.answer);
  const isInAnswer = { query: hasAnswer && kind !== "encoder", key: hasAnswer && kind === "decoder" };
  const sides = { text: example.text, answer: example.answer ?? "" };
  /** @type {Record<"text" | "answer", Place[]>} */
  const places = { text: [], answer: [] };
  for (const one of /** @type {const} */ (["query", "key"])) {
    const side = isInAnswer[one] ? "answer" : "text";
    const span = example[`${one}_span`];
    if (span) places[side].push({ start: span[0], end: span[1], kind: one });
  }
  return { text: markedParts(sides.text, places.text), answer: hasAnswer ? markedParts(sides.answer, places.answer) : null };
}

/** @param {string} text @param {Place[]} places @returns {(Node | string)[]} */
function markedParts(text, places) {
  const characters = [...text];
  /** @type {(Node | string)[]} */
  const parts = [];
  let end = 0;
  for (const place of [...places].sort((a, b) => a.start - b.start)) {
    if (place.start < end) continue; // a head may link a word to itself
    const kinds = places.filter((one) => one.start === place.start && one.end === place.end).map(({ kind }) => `is-${kind}`);
    parts.push(characters.slice(end, place.start).join(""), el("mark", { class: kinds.join(" ") }, characters.slice(place.start, place.end).join("")));
    end = place.end;
  }
  return [...parts, characters.slice(end).join("")];
}
