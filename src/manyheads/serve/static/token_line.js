// A written text as a line of tokens: the probability of each as a thin bar, links to the words of the source above.
/** @import { Output, Side, Trace } from "./types.js" */
import { cutText } from "./changed_words.js";
import { el, percent, perFrame, svg } from "./dom.js";
import { points } from "./figures.js";

/**
 * Tokens shown as one: a token, or the bytes of one character.
 * @typedef {{ text: string, before: string, start: number, end: number, tokens: number[], isSpecial: boolean }} TokenGroup
 */

const VISIBLE_CHANGE = 0.005; // a smaller change of probability is not written under the token

/**
 * @param {Output} output @param {Side | null} written
 * @returns {{ prompt: string, groups: TokenGroup[], after: string }}
 */
export function groupTokens(output, written) {
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
    const isPrompt = trace.output.task === "language";
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
