// The answer as text: its tokens with their probabilities, one step of generation, entities and masks.
/** @import { Translate } from "../shared/types.js" */
/** @import { Alternative, Context, Output, Side, Trace } from "./lens_types.js" */
import { changedParts, cutText } from "../shared/changed_words.js";
import { button, show } from "../shared/controls.js";
import { el, perFrame, setText, svg } from "../shared/dom.js";
import { percent, points } from "../shared/figures.js";

// ---------------------------------------------------------------- tokens, each with its probability, and links to the words of the source above

/**
 * Tokens shown as one: a token, or the bytes of one character.
 * @typedef {{ text: string, before: string, start: number, end: number, tokens: number[], isSpecial: boolean }} TokenGroup
 */

const VISIBLE_CHANGE = 0.005; // a smaller change of probability is not written under the token

/**
 * @param {Output} output @param {Side | null} written
 * @returns {{ prompt: string, groups: TokenGroup[], after: string }}
 */
function groupTokens(output, written) {
  const characters = [...(written?.text ?? "")];
  /** @type {TokenGroup[]} */
  const groups = [];
  let end = 0;
  output.tokens.forEach((token, k) => {
    const unit = written?.tokens[output.first + k];
    const last = groups.at(-1);
    if (!unit) {
      groups.push({ text: token.text, before: "", start: end, end, tokens: [k], isSpecial: false });
    } else if (last && !last.isSpecial && unit.start < last.end) {
      last.tokens.push(k);
      last.end = end = Math.max(last.end, unit.end);
      last.text = characters.slice(last.start, last.end).join("");
    } else {
      const isSpecial = unit.end <= unit.start; // EOS, or a token that covers no text
      const text = isSpecial ? (unit.kind === "special" ? unit.text : "␣") : characters.slice(unit.start, unit.end).join("");
      const before = groups.length && !isSpecial ? characters.slice(end, unit.start).join("") : "";
      groups.push({ text, before, start: unit.start, end: unit.end, tokens: [k], isSpecial });
      end = Math.max(end, unit.end);
    }
  });
  const first = groups.find((group) => !group.isSpecial);
  return { prompt: first ? characters.slice(0, first.start).join("") : characters.join(""), groups, after: characters.slice(end).join("") };
}

/**
 * @param {{ point: (token: number | null) => void, choose: (token: number) => void, move: (by: number) => void, leave: () => void }} acts
 */
