// Answers of /api/instances about a step or an op, from that about all: kernels of each op in each step.
import { columnOf, type Args, type Cell, type Report } from "../api";

const KEYS: Record<string, string[]> = { step: ["step"], op: ["op_id", "op", "op_type", "direction"], kernel: ["kernel_name", "op_id", "op_type", "direction", "tensor_cores"] };

type Which = Pick<Args, "step" | "op" | "direction" | "unknown">;

interface Sum {
  calls: number;
  tc: number;
  total: number;
  tcTotal: number;
  min: number;
  max: number;
}

/** As SQLite orders: unknown ones first, numbers, then texts. */
function compare(a: Cell, b: Cell): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return a < b ? -1 : a > b ? 1 : 0;
}

function keeps(all: Report, w: Which): (r: Cell[]) => boolean {
  const unknown = String(w.unknown ?? "").split(","), tests: [at: number, value: Cell][] = [];
  for (const [name, id] of [["step", "step"], ["op", "op_id"], ["direction", "direction"]] as const) {
    if (unknown.includes(name)) tests.push([columnOf(all, id), null]);
    else if (w[name] !== undefined) tests.push([columnOf(all, id), w[name] as Cell]);
  }
  return (r) => tests.every(([at, value]) => (value === null ? r[at] === null : String(r[at]) === String(value)));
}

function add(s: Sum, all: Report, r: Cell[]): void {
  const at = (id: string) => Number(r[columnOf(all, id)]), uses = r[columnOf(all, "tensor_cores")] === "yes";
  s.calls += at("calls");
  s.total += at("total_ns");
  if (uses) (s.tc += at("calls")), (s.tcTotal += at("total_ns"));
  s.min = Math.min(s.min, at("min_ns"));
  s.max = Math.max(s.max, at("max_ns"));
}

/** The sums that a table may have, by column. */
const CELLS: Record<string, (s: Sum) => number> = {
  kernels: (s) => s.calls, calls: (s) => s.calls, tc_kernels: (s) => s.tc, total_ns: (s) => s.total, tc_ns: (s) => s.tcTotal,
  mean_ns: (s) => Math.round(s.total / s.calls), min_ns: (s) => s.min, max_ns: (s) => s.max,
};

/** `like`: the same about everything, which has the columns. */
export function instances(all: Report, like: Report, by: string, w: Which): Report {
  const ofOp = w.op !== undefined || String(w.unknown ?? "").split(",").includes("op");
  const keys = by === "kernel" && ofOp ? ["kernel_name", "tensor_cores"] : KEYS[by], places = keys.map((k) => columnOf(all, k)), keep = keeps(all, w);
  const groups = new Map<string, { key: Cell[]; sum: Sum }>();
  for (const r of all.rows) {
    if (!keep(r)) continue;
    const key = places.map((i) => r[i]), text = JSON.stringify(key);
    let g = groups.get(text);
    if (!g) groups.set(text, (g = { key, sum: { calls: 0, tc: 0, total: 0, tcTotal: 0, min: Infinity, max: 0 } }));
    add(g.sum, all, r);
  }
  const columns = like.columns.filter((c) => keys.includes(c.id) || c.id in CELLS);
  const sorted = [...groups.values()].sort((a, b) => (by === "step" ? Number(a.key[0] === null) - Number(b.key[0] === null) : b.sum.total - a.sum.total) || a.key.reduce<number>((c, v, i) => c || compare(v, b.key[i]), 0));
  return { ...like, columns, rows: sorted.map((g) => columns.map((c) => (c.id in CELLS ? CELLS[c.id](g.sum) : g.key[keys.indexOf(c.id)]))), sections: [] };
}
