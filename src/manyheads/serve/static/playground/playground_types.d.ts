/** Types of the playground: what the server of `manyheads serve` sends, and what the page keeps. */

import type { AnswerForm, Language, Translate } from "../shared/types.d.ts";

export type Theme = "auto" | "light" | "dark";

/** A bundle that is served, as GET /v1/bundles describes it. */
export type Bundle = {
  name: string;
  task: string; // its name; what the page shows depends on answer_form
  answer_form: AnswerForm;
  purpose: string; // of an answer that is a text: "translation", "summary", …; "" if unknown
  languages: string[];
  labels: string[];
  n_parameters: number;
  decode: Record<string, unknown>;
  version: string;
  examples?: string[]; // texts to try
};

export type Candidate = { text: string; log_probability: number; score: number; finished: boolean; mean_log_probability?: number };
export type Entity = { start: number; end: number; label: string; text: string; probability: number | null };
export type Guess = { text: string; probability: number };

/** One of the predictions of POST /v1/predict; which fields it has depends on the answer_form of the bundle. */
export type Prediction = {
  source?: string;
  answer?: unknown;
  candidates?: Candidate[];
  warnings?: string[];
  missing?: string[];
  confidence?: number | null;
  abstained?: boolean;
  alignment?: [number, number][];
  source_words?: string[];
  target_words?: string[];
  label?: string;
  labels?: string[];
  probability?: number | null;
  probabilities?: Record<string, number>;
  out_of_scope?: number | null;
  is_out_of_scope?: boolean;
  spans?: Entity[];
  text?: string;
  gaps?: Guess[][];
  vector?: number[];
  unseen_words?: string[];
};

/** An error: a message of the tables by its key, or the detail of problem+json. */
export type PlayProblem = { status: number; detail: string; key?: string; values?: Record<string, string | number>; retryAfter: number };

/** What was predicted, for which text, and how long it took. */
export type Result = { text: string; prediction: Prediction; milliseconds: number; first: number | null };

export type Value = string | number | boolean;
export type Values = Record<string, Value>;
export type Term = { source: string; target: string };

/** What the user entered for one bundle; it outlives a reload. */
export type Draft = { text: string; values: Values };

/** The state of one bundle. */
export type Session = {
  readonly bundle: Bundle;
  text: string;
  values: Values; // settings that differ from the usual ones
  terms: Term[]; // the glossary
  result: Result | null;
  streamed: { prompt: string; text: string; state: "running" | "stopped" | "done" } | null;
  problem: PlayProblem | null;
  waitUntil: number; // milliseconds since 1970; 0: the server may be asked
  isBusy: boolean;
  chosen: number[]; // of each mask, the guess that is shown
  type(text: string): void;
  setValue(name: string, value: Value | undefined): void;
  setTerms(terms: Term[]): void;
  choose(mask: number, guess: number): void;
  run(): void;
  stop(): void;
  release(): void;
};

export type PlayContext = {
  t: Translate;
  lang: () => Language;
  hasKey: () => boolean;
  announce(message: string): void;
};

/** A part of the page; `update` is called after every change. */
export type Part = { root: HTMLElement; update(): void };