export function tokenLine(acts) {
  const links = svg("svg", { class: "links", "aria-hidden": "true" });
  const source = el("p", { class: "line-source", dir: "auto" });
  const target = el("p", { class: "line-target", dir: "auto" });
  const root = el("div", { class: "token-line" }, links, source, target);
  /** @type {{ text: string, start: number, end: number, spans: number[], node: HTMLElement }[]} */
  let pieces = [];
  /** @type {{ group: TokenGroup, node: HTMLButtonElement, links: number[] }[]} */
  let shown = [];
  /** @type {Output["alignment"]} */
  let alignment = [];
  /** @type {Set<number>} */
  let lit = new Set();
  const draw = perFrame(drawLinks);
  const watcher = new ResizeObserver(draw);
  watcher.observe(root);

  target.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by !== undefined) acts.move(by);
    else if (event.key === "Escape") acts.leave();
    else return;
    event.preventDefault();
  });

  /** @param {Iterable<number>} numbers of links */
  function light(numbers) {
    lit = new Set(numbers);
    for (const piece of pieces) piece.node.classList.toggle("is-lit", piece.spans.some((number) => lit.has(number)));
    for (const one of shown) one.node.classList.toggle("is-lit", one.links.some((number) => lit.has(number)));
    draw();
  }

  /** @param {Trace} trace @param {Output | null} forced probabilities without the heads that are off */
  function build(trace, forced) {
    const { output } = trace;
    const { prompt, groups, after } = groupTokens(output, trace.sides.written);
    alignment = output.alignment;
    pieces = alignment.length === 0 ? [] : cutText(trace.text, alignment.map((link) => link.source)).map((piece) => {
      const node = el("span", { class: piece.spans.length ? "piece" : null, onpointerenter: () => light(piece.spans), onpointerleave: () => light([]) }, piece.text);
      return { ...piece, node };
    });
    source.replaceChildren(...pieces.map((piece) => piece.node));
    source.hidden = pieces.length === 0;
    shown = groups.map((group) => {
      const numbers = alignment.flatMap(({ target: [start, end] }, number) => (start < group.end && group.start < end ? [number] : []));
      return { group, node: buildToken(output, forced, group, numbers), links: numbers };
    });
    const isPrompt = trace.answer_form === "continuation";
    target.replaceChildren(isPrompt && prompt ? el("span", { class: "prompt" }, prompt) : prompt,
      ...shown.flatMap(({ group, node }) => [group.before + leadingSpace(group.text), node]), after);
    lit = new Set();
    draw();
  }

  /** @param {Output} output @param {Output | null} forced @param {TokenGroup} group @param {number[]} numbers */
  function buildToken(output, forced, group, numbers) {
    const probability = joint(output, group);
    const without = forced ? joint(forced, group) : null;
    const text = group.text.trim() || "␣";
    const change = without === null ? 0 : without - probability;
    const label = without === null ? `${text} ${percent(probability)}` : `${text} ${percent(probability)} → ${percent(without)}`;
    const k = group.tokens[0];
    return el("button", {
      type: "button", class: group.isSpecial ? "token is-special" : "token", "aria-label": label, tabindex: -1, "data-key": `token ${k}`,
      onclick: () => acts.choose(k),
      onpointerenter: () => { light(numbers); acts.point(k); }, onpointerleave: () => { light([]); acts.point(null); },
      onfocus: () => { light(numbers); acts.point(k); }, onblur: () => { light([]); acts.point(null); },
    },
    el("span", { class: "token-text" }, text), bar("is-with", probability), without === null ? null : bar("is-without", without),
    without === null ? null : el("span", { class: "token-change" }, Math.abs(change) >= VISIBLE_CHANGE && without !== null ? points(probability, without, 0) : "\u00a0"));
  }

  /** Mark the step of generation that is looked at. @param {number | null} chosen a token */
  function mark(chosen) {
    shown.forEach(({ group, node }, i) => {
      const isChosen = chosen !== null && group.tokens.includes(chosen);
      node.classList.toggle("is-chosen", isChosen);
      node.classList.toggle("is-later", chosen !== null && group.tokens[0] > chosen);
      node.setAttribute("aria-pressed", String(isChosen));
      node.tabIndex = isChosen || (chosen === null && i === 0) ? 0 : -1;
    });
  }

  function drawLinks() {
    if (!root.isConnected || pieces.length === 0) return links.replaceChildren();
    const origin = root.getBoundingClientRect();
    const isWrapped = [source, target].some((line) => isOnSeveralRows([...line.querySelectorAll(".piece, .token")]));
    root.classList.toggle("is-wrapped", isWrapped);
    const drawn = alignment.flatMap((_, number) => {
      if (isWrapped && !lit.has(number)) return [];
      const from = middle(pieces.filter((piece) => piece.spans.includes(number)).map((piece) => piece.node));
      const to = middle(shown.filter((one) => one.links.includes(number)).map((one) => one.node));
      if (!from || !to) return [];
      const [x1, y1, x2, y2] = [from.x - origin.left, from.bottom - origin.top, to.x - origin.left, to.top - origin.top + 2];
      const bend = (y2 - y1) / 2;
      return [svg("path", { class: lit.has(number) ? "is-lit" : null, d: `M${x1},${y1}C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}` })];
    });
    links.replaceChildren(...drawn);
  }

  return {
    root, build, mark, light,
    /** @param {number} token */
    focus: (token) => shown.find(({ group }) => group.tokens.includes(token))?.node.focus(),
    hasFocus: () => target.contains(document.activeElement),
    destroy: () => watcher.disconnect(),
  };
}

/** Spaces stand between the buttons: a button at the start of a line has none. @param {string} text */
function leadingSpace(text) {
  return text.trim() ? (text.match(/^\s+/)?.[0] ?? "") : "";
}

/** @param {Output} output @param {TokenGroup} group */
function joint(output, group) {
  return group.tokens.reduce((product, k) => product * (output.tokens[k]?.probability ?? 1), 1);
}

