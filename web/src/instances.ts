// Kernels of a step, of an op or of both, summed up by name.
import type { Args, Cell, Report } from "./api";
import { get } from "./api";
import { h, add } from "./dom";
import { drawShort, frames, pathEnd, shortKernels } from "./parts";
import { showTable, type TableOptions } from "./table";
import { chosen, type Context } from "./view";

/** Which kernels are meant; undefined = all, null = of none. */
export interface Which {
  step?: Cell;
  op?: Cell;
  direction?: Cell;
}

/** As arguments of /api/instances. */
function argsOf(c: Context, by: string, w: Which = {}): Args {
  const known: Record<string, string> = {}, unknown: string[] = [];
  for (const [name, v] of Object.entries(w) as [string, Cell | undefined][]) {
    if (v === null || v === "") unknown.push(name);
    else if (v !== undefined) known[name] = String(v);
  }
  return { ...chosen(c), by, ...known, unknown: unknown.length ? unknown.join(",") : undefined };
}

const TITLES: Record<string, string> = {
  step: "Step", op_id: "Op ID", op: "Op", op_type: "Type", direction: "Dir", tensor_cores: "TC", kernel_name: "Kernel", kernels: "Kernels", tc_kernels: "TC kernels", calls: "Calls",
  total_ns: "GPU time", tc_ns: "TC time", mean_ns: "Mean", min_ns: "Min", max_ns: "Max", first_ns: "First start",
};

async function showSums(box: HTMLElement, c: Context, args: Args, o: (t: Report) => TableOptions): Promise<Report> {
  const t = await get<Report>("/api/instances", args, c.signal, c.progress);
  for (const column of t.columns) column.title = TITLES[column.id] ?? column.title;
  showTable(box, t, o(t));
  return t;
}

/** Kernels have the short names that the report of kernels gives them. */
export async function showKernels(box: HTMLElement, c: Context, title: string, w: Which): Promise<void> {
  const short = await shortKernels(c);
  await showSums(box, c, argsOf(c, "kernel", w), () => ({ title, key: "kernels", hide: ["op_id"], draw: { kernel_name: drawShort(short) } }));
}

/** Steps with their numbers of kernels. `choose` gets a step; null = kernels outside all steps. A single one is chosen at once. */
export async function showIterations(box: HTMLElement, c: Context, at: string | undefined, choose: (step: Cell) => void): Promise<void> {
  const t = await showSums(box, c, argsOf(c, "step"), (of) => ({
    title: "Iterations",
    key: "iterations",
    pageSize: 10,
    draw: { step: (v) => (v === null ? "outside all steps" : String(v)) },
    choose: (cells) => choose(cells[0]),
    chosen: (cells) => stepText(cells[0]) === (at ?? (of.rows.length === 1 ? stepText(of.rows[0][0]) : undefined)),
  }));
  if (at === undefined && t.rows.length === 1) choose(t.rows[0][0]);
}

const OP = 0, DIRECTION = 3; // columns of ops

export async function showOps(box: HTMLElement, c: Context, title: string, w: Which, at: string | undefined, choose: (op: string) => void): Promise<void> {
  const key = (cells: Cell[]) => JSON.stringify([cells[OP], cells[DIRECTION]]);
  await showSums(box, c, argsOf(c, "op", w), () => ({
    title,
    key: "step-ops",
    pageSize: 10,
    hide: ["op_id"],
    draw: { op: (v) => (v === null ? "(no op)" : pathEnd(v)) },
    choose: (cells) => choose(key(cells)),
    chosen: (cells) => key(cells) === at,
  }));
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
