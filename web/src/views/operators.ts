// Which framework ops took the time; a row's call stacks.
import type { Cell, Column, Report, Table } from "../api";
import { columnOf, numberAt, textAt } from "../api";
import { showBars } from "../chart";
import { add, clear, h } from "../dom";
import { ownFrame } from "../editor";
import { time } from "../format";
import { byDepth, choice, detail, frameEnd, frames, modulesOf, part, showReport, stackLine, topChoice, topOf } from "../parts";
import { showTable } from "../table";
import { report, type Context, type View } from "../view";

/** Times that count once: an op's own. Those with what it calls count that again. */
const SELF: [id: string, title: string][] = [["device_self_ns", "Device self time"], ["host_self_ns", "Host self time"]];

async function charts(box: HTMLElement, c: Context, by: string): Promise<void> {
  const lines = by === "line", t = await report(c, "operators", lines ? { group_by: by } : {}), row = h("div", { class: "row" });
  add(box, row);
  for (const [id, title] of SELF)
    if (columnOf(t, id) >= 0)
      showBars(row, lines ? `${title} by line` : title, t.rows.map((r) => ({ name: textAt(t, r, lines ? "python_line" : "name"), value: numberAt(t, r, id) ?? 0 })), time, topOf(c));
}

const STACK_COLUMNS: Column[] = [
  { id: "where", title: "Line", type: "string", unit: "", help: "the innermost line of the user's own; below it, where stacks share one, the innermost frame of each" },
  { id: "module", title: "Module", type: "string", unit: "", help: "the nn.Modules around it, the outermost first" },
];

/** Stacks by the line that they share, with sums; each stack by itself is below it. The last column has the depth. */
function byLine(t: Report): { table: Table; stack: Cell[] } {
  const at = columnOf(t, "call_stack"), sums = t.columns.map((c, i) => ({ c, i })).filter((x) => /^(calls|(device|host)_(self|total)_(ns|pct))$/.test(x.c.id));
  const lines = new Map<string, Cell[][]>(), text = (r: Cell[]) => (typeof r[at] === "string" ? (r[at] as string) : "");
  for (const r of t.rows) {
    const line = text(r) ? ownFrame(text(r)) : "";
    lines.set(line, [...(lines.get(line) ?? []), r]);
  }
  const rows: Cell[][] = [], stack: Cell[] = [], main = sums.find((x) => /_self_ns$/.test(x.c.id))?.i ?? sums[0].i;
  const sum = (list: Cell[][], i: number): Cell => (list.every((r) => r[i] === null) ? null : list.reduce((n, r) => n + Number(r[i] ?? 0), 0));
  const put = (where: string, module: string, list: Cell[][], depth: number) => {
    rows.push([where, module, ...sums.map((x) => sum(list, x.i)), depth]);
    stack.push(list[0][at]);
  };
  const path = (r: Cell[]) => modulesOf(text(r)).join("/");
  for (const [line, list] of [...lines].sort(([, a], [, b]) => Number(sum(b, main)) - Number(sum(a, main)))) {
    const modules = new Set(list.map(path)), several = `${modules.size} modules`;
    put(line || "(no call stack)", modules.size > 1 ? several : path(list[0]), list, 0);
    if (list.length > 1) for (const r of list) put(frameEnd(text(r).split(/[;\n]/)[0]), path(r), [r], 1);
  }
  const depth: Column = { id: "depth", title: "Depth", type: "integer", unit: "", help: "0: a line, 1: one of its stacks" };
  return { table: { columns: [...STACK_COLUMNS, ...sums.map((x) => x.c), depth], rows, notes: t.notes }, stack };
}

/** The stacks of one op, the line with the most time first, and the frames of the one that is chosen. */
async function stacks(box: HTMLElement, c: Context, name: string, only?: string): Promise<void> {
  const t = await report(c, "operators", { group_by: "stack", filter: name });
  const nameAt = columnOf(t, "name"), at = columnOf(t, "call_stack");
  t.rows = t.rows.filter((r) => r[nameAt] === name && (only === undefined || r[at] === only));
  const list = h("div", { class: "stack" }), { table, stack } = byLine(t);
  const show = (frame: Cell) => {
    clear(list);
    add(list, h("h3", {}, "Call stack, innermost first"), typeof frame === "string" && frame ? frames(frame) : h("p", { class: "empty" }, "No call stack was recorded here: profile(with_stack=True) does."));
  };
  showTable(box, table, { title: `Call stacks of ${name}`, key: "stacks", hide: ["depth", ...(table.rows.some((r) => r[1]) ? [] : ["module"])], children: byDepth(table), tree: "where", draw: { where: (v) => frameEnd(String(v)) }, choose: (_cells, row) => show(stack[row]) });
  add(box, list);
  show(stack[0] ?? null);
}

/** Which ops ran at a line of Python. */
async function atLine(box: HTMLElement, c: Context, line: string): Promise<void> {
  const t = await report(c, "operators", { group_by: "stack", filter: line }), at = columnOf(t, "call_stack");
  t.rows = t.rows.filter((r) => typeof r[at] === "string" && ownFrame(r[at]) === line);
  showReport(box, "operators", t, { title: `Ops at ${line}`, key: "stacks", draw: { call_stack: stackLine } });
}

export const operators: View = {
  id: "operators",
  title: "Operators",
  group: "Kernels and ops",
  shows: { operators: {} },
  async show(page, c) {
    const by = c.args.by ?? "name";
    add(page, h("div", { class: "choices" }, topChoice(c), choice(c, "Group by", "by", [["name", "name"], ["shape", "name and input shape"], ["stack", "name and call stack"], ["line", "line of Python"]], ["row"])));
    await part(page, "Time by operator", (box) => charts(box, c, by));
    await part(page, "Operators", async (box) => {
      const t = await report(c, "operators", { group_by: by }), nameAt = columnOf(t, by === "line" ? "python_line" : "name"), stackAt = columnOf(t, "call_stack");
      const place = h("div", {});
      add(box, place);
      const open = await detail(box, c, "row", async (inner, value) => {
        const r = t.rows[Number(value)], name = String(r?.[nameAt] ?? "");
        if (!r) return;
        if (by === "line") await atLine(inner, c, name);
        else await stacks(inner, c, name, by === "stack" ? (r[stackAt] as string) : undefined);
      }, by === "line" ? "Choose a line to see its ops." : "Choose a row to see its call stacks.");
      showReport(place, "operators", t, {
        title: "Operators",
        steps: c,
        draw: { call_stack: stackLine },
        choose: (_cells, row) => open(String(row)),
        chosen: (_cells, row) => c.args.row === String(row),
      });
    });
  },
};