/** @param {string} kind @param {number} share */
function bar(kind, share) {
  const fill = el("span", { class: share < 0.5 ? "is-low" : null });
  fill.style.setProperty("inline-size", `${100 * Math.min(1, Math.max(0.02, share))}%`);
  return el("span", { class: `token-bar ${kind}` }, fill);
}

/** @param {Element[]} nodes */
function isOnSeveralRows(nodes) {
  const tops = nodes.map((node) => node.getBoundingClientRect().top);
  return tops.length > 0 && Math.max(...tops) - Math.min(...tops) > 12;
}

/** @param {Element[]} nodes */
function middle(nodes) {
  if (nodes.length === 0) return null;
  const boxes = nodes.map((node) => node.getBoundingClientRect());
  const row = boxes.filter((box) => Math.abs(box.top - boxes[0].top) < 12);
  return { x: (row[0].left + row[row.length - 1].right) / 2, top: row[0].top, bottom: row[0].bottom };
}

// ---------------------------------------------------------------- one step of generation

/** The token the model was least sure of. @param {Output} output */
export function leastCertain(output) {
  let least = 0;
  output.tokens.forEach((token, k) => { if (token.probability < output.tokens[least].probability) least = k; });
  return least;
}

/** The id of a written token, which its alternatives know. @param {Output["tokens"][number]} token @param {Output["tokens"][number] | null} other the same token without some heads */
function chosenId(token, other) {
  const find = (/** @type {Output["tokens"][number] | null} */ one) => one?.alternatives.find(({ text, probability }) =>
    text.trim() === one.text.trim() && Math.abs(probability - one.probability) < 1e-6)?.id;
  return find(token) ?? find(other);
}

/**
 * @param {Context} context @param {{ move: (by: number) => void, leave: () => void }} acts
 */
export function stepPanel(context, acts) {
  const { t, store } = context;
  // The buttons stay while the reader points at tokens: a click must meet the button it was aimed at.
  const heading = el("h3");
  const buttons = el("div", { class: "steps-buttons" });
  const table = el("div");
  const root = el("div", { class: "steps" }, el("div", { class: "steps-top" }, heading, buttons), table);

  /** @param {Output} output @param {Output | null} forced @param {number | null} at a token @param {number | null} pointed a token */
  function update(output, forced, at, pointed) {
    root.hidden = output.tokens.length === 0;
    if (root.hidden) return;
    const k = Math.min(output.tokens.length - 1, pointed ?? at ?? leastCertain(output));
    setText(heading, title(output, k, at, pointed));
    show(buttons, [at, output.tokens.length, store.state.lang], () => [
      button("‹", () => acts.move(-1), { class: "quiet", "aria-label": t("steps_previous"), disabled: at === 0 }),
      button("›", () => acts.move(1), { class: "quiet", "aria-label": t("steps_next"), disabled: at === output.tokens.length - 1 }),
      at === null ? null : button(t("steps_leave"), acts.leave, { class: "quiet" }),
    ]);
    show(table, [output, forced, k, store.state.lang], () => [probabilityTable(t("steps_distribution"), shares(output, forced, k), t)]);
  }

  /** @param {Output} output @param {number} k @param {number | null} at @param {number | null} pointed */
  function title(output, k, at, pointed) {
    if (output.tokens.length === 1) return t("steps_next_token");
    if (at === null && pointed === null) return t("steps_least", { token: visibleText(output.tokens[k].text) });
    return t("steps_title", { number: k + 1, count: output.tokens.length });
  }

  /** @param {Output} output @param {Output | null} forced @param {number} k */
  function shares(output, forced, k) {
    const token = output.tokens[k];
    const other = forced?.tokens[k] ?? null;
    const id = chosenId(token, other);
    /** @type {Share} */
    const written = { text: visibleText(token.text), value: token.probability, without: other?.probability ?? null, isChosen: true };
    /** @type {Share[]} */
    const rows = unionOfChoices(token.alternatives, other?.alternatives ?? null).filter((row) => row.id !== id);
    return withRest([written, ...rows].sort((a, b) => Number(a.isValueLimit ?? false) - Number(b.isValueLimit ?? false)
      || (a.isValueLimit ? (b.without ?? 0) - (a.without ?? 0) : b.value - a.value)), t("steps_rest"));
  }
  return { root, update };
}

// ---------------------------------------------------------------- marks: entities of a tagger, filled masks, words that another answer does not have

