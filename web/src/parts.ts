// What views share: parts that may be missing, tables of reports, drill-downs, figures, choices.
import type { Args, Cell, Report, Section, Table } from "./api";
import { ApiError, columnOf, get, textAt } from "./api";
import { add, clear, h, select } from "./dom";
import { ownFrame, sourceLine } from "./editor";
import * as place from "./place";
import { showTable, tablesStand, type TableOptions } from "./table";
import { chosen, perStep, report, type Context } from "./view";

/** A part of a page. What the server lacks for it is said in its place; the rest of the page stays. */
export async function part(page: HTMLElement, title: string, fill: (box: HTMLElement) => Promise<void>): Promise<void> {
  const box = h("div", { class: "part" });
  add(page, box);
  try {
    await fill(box);
  } catch (e) {
    if (!(e instanceof ApiError)) throw e;
    clear(box);
    add(box, h("section", {}, title ? h("h3", {}, title) : null, h("p", { class: e.status === 422 ? "empty" : "error" }, e.message)));
  }
}

/** A report or one of its sections as a table. `steps`: its sums can be seen per step, too; the rows must be all that the report has. */
export function showReport(parent: HTMLElement, name: string, table: Report | Section, o: TableOptions & { steps?: Context } = {}): void {
  const short = shortNames(table), { steps, ...rest } = o;
  showTable(parent, table, {
    key: "report" in table ? name : `${name}-${table.name}`,
    ...rest,
    ...(steps && "report" in table && { perStep: () => perStep(steps, table) }),
    ...(short && { draw: { name: short, ...o.draw }, hide: [...(o.hide ?? []), "short_name"] }),
  });
}

/** How a kernel's name is shown: short, where the table has that beside the full one, which search, tooltip and CSV keep. */
function shortNames(table: Table): ((value: Cell, cells: Cell[]) => Node | string) | undefined {
  const at = columnOf(table, "short_name");
  return at < 0 || columnOf(table, "name") < 0 ? undefined : (value, cells) => (cells[at] ? h("span", { "data-whole": String(value) }, String(cells[at])) : String(value ?? ""));
}

/** The short names of kernels, for tables that have full ones alone; search, tooltip and CSV keep these. */
export async function shortKernels(c: Context): Promise<(name: Cell) => string> {
  const k = await report(c, "kernels").catch(() => undefined), short = new Map(k?.rows.map((r) => [textAt(k, r, "name"), kernelName(k, r)]));
  return (name) => short.get(String(name)) ?? String(name ?? "");
}

/** How such a name is drawn. */
export const drawShort = (short: (name: Cell) => string) => (name: Cell) => h("span", { "data-whole": String(name ?? "") }, short(name));

/** The same of a row. */
export function kernelName(table: Table, row: Cell[]): string {
  return textAt(table, row, "short_name") || textAt(table, row, "name");
}

export function sectionOf(r: Report, name: string): Section | undefined {
  return r.sections.find((s) => s.name === name);
}

/** Another choice of this view: a step in the browser's history. What rests on the old one is dropped. */
export function choose(name: string, value: string, drop: string[] = []): void {
  const at = place.read();
  for (const d of drop) delete at.args[d];
  place.go({ view: at.view, args: { ...at.args, [name]: value } });
}

export function choice(c: Context, label: string, name: string, values: (string | [string, string])[], drop: string[] = []): HTMLElement {
  const first = values[0];
  return select(label, values, c.args[name] ?? (typeof first === "string" ? first : first[0]), (v) => choose(name, v, drop));
}

/** How many parts a chart of bars shows. */
export function topOf(c: Context): number {
  return c.args.top === "all" ? Infinity : Number(c.args.top) || 10;
}

export function topChoice(c: Context): HTMLElement {
  return select("Top", ["5", "10", "20", "50", "all"], c.args.top ?? "10", (v) => choose("top", v));
}

/** A place for what belongs to the row that is chosen. The choice stands in the address as `name`. Returns what to call with a new one. */
export async function detail(parent: HTMLElement, c: Context, name: string, fill: (box: HTMLElement, value: string) => Promise<void>, hint = ""): Promise<(value: string) => void> {
  const box = h("div", { class: "detail", "data-detail": name });
  add(parent, box);
  let turn = 0;
  const open = async (value: string): Promise<void> => {
    const mine = ++turn, inner = h("div", {});
    clear(box);
    add(box, inner);
    try {
      await part(inner, "", (b) => fill(b, value));
    } catch (e) {
      if (!c.signal.aborted) throw e;
    }
    if (mine !== turn) inner.remove();
  };
  if (c.args[name] !== undefined) await open(c.args[name]);
  else if (hint) add(box, h("p", { class: "note" }, hint));
  return (value) => {
    place.note({ [name]: value });
    void open(value).then(tablesStand).then(() => box.scrollIntoView({ block: box.offsetHeight > 0.8 * innerHeight ? "start" : "nearest" }));
  };
}

/** Columns that no row has anything in. */
export function emptyColumns(t: Table): string[] {
  return t.columns.filter((_c, i) => t.rows.every((r) => r[i] === null || r[i] === "")).map((x) => x.id);
}

/** A query's rows. */
export function sql(c: Context, query: string, args: Args = {}): Promise<Report> {
  return get<Report>("/api/sql", { ...chosen(c), query, ...args }, c.signal, c.progress);
}

/** A figure with its name; unknown ones are said to be so. */
export function figure(label: string, value: string | undefined, help = "", beside = ""): HTMLElement {
  return h("div", { class: "figure", title: help, "data-figure": label }, h("b", {}, value ?? "unknown"), h("span", {}, label), beside ? h("small", {}, beside) : null);
}

/** Rows of a pre-order with a column of depths -> the rows right below each. */
export function byDepth(table: Table, id = "depth"): (cells: Cell[], row: number) => number[] {
  const at = columnOf(table, id), below: number[][] = table.rows.map(() => []), path: number[] = [];
  table.rows.forEach((cells, i) => {
    const depth = Number(cells[at]);
    path.length = depth;
    if (depth > 0 && path[depth - 1] !== undefined) below[path[depth - 1]].push(i);
    path[depth] = i;
  });
  return (_cells, row) => below[row];
}

/** Python frames, innermost first. The reader's editor opens their lines. */
export function frames(stack: string): HTMLElement {
  return h("ol", { class: "frames" }, ...stack.split(/[;\n]/).map((text) => h("li", {}, sourceLine(text))));
}

/** The end of an op's path, which tells more than its beginning. */
export function pathEnd(path: Cell): string {
  const parts = String(path ?? "").split("/");
  return parts.length > 3 ? "…/" + parts.slice(-2).join("/") : parts.join("/");
}

/** The modules of a stack, the outermost first. */
export function modulesOf(stack: string): string[] {
  return stack.split(/[;\n]/).flatMap((f) => /^nn\.Module: (.*)$/.exec(f)?.[1] ?? []).reverse();
}

/** A stack in a line: the innermost frame of the user's own, and the innermost module, else the innermost frame. */
export function stackLine(stack: Cell): string {
  if (typeof stack !== "string" || !stack) return "(none)";
  const inner = stack.split(/[;\n]/)[0], own = ownFrame(stack), module = modulesOf(stack).pop();
  return module ? `${own} … ${module}` : inner === own ? own : `${own} … ${frameEnd(inner)}`;
}

/** A frame without the folders of its file. */
export function frameEnd(frame: string): string {
  return frame.replace(/^.*[\\/](?=[^\\/]*\(\d+\): )/, "");
}
