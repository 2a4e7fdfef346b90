/** @import { Context, Scene, UnitName } from "./types.js" */
// The switches above the views of one head.
import { choice, el, setText } from "./dom.js";

const UNITS = /** @type {const} */ (["tokens", "characters", "words"]);

/** The units that give the same picture as this one, for the text that is shown. @param {Scene | null} scene @param {UnitName} unit @returns {UnitName[]} */
function sameUnits(scene, unit) {
  if (!scene) return [];
  const look = (/** @type {UnitName} */ name) => JSON.stringify([scene.querySide, scene.keySide].map((side) => side[name].map(({ kind, parts }) => [kind === "byte" ? "text" : kind, parts])));
  const own = look(unit);
  return UNITS.filter((name) => name === unit || look(name) === own);
}

/** @param {Context} context */
export function headControls({ store, t }) {
  const kind = choice({ values: /** @type {const} */ (["weights", "norms"]), choose: (value) => store.set({ kind: value }) });
  const unit = choice({ values: UNITS, choose: (value) => store.set({ unit: value }) });
  const sinks = el("input", { type: "checkbox", id: "lens-sinks", onchange: () => store.set({ sinks: sinks.checked }) });
  const sinksName = el("label", { for: "lens-sinks" });
  const mass = el("input", { type: "range", id: "lens-mass", min: 10, max: 100, step: 1, oninput: () => store.set({ mass: Number(mass.value) / 100 }) });
  const massName = el("label", { for: "lens-mass" });
  const massValue = el("output", { for: "lens-mass", class: "number" });
  const unpin = el("button", { type: "button", class: "plain", onclick: () => store.set({ pins: [], keyPins: [], at: null }) });
  const root = el("div", { class: "controls" }, kind.root, unit.root,
    el("span", { class: "control" }, sinks, sinksName), el("span", { class: "control" }, massName, mass, massValue), unpin);
  /** @type {Scene | null} */
  let compared = null;
  return {
    root,
    /** @param {Scene | null} scene */
    update(scene) {
      const { state } = store;
      kind.show(state.kind, t("kind"), (value) => t(`kind_${value}`));
      kind.root.title = t(`kind_${state.kind}_help`);
      unit.show(state.unit, t("unit"), (value) => t(`unit_${value}`));
      if (scene !== compared || unit.root.lang !== state.lang) {
        [compared, unit.root.lang] = [scene, state.lang];
        const same = sameUnits(scene, state.unit);
        unit.root.title = same.length > 1 ? t(same.length === UNITS.length ? "unit_all_same" : "unit_same", { units: same.map((name) => t(`unit_${name}`)).join(t("unit_and")) }) : "";
      }
      sinks.checked = state.sinks;
      setText(sinksName, t("sinks"));
      const percent = Math.round(100 * state.mass);
      if (Number(mass.value) !== percent) mass.value = String(percent);
      setText(massName, t("mass"));
      massName.title = t("mass_help");
      setText(massValue, `${percent} %`);
      unpin.hidden = !state.pins.length && !state.keyPins.length;
      setText(unpin, t("unpin"));
    },
  };
}
