// The answers that pages are made of. Every request of the pages goes through here.
import { HttpSource } from "./source_http";
import { isReport, StaticSource } from "./source_static";

export { columnOf, numberAt, textAt } from "./cells";

/** bigint: an integer that a number cannot hold. */
export type Cell = string | number | bigint | boolean | null;

export interface Column {
  id: string;
  title: string;
  type: "string" | "integer" | "number" | "boolean";
  unit: "" | "count" | "ns" | "time_ns" | "us" | "bytes" | "percent" | "ratio" | "flops";
  help: string;
}

export interface Table {
  columns: Column[];
  rows: Cell[][];
  notes: string[];
}

export interface Section extends Table {
  name: string;
  title: string;
}

export interface Report extends Table {
  report: string;
  input: string;
  sections: Section[];
}

export type Lack = "memory" | "modules";

/** What was odd about an input; `message` is that of the first. */
export interface Problem {
  kind: string;
  level: "note" | "repaired" | "lost";
  count: number;
  message: string;
}

export interface Input {
  input: string;
  run: string;
  worker: string;
  span: string;
  path: string;
  /** Another number for other content of the file. */
  content: number;
  state: "found" | "queued" | "loading" | "ready" | "failed" | "gone";
  /** The file is no longer there; what is in memory can still be shown. */
  absent?: boolean;
  done_bytes?: number;
  total_bytes?: number;
  error?: string;
  format?: string;
  events?: number;
  gpu_ops?: number;
  spans?: number;
  problems?: number;
  /** The same as text, while it is ready. */
  met?: Problem[];
  /** What one that is ready holds nothing of. */
  lacks?: Lack[];
  /** It is an .opscope file, to which aggregations can be added. */
  aggregates?: boolean;
  aggregations?: { id: number; name: string; key_op: string; steps: string }[];
}

export interface State {
  opscope: string;
  version: number;
  read_only: boolean;
  /** What opens lines of source, where the reader has chosen nothing. */
  editor?: string;
  /** The only ones that an exported report is about. */
  steps?: string;
  inputs: Input[];
}

export interface ReportInfo {
  name: string;
  title: string;
  help: string;
  group_by: string[];
  compat: string[];
  device: boolean;
  /** It has columns that are sums, which can be told per step. */
  sums: boolean;
  /** Their ids. */
  sum_columns: string[];
  /** Groupings whose rows are single events. */
  per_event: string[];
}

export type Args = Record<string, string | number | undefined>;

/** What the server said instead of an answer. */
export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** Called while an input is being read, with 0..1 or undefined where that is not known. */
export type Progress = (done: number | undefined) => void;

export function address(path: string, args: Args): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(args)) if (value !== undefined && value !== "") query.set(name, String(value));
  const text = query.toString();
  return path.replace(/^\//, "") + (text ? "?" + text : "");
}

/** Where answers come from: a server, or the exported report that the page is. */
export interface Source {
  /** Asks until there is an answer. Rejects with ApiError, or with the AbortError of `signal`. */
  get<T>(path: string, args: Args, signal?: AbortSignal, progress?: Progress): Promise<T>;
  /** What it answers as a file to be saved. */
  file(path: string, args: Args, signal?: AbortSignal): Promise<Blob>;
  /** Changes something. */
  post<T>(path: string, args: Args, body: unknown): Promise<T>;
  /** Why nothing new can be computed; undefined where a server can. */
  readonly off?: string;
  /** What of an input the source lacks, as sentences. */
  lacks(input: string): Promise<string[]>;
  /** What the timeline lacks. */
  timelineLacks(input: string): Promise<string[]>;
}

export const source: Source = isReport() ? new StaticSource() : new HttpSource();

export function get<T>(path: string, args: Args = {}, signal?: AbortSignal, progress?: Progress): Promise<T> {
  return source.get<T>(path, args, signal, progress);
}

export function file(path: string, args: Args, signal?: AbortSignal): Promise<Blob> {
  return source.file(path, args, signal);
}

export function post<T>(path: string, args: Args, body: unknown): Promise<T> {
  return source.post<T>(path, args, body);
}
