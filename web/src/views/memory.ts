// Memory over time, and who allocated it; a range of the curve chooses what the tables are about.
import type { Cell, Report, Section, Table } from "../api";
import { ApiError, columnOf, numberAt, textAt } from "../api";
import { COLORS, showChart, showStacked } from "../chart";
import { BEFORE, categoryColor, curveOption, endOf, wordOf } from "../charts/curve";
import { add, button, h, select } from "../dom";
import { bytes, time } from "../format";
import { choice, choose, figure, part, sectionOf, showReport } from "../parts";
import * as place from "../place";
import { showTable } from "../table";
import { report, type Context, type View } from "../view";

const drawCategory = { category: (v: Cell) => h("span", { "data-whole": String(v ?? "") }, wordOf(String(v ?? ""))) };

type Range = [from: number, to: number];

function rangeOf(c: Context): Range | undefined {
  const [from, to] = [Number(c.args.from), Number(c.args.to)];
  return c.args.from && c.args.to && from < to ? [from, to] : undefined;
}

function setRange(r: Range | undefined): void {
  const at = place.read();
  delete at.args.from;
  delete at.args.to;
  place.go({ view: at.view, args: r ? { ...at.args, from: String(Math.round(r[0])), to: String(Math.round(r[1])) } : at.args });
}

/** What a section has in bytes, over its times; a range of them can be chosen. */
function curve(box: HTMLElement, title: string, s: Section, range: Range | undefined, end: number, stacked = false): void {
  const chart = showChart(box, title, {
    ...(curveOption(s, end, stacked) as object),
    brush: { xAxisIndex: 0, brushType: "lineX", brushMode: "single", removeOnClick: true, outOfBrush: { colorAlpha: 1 }, throttleType: "debounce", throttleDelay: 200, brushStyle: { color: "rgba(86, 180, 233, 0.2)", borderColor: COLORS[0] } },
    toolbox: { show: false },
  } as any, 230);
  chart.dispatchAction({ type: "takeGlobalCursor", key: "brush", brushOption: { brushType: "lineX", brushMode: "single" } });
  if (range) chart.dispatchAction({ type: "brush", areas: [{ brushType: "lineX", xAxisIndex: 0, coordRange: range }] });
  chart.on("brushEnd", (e: any) => setRange(e.areas[0]?.coordRange));
}

/** The same by the keyboard. */
function rangeInputs(range: Range | undefined): HTMLElement {
  const field = (label: string, v: number | undefined) => h("input", { type: "number", step: "any", size: 10, "aria-label": label, value: v === undefined ? "" : v / 1e6 });
  const from = field("From, ms", range?.[0]), to = field("To, ms", range?.[1]);
  const set = () => from.value && to.value && setRange([Number(from.value) * 1e6, Number(to.value) * 1e6]);
  from.addEventListener("change", set);
  to.addEventListener("change", set);
  return h("span", { class: "choices" }, h("label", { class: "choice" }, h("span", {}, "From"), from, "ms"), h("label", { class: "choice" }, h("span", {}, "to"), to, "ms"),
    range ? button("Whole time", () => setRange(undefined)) : h("span", { class: "note" }, "or draw a range over the curve"));
}

/** Allocations and frees in the range, by the operator that allocated. */
function inRange(blocks: Section, [from, to]: Range): Table {
  const sums = new Map<string, number[]>(), within = (v: number | undefined) => v !== undefined && v >= from && v <= to;
  for (const r of blocks.rows) {
    const size = numberAt(blocks, r, "size_bytes") ?? 0, made = within(numberAt(blocks, r, "allocation_time_ns")), freed = within(numberAt(blocks, r, "release_time_ns"));
    if (!made && !freed) continue;
    const name = textAt(blocks, r, "operator") || "(outside any operator)", s = sums.get(name) ?? [0, 0, 0, 0];
    if (made) (s[0]++, (s[1] += size));
    if (freed) (s[2]++, (s[3] += size));
    sums.set(name, s);
  }
  const rows: Cell[][] = [...sums].map(([name, s]) => [name, s[0], s[1], s[2], s[3], s[1] - s[3]]);
  rows.sort((a, b) => Number(b[2]) - Number(a[2]));
  const column = (id: string, title: string, unit: "count" | "bytes", help: string) => ({ id, title, type: "integer" as const, unit, help });
  return {
    columns: [
      { id: "operator", title: "Operator", type: "string", unit: "", help: "the innermost op around the allocation" },
      column("allocations", "Allocations", "count", "blocks allocated in the range"), column("allocation_bytes", "Allocated", "bytes", "their size"),
      column("frees", "Frees", "count", "of its blocks, those freed in the range"), column("freed_bytes", "Freed", "bytes", "their size"),
      column("net_bytes", "Net", "bytes", "allocated less freed"),
    ],
    rows,
    notes: [`Blocks allocated or freed from ${time(from)} to ${time(to)}.`],
  };
}

