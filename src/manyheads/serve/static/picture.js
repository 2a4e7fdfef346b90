/** @import { Context, Scene, Selection } from "./types.js" */
// Saves what is shown as SVG or PNG (drawn here) or PDF (drawn by the server).
import { el, svg } from "./dom.js";
import { arcsPicture } from "./picture_arcs.js";
import { matrixPicture } from "./picture_matrix.js";
import { textPicture } from "./picture_text.js";
import { FAMILY, INK, PAPER, ruler, SOFT } from "./picture_style.js";

const MARGIN = 28;
const HEAD = 58; // room for the title
const PNG_SCALE = 3;
const MAX_PIXELS = 30e6; // of a PNG

/**
 * A picture with title, legend and white background; colors are plain, so that it looks the same everywhere.
 * @param {Context} context @param {"matrix" | "arcs" | "text"} name @param {Scene} scene @param {Selection} selection
 */
export function makePicture(context, name, scene, selection) {
  const { t, store } = context;
  const pins = { queries: selection.pinnedQueries(), keys: selection.pinnedKeys() };
  const drawn = { matrix: matrixPicture, arcs: arcsPicture, text: textPicture }[name](scene, { t, pins, mass: store.state.mass });
  const hidden = scene.hidden ? ` · ${t("picture_hidden", { share: (100 * scene.hidden.share).toFixed(1) })}` : "";
  const below = [`${scene.attention.name}/${scene.head}`, t(`kind_${scene.kind}`), t(`unit_${store.state.unit}`)].join(" · ") + hidden;
  const title = context.headTitle(scene.attention.name, scene.head);
  const [width, height] = [Math.ceil(Math.max(drawn.width, ruler(18)(title), ruler(12)(below)) + 2 * MARGIN), Math.ceil(drawn.height + HEAD + 2 * MARGIN)];
  const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FAMILY },
    svg("title", { text: `${title}: ${scene.trace.text.slice(0, 200)}` }),
    svg("rect", { width, height, fill: PAPER }),
    svg("text", { x: MARGIN, y: MARGIN + 14, "font-size": 18, fill: INK, text: title }),
    svg("text", { x: MARGIN, y: MARGIN + 36, "font-size": 12, fill: SOFT, text: below }),
    svg("g", { transform: `translate(${MARGIN} ${MARGIN + HEAD})` }, drawn.node));
  return { root, width, height };
}

/** @param {ReturnType<typeof makePicture>} picture */
const sourceOf = (picture) => `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(picture.root)}\n`;

/** @param {ReturnType<typeof makePicture>} picture @returns {Promise<Blob>} */
async function pngOf(picture) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(sourceOf(picture))}`;
  await image.decode();
  const scale = Math.min(PNG_SCALE, Math.sqrt(MAX_PIXELS / (picture.width * picture.height)));
  const canvas = el("canvas", { width: Math.round(picture.width * scale), height: Math.round(picture.height * scale) });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no PNG"))), "image/png"));
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * @param {Context} context @param {"matrix" | "arcs" | "text"} name @param {() => Scene | null} sceneOf @param {Selection} selection
 */
export function pictureButtons(context, name, sceneOf, selection) {
  const { t, source, store } = context;
  const fileName = (/** @type {Scene} */ scene, /** @type {string} */ format) => `${scene.attention.name}.${scene.head}.${name}.${format}`;
  /** @param {"svg" | "png"} format */
  async function save(format) {
    const scene = sceneOf();
    if (!scene) return;
    const picture = makePicture(context, name, scene, selection);
    const blob = format === "svg" ? new Blob([sourceOf(picture)], { type: "image/svg+xml" }) : await pngOf(picture);
    download(blob, fileName(scene, format));
    context.announce(t("saved", { name: fileName(scene, format) }));
  }
  const buttons = /** @type {const} */ (["svg", "png"]).map((format) => el("button", { type: "button", class: "format", text: format.toUpperCase(), onclick: () => void save(format) }));
  const pdf = el("a", { class: "format", text: "PDF", hidden: true });
  const root = el("div", { class: "formats" }, ...buttons, pdf);
  return {
    root,
    update() {
      const scene = sceneOf();
      const { unit, kind, lang, mass } = store.state;
      const address = scene && name !== "text" ? source.pictureUrl(scene.trace.id, scene.attention.name, scene.head, { format: "pdf", view: name, unit, kind, lang, mass: String(mass) }) : null;
      pdf.hidden = !address;
      if (address && scene) {
        pdf.href = address;
        pdf.download = fileName(scene, "pdf");
      }
      const labeled = [...buttons, pdf];
      for (const button of labeled) button.setAttribute("aria-label", t("save_as", { part: t(`part_${name}`), format: button.textContent ?? "" }));
    },
  };
}
