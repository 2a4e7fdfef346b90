/**
 * Types of the lens page: what the server sends, what the address keeps, and what every view is given.
 *
 * In a module: `/** @import { Context, View } from "./lens_types.js" *\/`.
 */

import type { AnswerForm, Language, Names, Problem, Translate } from "../shared/types.d.ts";

// ---------------------------------------------------------------- the page

export type PageName = "text" | "heads" | "head" | "compare" | "tour";
export type UnitName = "tokens" | "characters" | "words";
export type MapKind = "weights" | "norms";
export type SideName = "source" | "target" | "written";

/** Everything the address keeps. Positions are token positions, whatever unit is shown. */
export type State = {
  page: PageName;
  bundle: string; // "a" or "b"
  text: string;
  answer: string | null; // null: the model's own
  step: number | null; // training step of a snapshot; null: the final weights
  text2: string | null; // compare: the other text
  attention: string; // "decoder.0.cross"; "" until the model is known
  head: number;
  pins: number[]; // pinned query positions
  keyPins: number[]; // pinned key positions
  off: string[]; // ablated heads, "encoder.0.self/2"
  unit: UnitName;
  kind: MapKind;
  sinks: boolean; // true: show BOS, EOS, punctuation
  mass: number; // draw the largest links that hold this share of each row, 0..1
  at: number | null; // generation step being looked at (target position)
  colorBy: "role" | "importance";
  lang: Language;
  theme: "auto" | "light" | "dark";
  tour: number; // step of the tour, from 0
  compare: "texts" | "bundles" | "training" | null; // null: what fits the rest of the address
  differBy: "map" | "entropy" | "sink"; // compare: what the list of differing heads is sorted by
  axisX: string; // a measure; all heads: axes of the scatter
  axisY: string;
  onlyRole: string; // "": all; all heads: filters of the table
  onlyKind: AttentionKind | "";
  find: string;
  groupBy: "role" | "layer" | "";
  sortBy: string; // "head", "role" or a measure; "-entropy": from large to small; "": in the model's order
};

export type Store = {
  readonly state: Readonly<State>;
  /** Changes the state, the address and, through subscribers, the page. `isMinor`: no entry in the browser's history. */
  set(change: Partial<State>, options?: { isMinor?: boolean }): void;
  subscribe(listener: (changed: ReadonlySet<keyof State>) => void): () => void;
  /** The address of this state with some changes; for links (`href`). */
  address(change?: Partial<State>): string;
};

/** Data that lens.js keeps current. Former results stay while new ones are computed. */
export type Data = {
  model: Model;
  info: ModelInfo; // of state.bundle
  trace: Trace | null;
  busy: boolean; // a trace or an ablation is being computed
  error: Problem | null; // the newest request failed
  ablation: Ablation | null; // of the trace, for state.off
  heads: HeadSurvey | null;
  importance: TextImportance | null; // of the trace, after load.importance()
};

/** Requests with a cache. All of them reject with a Problem. */
export type Load = {
  retry(): void; // compute the trace again
  trace(request: TraceRequest): Promise<Trace>; // for comparing; data.trace is loaded by lens.js
  map(trace: Trace, attention: string, head: number, kind: MapKind): Promise<HeadMap>;
  walk(trace: Trace, attention: string, head: number, query: number): Promise<WalkRow>;
  importance(): Promise<void>; // fills data.importance, then update()
  survey(): void; // starts or continues polling; fills data.heads, then update()
};

export type Context = {
  store: Store;
  source: Source;
  t: Translate;
  /** A text of the server in the language in use. */
  pick(names: Names): string;
  /** Name and color of a role, in the language in use. */
  role(name: string): { name: string; color: string };
  /** "Encoder self-attention, layer 0, head 2" in the language in use, for an attention name and a head number. */
  headTitle(attention: string, head: number | null): string;
  data: Data;
  load: Load;
  /** Shows one line at the foot of the page for a few seconds, and reads it to screen readers. */
  announce(message: string): void;
};

export type View = { update(): void; destroy?(): void };
export type Mount = (root: HTMLElement, context: Context) => View;

// ---------------------------------------------------------------- one head, as the linked views show it