/** The categories where all together are highest in the range, from the points of the curve. */
function categoriesInRange(t: Table, s: Section, [from, to]: Range): Table {
  const at = columnOf(s, "time_ns"), before = s.rows.filter((r) => Number(r[at]) <= from).slice(-1), rows = [...before, ...s.rows.filter((r) => Number(r[at]) > from && Number(r[at]) <= to)];
  const all = s.columns.map((c, i) => ({ name: c.title, i })).filter((x) => x.i !== at), sum = (r: Cell[]) => all.reduce((n, x) => n + Number(r[x.i] ?? 0), 0);
  const peak = rows.reduce((best: Cell[] | undefined, r) => (!best || sum(r) > sum(best) ? r : best), undefined);
  const columns = ["category", "at_peak_bytes", "at_peak_pct", "peak_bytes", "end_bytes"].map((id) => t.columns[columnOf(t, id)]);
  const line = (x: { name: string; i: number }): Cell[] => [x.name, peak![x.i], sum(peak!) ? (100 * Number(peak![x.i])) / sum(peak!) : null, Math.max(...rows.map((r) => Number(r[x.i]))), rows[rows.length - 1][x.i]];
  return { columns, rows: peak ? all.map(line).filter((r) => r[3]) : [], notes: [`From ${time(from)} to ${time(to)}; the peak is there at ${time(Number(peak?.[at] ?? from))}.`, ...s.notes] };
}

async function categories(box: HTMLElement, c: Context, range: Range | undefined, end: number): Promise<void> {
  const t = await report(c, "memory-categories", { device: c.args.device }), line = sectionOf(t, "curve"), unknown = sectionOf(t, "unknown");
  // The curve does not tell what was held before from what is unknown.
  if (line && t.rows.some((r) => BEFORE.test(String(r[0])))) for (const x of line.columns) if (x.title === "Unknown") x.title = "Unknown, or held before the recording";
  if (line) curve(box, "Memory by what it is used for", line, range, Math.max(end, endOf(line)), true);
  if (range && line) showTable(box, categoriesInRange(t, line, range), { title: "By category, in the range", key: "memory-categories", sort: "-at_peak_bytes", draw: drawCategory });
  else showReport(box, "memory-categories", t, { title: "By category", sort: "-at_peak_bytes", draw: drawCategory });
  if (unknown?.rows.length && !range) showReport(box, "memory-categories", unknown, { title: "Unknown, because" });
}

function tables(page: HTMLElement, t: Report, blocks: Section | undefined, range: Range | undefined): void {
  if (range && blocks) showTable(page, inRange(blocks, range), { title: "By operator, in the range", key: "memory" });
  else if (t.rows.length) showReport(page, "memory", t, { title: "By operator" });
  if (!blocks) return;
  const [made, freed] = ["allocation_time_ns", "release_time_ns"].map((id) => columnOf(blocks, id));
  const seen = (v: Cell) => typeof v === "number" && !!range && v >= range[0] && v <= range[1];
  const rows = range ? blocks.rows.filter((r) => seen(r[made]) || seen(r[freed])) : blocks.rows;
  showReport(page, "memory", { ...blocks, rows }, { title: range ? "Blocks allocated or freed in the range" : "Blocks", sort: "-size_bytes" });
}

