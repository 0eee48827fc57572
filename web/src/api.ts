// The server's answers as values. Every request of the pages goes through here.

export type Cell = string | number | boolean | null;

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

export interface Input {
  input: string;
  run: string;
  worker: string;
  span: string;
  path: string;
  state: "found" | "queued" | "loading" | "ready" | "failed" | "gone";
  done_bytes?: number;
  total_bytes?: number;
  error?: string;
  format?: string;
  events?: number;
  gpu_ops?: number;
  spans?: number;
  problems?: number;
  /** It is an .opscope file, to which aggregations can be added. */
  aggregates?: boolean;
  aggregations?: { id: number; name: string; key_op: string; steps: string }[];
}

export interface State {
  opscope: string;
  version: number;
  read_only: boolean;
  inputs: Input[];
}

export interface ReportInfo {
  name: string;
  title: string;
  help: string;
  group_by: string[];
  compat: string[];
  device: boolean;
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

/** Pages of an exported report hold their answers; see export.ts on how they are kept. */
declare global {
  interface Window {
    opscopeAnswers?: Record<string, unknown>;
  }
}

export function address(path: string, args: Args): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(args)) if (value !== undefined && value !== "") query.set(name, String(value));
  const text = query.toString();
  return path.replace(/^\//, "") + (text ? "?" + text : "");
}

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function reasonOf(answer: Response): Promise<string> {
  try {
    return ((await answer.json()) as { error: string }).error;
  } catch {
    return `the server answered ${answer.status}`;
  }
}

/** Asks until the input is read. Rejects with ApiError, or with the AbortError of `signal`. */
export async function get<T>(path: string, args: Args = {}, signal?: AbortSignal, progress?: Progress): Promise<T> {
  const held = window.opscopeAnswers;
  if (held) {
    const key = address(path, args);
    if (!(key in held)) throw new ApiError(404, "This exported report does not hold it; `opscope serve` has it.");
    return held[key] as T;
  }
  const url = address(path, "input" in args ? { ...args, wait: 0 } : args);
  for (;;) {
    const answer = await fetch(url, { signal });
    if (answer.status === 202) {
      const at = (await answer.json()) as { done_bytes: number; total_bytes: number };
      progress?.(at.total_bytes > 0 ? at.done_bytes / at.total_bytes : undefined);
      await sleep(150);
      continue;
    }
    if (answer.status === 503) {
      await sleep(1000);
      continue;
    }
    if (!answer.ok) throw new ApiError(answer.status, await reasonOf(answer));
    return (await answer.json()) as T;
  }
}

/** Changes something; the header tells the server that its own page asks. */
export async function post<T>(path: string, args: Args, body: unknown): Promise<T> {
  const answer = await fetch(address(path, args), {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Opscope": "1" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new ApiError(answer.status, await reasonOf(answer));
  return (await answer.json()) as T;
}

/** Position of a column by id; -1 = the table has none. */
export function columnOf(table: Table, id: string): number {
  return table.columns.findIndex((c) => c.id === id);
}

/** The cell as a number; undefined when unknown or there is no such column. */
export function numberAt(table: Table, row: Cell[], id: string): number | undefined {
  const value = row[columnOf(table, id)];
  return typeof value === "number" ? value : undefined;
}

export function textAt(table: Table, row: Cell[], id: string): string {
  const value = row[columnOf(table, id)];
  return typeof value === "string" ? value : "";
}
