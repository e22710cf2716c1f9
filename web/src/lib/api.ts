/** The server's routes, with the types of their answers. */

export interface ModelFacts {
  name: string;
  num_layers: number;
  vector_dim: number;
  has_lm_head: boolean;
}
export interface IndexFacts {
  name: string;
  num_tokens: number;
  num_words: number;
  num_sentences: number;
  layers: number[];
  sources: string[];
  tags: string[];
  indexed_words: string[];
  model: string;
  served_model: string | null;
  map_methods: string[];
}
export interface TaskFacts {
  name: string;
  kind: string;
}
export interface Info {
  version: string;
  models: ModelFacts[];
  index: IndexFacts;
  tasks: TaskFacts[];
}
export interface Use {
  number: number;
  word: string;
  position: number;
  tokens: string[];
  source: string;
  line: number;
  tag: string | null;
}
export interface UseList {
  word: string;
  total: number;
  is_sample: boolean;
  spellings: Record<string, number>;
  uses: Use[];
}
export type Point = [number, number];
export interface UseMap {
  layer: number;
  numbers: number[];
  method: string;
  points: Point[];
  explained: [number, number] | null;
}
export interface Group {
  num_uses: number;
  words: { word: string; num_inside: number; num_outside: number }[];
  typical: number;
}
export interface Groups {
  layer: number;
  numbers: number[];
  labels: number[];
  groups: Group[];
  silhouette: number | null;
}
export interface Place {
  tokens: string[];
  position: number;
  number: number | null;
}
export interface NearUse {
  similarity: number;
  use: Use;
}
export interface Similarity {
  model: string;
  tokens: string[];
  cosines: number[][][];
  products: number[][][][];
}
export interface Scores {
  tokens: string[];
  is_known: boolean[];
  forward_lm: number[];
  backward_lm: number[];
}
export interface Filling {
  word: string;
  forward_lm: number;
  backward_lm: number;
  probability: number;
}
export type TypedUse = { sentence: string; token: number };
export type AnyUse = number | TypedUse;

/** Why a request was not answered, in a sentence for the reader. */
export class RequestProblem extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

const KEY = "elmore-api-key";

export function setKey(key: string): void {
  sessionStorage.setItem(KEY, key);
}

const MAX_ATTEMPTS = 5;

/** Send a request; if the server is busy, wait as long as it asks to and try again. */
async function send(path: string, init: RequestInit, attempt = 1): Promise<unknown> {
  const headers = new Headers(init.headers);
  const key = sessionStorage.getItem(KEY);
  if (key) headers.set("authorization", `Bearer ${key}`);
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new RequestProblem("The server does not answer. Is it still running?", 0);
  }
  if (answer.status === 429 && attempt < MAX_ATTEMPTS) {
    const seconds = Number(answer.headers.get("retry-after")) || 1;
    await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(seconds, 10)));
    init.signal?.throwIfAborted();
    return send(path, init, attempt + 1);
  }
  const content = await answer.json().catch(() => null);
  if (!answer.ok) throw new RequestProblem(explain(content, answer.status), answer.status);
  return content;
}

function explain(content: unknown, status: number): string {
  const error = (content as { error?: unknown } | null)?.error;
  const text = typeof error === "string" ? error : `The server answered with status ${status}`;
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

type Params = Record<string, string | number | boolean | undefined>;

export function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined) query.set(name, String(value));
  }
  const text = query.toString();
  return send(text ? `${path}?${text}` : path, { signal }) as Promise<T>;
}

export function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers = { "content-type": "application/json" };
  return send(path, { method: "POST", body: JSON.stringify(body), headers, signal }) as Promise<T>;
}
