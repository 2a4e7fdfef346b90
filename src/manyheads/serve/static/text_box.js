/** @import { Mount } from "./types.d.ts" */
/** @type {Mount} */
export const mountTextBox = (_root, _context) => ({ update() {} });