/** What is not freed, by what allocated it. */
async function leaks(box: HTMLElement, c: Context): Promise<void> {
  const t = await report(c, "leaks", { device: c.args.device, group_by: c.args.owner });
  add(box, h("div", { class: "choices" }, choice(c, "Not freed, by", "owner", [["owner", "op, line and module"], ["op", "op"], ["line", "line of Python"], ["module", "module"]])));
  showReport(box, "leaks", t, { title: "Not freed at the end", hide: ["allocations", "first_ns", "last_ns"] });
}

/** Who held the memory when most was allocated. */
function heldAtPeak(page: HTMLElement, t: Report, device: string): void {
  const held = sectionOf(t, "held"), rows = held?.rows.filter((r) => textAt(held, r, "device") === device) ?? [];
  if (held && rows.length) showStacked(page, "Held at the peak", rows.map((r) => ({ name: wordOf(textAt(held, r, "category")), value: numberAt(held, r, "bytes") ?? 0, color: categoryColor(textAt(held, r, "category")) })), bytes);
}

/** How the allocator holds its memory: a memory snapshot says that, a trace does not. */
async function fragmentation(page: HTMLElement, c: Context): Promise<void> {
  try {
    const t = await report(c, "fragmentation");
    showReport(page, "fragmentation", t, { title: "Reserved memory, and in what pieces" });
    for (const s of t.sections) showReport(page, "fragmentation", s, { title: s.title });
  } catch (e) {
    if (!(e instanceof ApiError) || e.status !== 422) throw e;
  }
}

export const memory: View = {
  id: "memory",
  title: "Memory",
  group: "Run",
  needs: "memory",
  shows: { memory: {}, leaks: {}, fragmentation: {} },
  async show(page, c) {
    const t = await report(c, "memory", { device: c.args.device }), range = rangeOf(c);
    const peaks = sectionOf(t, "peaks"), line = sectionOf(t, "curve"), blocks = sectionOf(t, "events");
    const shown = /^(CPU|GPU(\d+)):/.exec(t.notes[0] ?? ""), device = c.args.device ?? (shown ? shown[2] ?? "cpu" : "");
    const end = line ? endOf(line) : 0;
    if (peaks) {
      const names = peaks.rows.map((r) => textAt(peaks, r, "device"));
      add(page, h("div", { class: "choices" }, select("Device", names.map((n): [string, string] => [n === "CPU" ? "cpu" : n.replace("GPU", ""), n]), device, (v) => choose("device", v, ["from", "to"])), line?.rows.length ? rangeInputs(range) : null));
      const r = peaks.rows.find((x) => textAt(peaks, x, "device") === (device === "cpu" ? "CPU" : "GPU" + device));
      const value = (id: string) => (r && numberAt(peaks, r, id) !== undefined ? bytes(numberAt(peaks, r, id)!) : undefined);
      const least = value("peak_at_least_bytes"), when = r && numberAt(peaks, r, "peak_allocated_time_ns"), reserved = r && numberAt(peaks, r, "peak_reserved_bytes");
      if (line?.rows.length) {
        add(page, h("div", { class: "figures" }, figure("Peak allocated", value("peak_allocated_bytes") ?? (least ? `≥ ${least}` : undefined), peaks.columns[columnOf(peaks, "peak_at_least_bytes")]?.help)));
        const says = [when !== undefined ? `The peak is ${time(when)} after the start.` : "", reserved ? `The allocator reserved at most ${bytes(reserved)}.` : ""].filter((x) => x).join(" ");
        if (says) add(page, h("p", { class: "note" }, says));
        if (!range) heldAtPeak(page, t, r ? textAt(peaks, r, "device") : "");
      }
    }
    if (line?.rows.length) curve(page, "Memory over time", line, range, end);
    else for (const n of line?.notes ?? []) add(page, h("p", { class: "empty" }, n));
    await part(page, "Memory by what it is used for", (box) => categories(box, c, range, end));
    const uses = page.lastElementChild;
    tables(page, t, blocks, range);
    for (const s of t.sections) if (s !== blocks && s !== line) showReport(page, "memory", s, { title: s.title, draw: drawCategory });
    await part(page, "Not freed at the end", (box) => leaks(box, c));
    await fragmentation(page, c);
    // What has nothing to show stands behind what has.
    if (uses && !uses.querySelector("[data-table]")) page.append(uses);
    if (!range && !t.rows.length) showReport(page, "memory", t, { title: "By operator" });
  },
};