const N_COLORS = 6;

/** @typedef {Output["spans"][number]} Entity */

/**
 * Words that can be chosen: their places in the text, the chosen one, and what to do.
 * @typedef {{ words: { start: number, end: number }[], chosen: number | null, choose: (word: number) => void, name: string }} Words
 */

/**
 * The answer with what the other answer does not have marked.
 * @param {string} answer @param {string} other
 */
export function changedText(answer, other) {
  return el("p", { class: "line-target", dir: "auto" }, ...changedParts(answer, other).map((part) =>
    part.isChanged && part.text.trim() ? el("mark", { class: "changed" }, part.text) : part.text));
}

/**
 * The text with its entities: a color and a name for each.
 * @param {string} text @param {readonly Entity[]} spans @param {readonly Entity[] | null} others spans to compare with
 * @param {string[]} labels all labels, in the order of the colors @param {Words | null} [words]
 */
export function entityText(text, spans, others, labels, words = null) {
  const places = words?.words ?? [];
  /** @type {Map<number, (Node | string)[]>} parts of each entity; those of −1 − i stand between entities */
  const groups = new Map();
  cutText(text, [...spans, ...places].map((one) => [one.start, one.end])).forEach((piece, i) => {
    const span = piece.spans.find((number) => number < spans.length) ?? -1 - i;
    const word = piece.spans.find((number) => number >= spans.length);
    groups.set(span, [...(groups.get(span) ?? []), words && word !== undefined ? wordButton(piece.text, word - spans.length, span >= 0, words) : piece.text]);
  });
  return el("p", { class: "entities", dir: "auto" }, ...[...groups].flatMap(([number, parts]) => {
    if (number < 0) return parts;
    const span = spans[number];
    const isChanged = others !== null && !others.some((other) => isSame(other, span));
    const color = labels.indexOf(span.label) % N_COLORS;
    return [el("mark", { class: `entity label-${color}${isChanged ? " changed" : ""}` }, ...parts,
      el("span", { class: "entity-label" }, span.label, span.probability === null ? null : ` ${percent(span.probability)}`))];
  }));
}

/** @param {string} text @param {number} word @param {boolean} isEntity @param {Words} words */
function wordButton(text, word, isEntity, { chosen, choose, name }) {
  return el("button", { type: "button", class: "word", title: name, "data-key": `word ${word}`, tabindex: isEntity || word === chosen ? 0 : -1,
    "aria-pressed": String(word === chosen), onclick: () => choose(word) }, text);
}

/** @param {Entity} one @param {Entity} other */
function isSame(one, other) {
  return one.start === other.start && one.end === other.end && one.label === other.label;
}

/**
 * What became of the entities that the other answer does not have as they are.
 * @param {readonly Entity[]} spans @param {readonly Entity[]} others @param {string} text
 * @returns {{ lost: string[], changed: string[] }} `changed`: other entities cover the same words now
 */
export function changedEntities(spans, others, text) {
  const characters = [...text];
  const words = (/** @type {Entity} */ span) => characters.slice(span.start, span.end).join("");
  /** @type {{ lost: string[], changed: string[] }} */
  const found = { lost: [], changed: [] };
  for (const span of spans.filter((entity) => !others.some((other) => isSame(entity, other)))) {
    const now = others.filter((other) => other.start < span.end && span.start < other.end);
    if (now.length === 0) found.lost.push(`${words(span)} (${span.label})`);
    else if (now.length === 1 && now[0].start === span.start && now[0].end === span.end) found.changed.push(`${words(span)} ${span.label} → ${now[0].label}`);
    else if (now.length === 1 && now[0].label === span.label) found.changed.push(`${words(span)} → ${words(now[0])} (${span.label})`);
    else found.changed.push(`${words(span)} (${span.label}) → ${now.map((one) => `${words(one)} (${one.label})`).join(" + ")}`);
  }
  return found;
}

/** Whether the first list has an entity that the second does not have. @param {readonly Entity[]} spans @param {readonly Entity[]} others */
export function hasNewEntity(spans, others) {
  return spans.some((span) => !others.some((other) => isSame(span, other)));
}

/**
 * The text with its masks filled in by the most probable token.
 * @param {string} text @param {Output["masks"]} masks @param {Output["masks"] | null} others @param {number | null} chosen @param {((mask: number) => void) | null} choose
 */
