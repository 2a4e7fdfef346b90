/** @import { Side, Translate, Unit } from "./types.js" */
// What is true of the tokens at hand: special ones, words that are split, characters, spaces.
import { shownText, tokenName } from "./head_map.js";

const HAN = /\p{Script=Han}/u;
const SPACE = "▁";
const MAX_PARTS = 6; // of a split word that is shown

/** Special tokens of a side in brackets, such as "(with EOS, which marks the end)"; "" if there are none. @param {Translate} t @param {Side | null} side */
export function specialsOf(t, side) {
  const names = [...new Set((side?.tokens ?? []).filter((unit) => unit.kind === "special").map((unit) => unit.text))];
  if (!names.length) return "";
  const known = names.filter((name) => name === "BOS" || name === "EOS").sort().join("_");
  return names.length === known.split("_").length && known ? t(`tour_1_${known}`) : t("tour_1_specials", { names: names.join(t("tour_1_comma")) });
}

/** How the words and characters of a side became tokens. @param {Translate} t @param {Side | null} side */
export function splittingOf(t, side) {
  if (!side) return "";
  return [words(t, side), characters(t, side), spaces(t, side)].filter(Boolean).join(t("tour_1_space"));
}

/** The tokens of a unit; a space that is a token of its own is not counted as a part of the word. @param {Side} side @param {Unit} unit */
const partsOf = (side, unit) => unit.parts.filter(([position]) => side.tokens[position]?.text !== SPACE);

/** @param {Translate} t @param {Side} side */
function words(t, side) {
  const all = side.words.filter((unit) => unit.kind === "text" && !HAN.test(unit.text));
  const split = all.filter((unit) => partsOf(side, unit).length > 1);
  if (!all.length) return "";
  if (!split.length) return t(all.length === 1 ? "tour_1_word" : "tour_1_words", { n: all.length });
  const shortest = split.reduce((best, unit) => (partsOf(side, unit).length < partsOf(side, best).length ? unit : best));
  const parts = partsOf(side, shortest).map(([position]) => tokenName(side, position));
  const shown = parts.length > MAX_PARTS ? [...parts.slice(0, MAX_PARTS), "…"] : parts;
  return t(split.length === all.length ? "tour_1_split_all" : "tour_1_split", { n: all.length, whole: all.length - split.length, split: split.length, word: shownText(shortest), parts: shown.join(" + ") });
}

/** @param {Translate} t @param {Side} side */
function characters(t, side) {
  const all = side.characters.filter((unit) => HAN.test(unit.text));
  if (!all.length) return "";
  const bytes = all.filter((unit) => partsOf(side, unit).some(([position]) => side.tokens[position]?.kind === "byte"));
  const joined = all.filter((unit) => !bytes.includes(unit) && partsOf(side, unit).some(([, share]) => share < 1));
  const n = { n: all.length, one: all.length - bytes.length - joined.length, joined: joined.length, bytes: bytes.length };
  if (!joined.length && !bytes.length) return t("tour_1_characters", n);
  const found = [t("tour_1_some", n)];
  if (joined.length) found.push(t("tour_1_joined", n));
  if (bytes.length) found.push(t("tour_1_bytes", { ...n, character: bytes[0].text }));
  return `${found.join(t("tour_1_comma_long"))}${t("tour_1_stop")}`;
}

/** @param {Translate} t @param {Side} side */
function spaces(t, side) {
  const found = side.tokens.filter((unit) => unit.text === SPACE);
  if (!found.length) return "";
  return t(found.every((unit) => unit.start === unit.end) ? "tour_1_space_first" : "tour_1_space_own");
}
