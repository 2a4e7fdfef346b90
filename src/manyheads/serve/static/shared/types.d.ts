/** Types that the lens page and the playground share. */

export type Language = "en" | "zh";
/** A text of the server in every language. */
export type Names = { en: string; zh: string };
export type Problem = { title: string; status: number; detail: string };

/**
 * What the answer to a text is: another text, the continuation of the text, its labels, labeled spans of it, or the tokens
 * for its masks. It decides what a page shows.
 */
export type AnswerForm = "text" | "continuation" | "labels" | "spans" | "masks" | "vector";

/** A message of the tables in messages.js; `{name}` in it is replaced by values.name. */
export type Translate = (key: string, values?: Record<string, string | number>) => string;