export function maskedText(text, masks, others, chosen, choose) {
  return el("p", { class: "line-target", dir: "auto" }, ...cutText(text, masks.map((mask) => [mask.start, mask.end])).map((piece) => {
    const number = piece.spans[0];
    if (number === undefined) return piece.text;
    const best = masks[number].alternatives[0];
    const isChanged = others !== null && others[number]?.alternatives[0]?.text !== best?.text;
    if (!choose) return el("mark", { class: `filled${isChanged ? " changed" : ""}` }, best ? visibleText(best.text) : piece.text);
    return el("button", { type: "button", class: `filled${isChanged ? " changed" : ""}`, "aria-pressed": String(number === chosen), "data-key": `mask ${number}`, onclick: () => choose(number) },
      best ? visibleText(best.text) : piece.text);
  }));
}

// ---------------------------------------------------------------- the words that a tagger reads

/**
 * A word with the position of its first token; `form` is its part of a span: S alone, B first, I inside, E last; "" outside of spans.
 * @typedef {{ text: string, start: number, end: number, position: number, span: Output["spans"][number] | null, form: "" | "S" | "B" | "I" | "E" }} TaggedWord
 */

/** @param {Trace} trace @returns {TaggedWord[]} */
export function taggedWords({ text, output, sides }) {
  const { tokens = [], words = [] } = sides.source ?? {};
  const characters = [...text];
  const real = words.filter((word) => word.kind !== "special" && word.end > word.start);
  return real.flatMap((word) => {
    const position = tokens.findIndex((token) => token.start <= word.start && word.start < token.end);
    if (position < 1) return [];
    const span = output.spans.find((entity) => entity.start <= word.start && word.start < entity.end) ?? null;
    return [{ text: characters.slice(word.start, word.end).join(""), start: word.start, end: word.end, position, span, form: formOf(word, span) }];
  });
}

/** @param {{ start: number, end: number }} word @param {{ start: number, end: number } | null} span */
function formOf(word, span) {
  if (!span) return "";
  const [isFirst, isLast] = [word.start <= span.start, word.end >= span.end];
  return isFirst ? (isLast ? "S" : "B") : isLast ? "E" : "I";
}

/** Whether every word has a tag of its own, as parts of speech: there are no spans of several words, and no O. @param {TaggedWord[]} words */
export function isEveryWordTagged(words) {
  return words.length > 1 && words.every((word) => word.form === "S");
}

// ---------------------------------------------------------------- lists of bars: probabilities, effects of heads

/**
 * A row: a probability with all heads, and without some. A limit is the value that the probability is below.
 * @typedef {{ text: string, value: number, without?: number | null, isChosen?: boolean, isFaint?: boolean, isValueLimit?: boolean, isWithoutLimit?: boolean, isComparable?: boolean }} Share
 */

/**
 * A table of probabilities.
 * @param {string} label @param {Share[]} shares @param {Translate} t
 */
export function probabilityTable(label, shares, t) {
  const hasWithout = shares.some((share) => share.without !== null && share.without !== undefined);
  const head = hasWithout
    ? el("thead", {}, el("tr", {}, el("th", {}, el("span", { class: "unseen" }, label)), el("th", { class: "num" }, t("answer_with")), el("th", { class: "num" }, t("answer_without_short")), el("th", { class: "num" }, t("answer_change")), el("td")))
    : null;
  const rows = shares.map((share) => {
    const { value, without = null, isValueLimit = false, isWithoutLimit = false, isComparable = true } = share;
    const hasChange = without !== null && isComparable && !isValueLimit && !isWithoutLimit;
    return el("tr", { class: [share.isChosen ? "is-chosen" : "", share.isFaint ? "is-faint" : ""].join(" ").trim() || null },
      el("th", { scope: "row", dir: "auto" }, share.text),
      el("td", { class: "num" }, limited(value, isValueLimit)),
      hasWithout ? el("td", { class: "num is-without" }, without === null ? "–" : limited(without, isWithoutLimit)) : null,
      hasWithout ? el("td", { class: "num faint" }, hasChange ? points(value, without) : "") : null,
      el("td", { class: "tracks", "aria-hidden": "true" }, track("is-with", isValueLimit ? 0 : value), without === null ? null : track("is-without", isWithoutLimit ? 0 : without)));
  });
  return el("table", { class: hasWithout ? "probabilities has-without" : "probabilities", "aria-label": label }, head, el("tbody", {}, ...rows));
}

