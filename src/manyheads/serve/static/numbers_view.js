/** @import { Mount } from "./types.d.ts" */
/** @type {Mount} */
export const mountNumbersView = (_root, _context) => ({ update() {} });