/** The map of one head in the units that are shown, without what is hidden. Indices count shown units. */
export type Scene = {
  trace: Trace;
  attention: TracedAttention;
  head: number;
  kind: MapKind;
  isSelf: boolean; // queries and keys are the same units
  queries: Unit[];
  keys: Unit[];
  querySide: Side;
  keySide: Side;
  values: Float32Array; // queries × keys
  largest: number;
  rowSums: Float32Array; // of what is shown
  hidden: { n: number; share: number } | null; // BOS, EOS, punctuation: how many keys, and their share of the mass
  isEmpty: boolean; // everything was hidden, so everything is shown
};

/** What the pointer or the keyboard selects, and what is pinned; shared by the views of one head. */
export type Selection = {
  readonly query: number | null;
  readonly key: number | null;
  hover(query: number | null, key: number | null): void;
  /** Moves by keyboard, also when nothing was selected yet. */
  move(dQuery: number, dKey: number): void;
  toggle(query: number | null, key: number | null): void;
  /** Units whose outgoing or incoming attention is shown: selected and pinned ones. */
  outgoing(): number[];
  incoming(): number[];
  pinnedQueries(): number[];
  pinnedKeys(): number[];
  subscribe(listener: () => void): () => void;
};

/** The part of a long text that arcs and text show: units [start, end). */
export type Part = { start: number; end: number };
export type Parts = { queries: Part; keys: Part };

export type HeadPart = { setScene(scene: Scene): void; redraw(): void; destroy(): void };

// ---------------------------------------------------------------- the wire

export type Model = { version: number; bundles: ModelInfo[] };
export type AttentionKind = "encoder" | "decoder" | "cross";

export type ModelInfo = {
  id: string;
  name: string;
  task: string; // its name; what the page shows depends on answer_form
  answer_form: AnswerForm;
  shape: "encoder-decoder" | "encoder" | "decoder";
  n_parameters: number;
  width: number;
  languages: string[];
  attentions: { name: string; kind: AttentionKind; layer: number; n_heads: number; head_width: number; value_width: number }[];
  scores: { set: string; name: string; value: number; low: number; high: number }[];
  max_tokens: number;
  max_characters: number;
  examples: string[];
  steps: number[];
  takes_answer: boolean;
  is_live: boolean; // false in a file
  is_private: boolean; // on a server that shows nothing of the owner's data
};

export type TraceRequest = { bundle: string; text: string; answer: string | null; step: number | null };

export type Trace = {
  id: string;
  bundle: string;
  text: string;
  answer: string;
  step: number | null;
  answer_form: AnswerForm;
  sides: { source: Side | null; target: Side | null; written: Side | null };
  attentions: TracedAttention[];
  output: Output;
  notes: Names[];
  warnings?: Names[]; // what `predict` remarks on the text and its answer
};

export type TracedAttention = {
  name: string;
  kind: AttentionKind;
  layer: number;
  n_heads: number;
  queries: SideName;
  keys: "source" | "target";
  n_queries: number;
  n_keys: number;
  thumbnails: string[]; // base64 uint8 of √(max-pooled weight)×255, row-major, per head
  thumbnail_shape: [number, number];
  heads: { entropy: number; distance: number; sink: number }[];
};

export type Side = { text: string; tokens: Unit[]; characters: Unit[]; words: Unit[] };

export type Unit = {
  text: string;
  start: number;
  end: number;
  kind: "text" | "special" | "punctuation" | "byte";
  parts: [number, number][]; // [token position, share of that token]
};

export type Alternative = { id: number; text: string; probability: number };

export type Output = {
  answer: string;
  tokens: { text: string; probability: number; alternatives: Alternative[] }[];
  first: number; // the target position that wrote tokens[0]
  labels: { name: string; probability: number }[];
  ngram_share: number | null;
  spans: { start: number; end: number; label: string; probability: number | null }[];
  masks: { start: number; end: number; alternatives: Alternative[] }[];
  alignment: { source: [number, number]; target: [number, number] }[];
  log_probability: number | null;
};

export type Ablation = {
  trace: string;
  heads: string[];
  free: Output; // the model answers again
  forced: Output | null; // probabilities of the original answer
  log_probability_change: number | null;
};

export type TextImportance = { trace: string; heads: { head: string; change: number }[]; unit: "nats" };

export type Contrast = {
  chosen: string;
  instead: string;
  difference: number;
  heads: { head: string; effect: number }[];
};

