// Memory over time, and who allocated it; a range of the curve chooses what the tables are about.
import type { Cell, Report, Section, Table } from "../api";
import { columnOf, numberAt, textAt } from "../api";
import { COLORS, showChart } from "../chart";
import { add, button, h, select } from "../dom";
import { axis, bytes, time } from "../format";
import { choose, figure, sectionOf, showReport } from "../parts";
import * as place from "../place";
import { showTable } from "../table";
import { report, type Context, type View } from "../view";

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

function curve(box: HTMLElement, s: Section, range: Range | undefined): void {
  const at = columnOf(s, "time_ns"), lines = s.columns.map((column, i) => ({ column, i })).filter((x) => x.column.unit === "bytes");
  const top = s.rows.reduce((most, r) => Math.max(most, ...lines.map((x) => Number(r[x.i] ?? 0))), 0), tick = 2 ** Math.max(0, Math.ceil(Math.log2(top / 8)));
  const chart = showChart(box, "Memory over time", {
    tooltip: { trigger: "axis", confine: true, valueFormatter: (v: any) => bytes(Number(v)) },
    legend: { top: 0 },
    grid: { left: 74, right: 16, top: 34, bottom: 40 },
    xAxis: { type: "value", min: "dataMin", max: "dataMax", name: "time since the start", nameLocation: "middle", nameGap: 24, axisLabel: { formatter: axis("ns"), hideOverlap: true } },
    yAxis: { type: "value", min: 0, max: Math.ceil(top / tick) * tick || undefined, interval: tick, axisLabel: { formatter: axis("bytes") } },
    brush: { xAxisIndex: 0, brushType: "lineX", brushMode: "single", removeOnClick: true, outOfBrush: { colorAlpha: 1 }, throttleType: "debounce", throttleDelay: 200 },
    toolbox: { show: false },
    series: lines.map((x, k) => ({
      type: "line",
      step: "end",
      name: x.column.title,
      showSymbol: false,
      lineStyle: { width: 1.5, color: COLORS[k] },
      areaStyle: k === 0 ? { opacity: 0.15 } : undefined,
      data: s.rows.map((r) => [r[at], r[x.i]]),
    })),
  } as any, 300);
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

function tables(page: HTMLElement, t: Report, blocks: Section | undefined, range: Range | undefined): void {
  if (range && blocks) showTable(page, inRange(blocks, range), { title: "By operator, in the range", key: "memory" });
  else showReport(page, "memory", t, { title: "By operator" });
  if (!blocks) return;
  const [made, freed] = ["allocation_time_ns", "release_time_ns"].map((id) => columnOf(blocks, id));
  const seen = (v: Cell) => typeof v === "number" && !!range && v >= range[0] && v <= range[1];
  const rows = range ? blocks.rows.filter((r) => seen(r[made]) || seen(r[freed])) : blocks.rows;
  showReport(page, "memory", { ...blocks, rows }, { title: range ? "Blocks allocated or freed in the range" : "Blocks" });
}

export const memory: View = {
  id: "memory",
  title: "Memory",
  group: "Run",
  async show(page, c) {
    const t = await report(c, "memory", { device: c.args.device }), range = rangeOf(c);
    const peaks = sectionOf(t, "peaks"), line = sectionOf(t, "curve"), blocks = sectionOf(t, "events");
    const shown = /^(CPU|GPU(\d+)):/.exec(t.notes[0] ?? ""), device = c.args.device ?? (shown ? shown[2] ?? "cpu" : "");
    if (peaks) {
      const names = peaks.rows.map((r) => textAt(peaks, r, "device"));
      add(page, h("div", { class: "choices" }, select("Device", names.map((n): [string, string] => [n === "CPU" ? "cpu" : n.replace("GPU", ""), n]), device, (v) => choose("device", v, ["from", "to"])), line?.rows.length ? rangeInputs(range) : null));
      const r = peaks.rows.find((x) => textAt(peaks, x, "device") === (device === "cpu" ? "CPU" : "GPU" + device));
      const value = (id: string) => (r && numberAt(peaks, r, id) !== undefined ? bytes(numberAt(peaks, r, id)!) : undefined);
      if (line?.rows.length) add(page, h("div", { class: "figures" }, figure("Peak allocated", value("peak_allocated_bytes")), figure("Peak reserved", value("peak_reserved_bytes"))));
    }
    if (line?.rows.length) curve(page, line, range);
    else for (const n of line?.notes ?? []) add(page, h("p", { class: "empty" }, n));
    tables(page, t, blocks, range);
    for (const s of t.sections) if (s !== blocks && s !== line) showReport(page, "memory", s, { title: s.title });
  },
};
