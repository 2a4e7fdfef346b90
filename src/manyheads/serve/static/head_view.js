/** @import { Mount } from "./types.d.ts" */
/** @type {Mount} */
export const mountHeadView = (_root, _context) => ({ update() {} });