export type WalkKey = {
  name: string;
  k: number[];
  terms: number[];
  product: number;
  bias: number | null;
  visible: boolean;
  score: number | null;
  exponential: number;
  weight: number;
  weight_unscaled: number | null;
  v: number[];
};

export type WalkRow = {
  attention: string;
  head: number;
  query: number;
  query_name: string;
  form: string;
  head_width: number;
  scale: number;
  q: number[];
  keys: WalkKey[];
  exponential_sum: number;
  weighted_sum: number[];
  contribution: number[];
  contribution_norm: number;
  shares: number[]; // ‖head_i W^O‖ of every head of this attention at this position
};

export type SurveyHead = {
  head: string;
  role: string;
  names: Names;
  color: string;
  roles: { name: string; names: Names; statistic: string; excess: number }[];
  reach: string;
  values: Record<string, number>;
  evidence: { id: string; names: Names; value: number; low: number; high: number; n: number; baseline: number; baseline_by: string; control: number }[];
  importance: { value: number; low: number; high: number } | null;
  nearest: { head: string; distance: number }[];
};

export type HeadSurvey = {
  state: "running" | "ready" | "failed";
  done: number;
  message: Names | null;
  n_texts: number;
  agreement?: { value: number; low: number; high: number; n_heads: number } | null; // of gradient and ablation
  measures: { id: string; names: Names }[];
  heads: SurveyHead[];
};

export type HeadExamples = {
  head: string;
  examples: {
    stratum: "strongest" | "strong" | "middle" | "weak" | "weakest";
    strength: number;
    text: string;
    answer: string | null;
    query: string;
    key: string;
    query_span: [number, number] | null; // code points of the text, or of the answer; null for special tokens
    key_span: [number, number] | null;
    weight: number;
  }[];
};

export type HeadEffect = {
  state: string;
  metric: string;
  baseline: number;
  change: number;
  low: number;
  high: number;
  n_rows: number;
  done: number;
  message: Names | null;
};

export type Timeline = {
  state: "running" | "ready" | "failed";
  done: number;
  message: Names | null;
  roles: Record<string, { names: Names; color: string }>; // every role of an entry
  entries: { step: number; roles: Record<string, string>; statistics: Record<string, Record<string, number>> }[];
};

// ---------------------------------------------------------------- the source

export type HeadMap = { values: Float32Array; n_queries: number; n_keys: number; is_exact: boolean };

export type PictureRequest = {
  format: "svg" | "png" | "pdf";
  view: "matrix" | "arcs";
  unit: UnitName;
  kind: MapKind;
  lang: Language;
  mass: string;
};

/** Where the data comes from: the server (server_source.js) or the page itself (file_source.js). Rejects with a Problem. */
export type Source = {
  model(): Promise<Model>;
  trace(request: TraceRequest, signal?: AbortSignal): Promise<Trace>;
  map(trace: Trace, attention: string, head: number, kind: MapKind): Promise<HeadMap>;
  ablate(traceId: string, heads: string[], signal?: AbortSignal): Promise<Ablation>;
  importance(traceId: string): Promise<TextImportance>;
  contrast(traceId: string, position: number, instead: number | string): Promise<Contrast>;
  walk(traceId: string, attention: string, head: number, query: number): Promise<WalkRow>;
  survey(bundle: string): Promise<HeadSurvey>;
  examples(bundle: string, attention: string, head: number): Promise<HeadExamples>;
  effect(bundle: string, attention: string, head: number): Promise<HeadEffect>;
  timeline(bundle: string): Promise<Timeline>;
  /** Traces that can be shown without a server; empty when live. */
  stored(): Trace[];
  pictureUrl(traceId: string, attention: string, head: number, request: PictureRequest): string | null;
  pageUrl(traceId: string): string | null;
};

/** What a file of `manyheads lens --html` embeds in <script type="application/json" id="lens-data">. */
export type StoredMap = { scale: number; data: string };
export type LensFile = {
  model: Model;
  traces: Trace[];
  maps: Record<string, Record<string, { weights: StoredMap; value_norms: number[] }>>;
  ablations: Record<string, Record<string, Ablation>>;
  importance: Record<string, TextImportance>;
  walks: Record<string, Record<string, WalkRow>>;
  survey: Record<string, HeadSurvey> | HeadSurvey | null;
  examples: Record<string, HeadExamples>;
};
