/** Types that the lens page and the playground share. */

export type Language = "en" | "zh";
/** A text of the server in every language. */
export type Names = { en: string; zh: string };
export type Problem = { title: string; status: number; detail: string };

/** A message of the tables in messages.js; `{name}` in it is replaced by values.name. */
export type Translate = (key: string, values?: Record<string, string | number>) => string;
