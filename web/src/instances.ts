// Kernels of a step, of an op or of both, summed up by name.
import type { Cell } from "./api";
import { columnOf } from "./api";
import { h, add } from "./dom";
import { frames, pathEnd, quoted, showQuery, sql } from "./parts";
import type { Context } from "./view";

/** What of kernels_by_instance is meant; undefined = all. */
export interface Which {
  step?: Cell;
  op?: Cell;
  direction?: Cell;
}

function where(w: Which): string {
  const parts = [];
  if (w.step !== undefined) parts.push(`step IS ${quoted(w.step)}`);
  if (w.op !== undefined) parts.push(`op_id IS ${quoted(w.op)}`);
  if (w.direction !== undefined) parts.push(`direction IS ${quoted(w.direction)}`);
  return parts.length ? "WHERE " + parts.join(" AND ") : "";
}

const SUMS = "count(*) AS calls, sum(dur_ns) AS total_ns, CAST(round(avg(dur_ns)) AS INTEGER) AS mean_ns, min(dur_ns) AS min_ns, max(dur_ns) AS max_ns";

const TITLES: Record<string, string> = {
  step: "Step", op_id: "Op ID", op: "Op", op_type: "Type", direction: "Dir", tensor_cores: "TC", kernel_name: "Kernel", kernels: "Kernels", tc_kernels: "TC kernels", calls: "Calls",
  total_ns: "GPU time", tc_ns: "TC time", mean_ns: "Mean", min_ns: "Min", max_ns: "Max", first_ns: "First start",
};

async function ask(c: Context, query: string) {
  const t = await sql(c, query);
  for (const column of t.columns) column.title = TITLES[column.id] ?? column.title;
  return t;
}

export async function showKernels(box: HTMLElement, c: Context, title: string, w: Which): Promise<void> {
  const op = w.op === undefined ? "op_id, op_type, direction, " : "";
  const query = `SELECT kernel_name, ${op}tensor_cores, ${SUMS} FROM kernels_by_instance ${where(w)} GROUP BY kernel_name, ${op}tensor_cores ORDER BY total_ns DESC`;
  showQuery(box, c, query, await ask(c, query), { title, key: "kernels" });
}

/** Steps with their numbers of kernels. `choose` gets a step; null = kernels outside all steps. */
export async function showIterations(box: HTMLElement, c: Context, chosen: string | undefined, choose: (step: Cell) => void): Promise<void> {
  const query = `SELECT step, count(*) AS kernels, sum(tensor_cores = 'yes') AS tc_kernels, sum(dur_ns) AS total_ns, sum(CASE tensor_cores WHEN 'yes' THEN dur_ns ELSE 0 END) AS tc_ns
    FROM kernels_by_instance GROUP BY step ORDER BY step IS NULL, step`;
  const t = await ask(c, query);
  showQuery(box, c, query, t, {
    title: "Iterations",
    key: "iterations",
    pageSize: 10,
    draw: { step: (v) => (v === null ? "outside all steps" : String(v)) },
    choose: (cells) => choose(cells[0]),
    chosen: (cells) => stepText(cells[0]) === chosen,
  });
}

export async function showOps(box: HTMLElement, c: Context, title: string, w: Which, chosen: string | undefined, choose: (op: string) => void): Promise<void> {
  const query = `SELECT op_id, op, op_type, direction, count(*) AS kernels, sum(tensor_cores = 'yes') AS tc_kernels, sum(dur_ns) AS total_ns
    FROM kernels_by_instance ${where(w)} GROUP BY op_id, op, op_type, direction ORDER BY total_ns DESC`;
  const t = await ask(c, query), direction = columnOf(t, "direction");
  showQuery(box, c, query, t, {
    title,
    key: "step-ops",
    pageSize: 10,
    draw: { op_id: (v) => (v === null ? "(no op)" : String(v)), op: pathEnd },
    choose: (cells) => choose(JSON.stringify([cells[0], cells[direction]])),
    chosen: (cells) => JSON.stringify([cells[0], cells[direction]]) === chosen,
  });
}

/** An op of showOps, or of the report ops. */
export function opOf(value: string): { op: Cell; direction: Cell } | undefined {
  try {
    const [op, direction] = JSON.parse(value) as Cell[];
    return { op, direction };
  } catch {
    return undefined;
  }
}

export function showStack(box: HTMLElement, stack: Cell): void {
  if (typeof stack === "string" && stack) add(box, h("details", {}, h("summary", {}, "Call stack, innermost first"), frames(stack)));
}

/** As it stands in the address; "none" = outside all steps. */
export function stepOf(value: string): Cell {
  return value === "none" ? null : Number(value);
}

export const stepText = (step: Cell) => (step === null ? "none" : String(step));
