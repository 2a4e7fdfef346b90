/** @import { Mount } from "./types.d.ts" */
/** @type {Mount} */
export const mountTourView = (_root, _context) => ({ update() {} });