/** @param {number} share @param {boolean} isLimit */
function limited(share, isLimit) {
  const text = percent(share);
  return isLimit && !text.startsWith("<") ? `<${text}` : text;
}

/** @param {string} kind @param {number} share */
function track(kind, share) {
  const node = el("div", { class: `track ${kind}` });
  node.style.setProperty("inline-size", `${100 * Math.min(1, Math.max(0, share))}%`);
  return node;
}

/**
 * Bars that grow from the middle: to the right what helps, to the left what hinders.
 * @param {string} label
 * @param {{ name: string, value: number, text: string, note?: string, isOff: boolean, act: () => void }[]} rows
 */
export function effectList(label, rows) {
  const largest = Math.max(1e-9, ...rows.map((row) => Math.abs(row.value)));
  return el("div", { class: "effects", role: "group", "aria-label": label }, ...rows.map((row) => {
    const fill = el("span", { class: row.value < 0 ? "effect-bar is-negative" : "effect-bar" });
    fill.style.setProperty("--share", String(Math.abs(row.value) / largest));
    return el("button", { type: "button", class: row.isOff ? "effect is-off" : "effect", "aria-pressed": String(row.isOff), "data-key": row.name, onclick: row.act },
      el("span", { class: "effect-name" }, row.name, row.note ? el("span", { class: "faint" }, ` ${row.note}`) : null),
      el("span", { class: "effect-picture", "aria-hidden": "true" }, fill), el("span", { class: "num" }, row.text));
  }));
}

// ---------------------------------------------------------------- probabilities with all heads, and without some of them

const VISIBLE = 0.001; // smaller probabilities are counted under "all others"
const NO_REST = 0.0005; // too little to be worth a line

/** @param {string} text */
export const visibleText = (text) => text.trim() || "␣";

/**
 * The union of two lists of the most probable tokens. A token that one of the lists lacks is less probable there than the
 * last one of that list: its value is this limit.
 * @param {readonly Alternative[]} before with all heads @param {readonly Alternative[] | null} after without some of them
 * @returns {(Share & { id: number })[]}
 */
export function unionOfChoices(before, after) {
  const limit = { before: smallest(before), after: smallest(after ?? []) };
  const rows = before.map((one) => {
    const found = after?.find((other) => other.id === one.id);
    return { id: one.id, text: visibleText(one.text), value: one.probability, without: after ? (found?.probability ?? limit.after) : null, isWithoutLimit: after !== null && !found };
  });
  const added = (after ?? []).filter((one) => !before.some((other) => other.id === one.id)).map((one) =>
    ({ id: one.id, text: visibleText(one.text), value: limit.before, isValueLimit: true, without: one.probability }));
  return [...rows, ...added];
}

/**
 * The rows that are worth a line, and one for all the others; the chosen one always is.
 * @param {Share[]} rows @param {string} rest the name of all the others
 * @returns {Share[]}
 */
export function withRest(rows, rest) {
  const kept = rows.filter((row) => row.isChosen || (!row.isValueLimit && row.value >= VISIBLE) || (!row.isWithoutLimit && (row.without ?? 0) >= VISIBLE));
  const hasWithout = kept.some((row) => typeof row.without === "number");
  const value = left(kept.map((row) => (row.isValueLimit ? 0 : row.value)));
  const without = hasWithout ? left(kept.map((row) => (row.isWithoutLimit ? 0 : (row.without ?? 0)))) : null;
  if (value < NO_REST && (without ?? 0) < NO_REST) return kept;
  // The two columns leave out different tokens where one of them is a limit: no difference then.
  const isComparable = !kept.some((row) => row.isValueLimit || row.isWithoutLimit);
  return [...kept, { text: rest, value, without, isFaint: true, isComparable }];
}

/** @param {number[]} shares */
function left(shares) {
  return Math.max(0, 1 - shares.reduce((sum, share) => sum + share, 0));
}

/** @param {readonly Alternative[]} choices */
function smallest(choices) {
  return choices.reduce((least, one) => Math.min(least, one.probability), 1);
}
