// Words of source and translation that belong together: pointing at one marks the others, in both directions.
/** @import { PlayContext, Prediction } from "./playground_types.js" */
import { el, setText } from "../shared/dom.js";

/** @typedef {{ start: number, end: number }} Place in UTF-16 units, as texts of the page count */

/**
 * Where words stand in their text, one after the other; null: not there.
 * @param {string} text @param {readonly string[]} words @returns {(Place | null)[]}
 */
export function placesOf(text, words) {
  let from = 0;
  return words.map((word) => {
    const start = word ? text.indexOf(word, from) : -1;
    if (start < 0) return null;
    from = start + word.length;
    return { start, end: from };
  });
}

/**
 * A text as elements, one for each word.
 * @param {string} text @param {readonly (Place | null)[]} places @param {string} side
 */
function wordNodes(text, places, side) {
  /** @type {(Node | string)[]} */
  const nodes = [];
  let end = 0;
  places.forEach((place, number) => {
    if (!place) return;
    if (place.start > end) nodes.push(text.slice(end, place.start));
    nodes.push(el("span", { class: "play-word", [`data-${side}`]: number }, text.slice(place.start, place.end)));
    end = place.end;
  });
  nodes.push(text.slice(end));
  return nodes;
}

/**
 * The alignment between a text field and an output. A mirror of the text lies behind the field and shows the marks.
 * @param {HTMLTextAreaElement} field @param {HTMLElement} mirror @param {HTMLElement} output @param {PlayContext} context
 */
export function createAlignment(field, mirror, output, { t }) {
  const line = el("p", { id: "play-aligned", class: "hint play-aligned", role: "status", hidden: true });
  /** @type {{ source: string[], target: string[], links: readonly (readonly [number, number])[], places: (Place | null)[] } | null} */
  let shown = null;
  /** @type {Prediction | null} */
  let last = null;
  let current = -1; // word of the output that the arrow keys selected

  /** @param {"source" | "target" | null} side @param {number} [number] */
  function mark(side, number = -1) {
    for (const node of [...mirror.children, ...output.querySelectorAll(".play-word")]) node.classList.remove("is-here", "is-linked");
    if (!shown) return;
    if (!side || number < 0) {
      setText(line, t("play_align_hint"));
      return;
    }
    const [own, other] = side === "source" ? [0, 1] : [1, 0];
    const linked = shown.links.filter((link) => link[own] === number).map((link) => link[other]);
    const otherSide = side === "source" ? "target" : "source";
    wordNode(side, number)?.classList.add("is-here");
    for (const one of linked) wordNode(otherSide, one)?.classList.add("is-linked");
    const words = shown[otherSide];
    const to = linked.toSorted((a, b) => a - b).map((one) => `“${words[one]}”`).join(" ");
    setText(line, to ? t("play_aligned", { from: `“${shown[side][number]}”`, to }) : t("play_unaligned", { from: `“${shown[side][number]}”` }));
  }

  /** @param {string} side @param {number} number */
  const wordNode = (side, number) => (side === "source" ? mirror : output).querySelector(`[data-${side}="${number}"]`);

  /** @param {EventTarget | null | undefined} target @param {string} side */
  function numberOf(target, side) {
    const node = target instanceof Element ? target.closest(`[data-${side}]`) : null;
    return node instanceof HTMLElement ? Number(node.dataset[side]) : -1;
  }

  function markCaret() {
    if (!shown || document.activeElement !== field) return;
    const caret = field.selectionStart;
    mark("source", shown.places.findIndex((place) => place !== null && place.start <= caret && caret < place.end));
  }

  output.addEventListener("pointerover", (event) => { const number = numberOf(event.target, "target"); if (number >= 0) mark("target", number); });
  output.addEventListener("pointerleave", () => mark(current >= 0 ? "target" : null, current));
  output.addEventListener("click", (event) => { const number = numberOf(event.target, "target"); if (number >= 0) mark("target", number); });
  field.addEventListener("pointermove", (event) => {
    if (!shown) return;
    const under = document.elementsFromPoint(event.clientX, event.clientY).find((node) => node instanceof HTMLElement && node.dataset.source !== undefined);
    if (under) mark("source", numberOf(under, "source"));
    else mark(null);
  });
  field.addEventListener("pointerleave", () => mark(null));
  field.addEventListener("keyup", (event) => { if (/^(Arrow|Home|End|Page)/.test(event.key)) markCaret(); });
  output.addEventListener("keydown", (event) => {
    if (!shown || !/^(ArrowLeft|ArrowRight|Home|End)$/.test(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const end = shown.target.length - 1;
    const moves = /** @type {Record<string, number>} */ ({ ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: end });
    current = Math.min(end, Math.max(0, moves[event.key]));
    mark("target", current);
  });
  output.addEventListener("focus", () => { if (shown && current < 0) { current = 0; mark("target", 0); } });
  output.addEventListener("blur", () => { current = -1; mark(null); });

  return {
    line,
    /**
     * Shows an answer in the output, word by word if its alignment is known and fits the text in the field.
     * @param {Prediction} prediction @param {string} answer @param {boolean} isCurrent
     */
    show(prediction, answer, isCurrent) {
      const { alignment, source_words: source, target_words: target } = prediction;
      const fits = isCurrent && alignment !== undefined && source !== undefined && target !== undefined && target.length > 0;
      if (last === prediction && (shown !== null) === fits) return;
      last = prediction;
      current = -1;
      shown = fits ? { source, target, links: alignment, places: placesOf(field.value, source) } : null;
      line.hidden = !fits;
      mirror.replaceChildren(...(shown ? wordNodes(field.value, shown.places, "source") : []));
      output.replaceChildren(...(shown ? wordNodes(answer, placesOf(answer, shown.target), "target") : [answer]));
      if (fits) output.setAttribute("tabindex", "0");
      else output.removeAttribute("tabindex");
      mark(null);
    },
    clear() {
      last = null;
      shown = null;
      line.hidden = true;
      mirror.replaceChildren();
      output.removeAttribute("tabindex");
    },
  };
}
