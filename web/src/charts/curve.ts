// Bytes over time, of a section with points in time.
import type { Cell, Section } from "../api";
import { columnOf } from "../cells";
import { COLORS, OTHERS, type ChartOption } from "../chart";
import { axis, bytes, time, tip } from "../format";

/** What the categories of PyTorch's memory profiler mean. */
const WORDS: Record<string, string> = {
  PARAMETER: "Parameters", OPTIMIZER_STATE: "Optimizer state", INPUT: "Inputs", TEMPORARY: "Temporaries", ACTIVATION: "Activations", GRADIENT: "Gradients", AUTOGRAD_DETAIL: "Values of the backward pass", Unknown: "Unknown",
};
export const BEFORE = /^held before the recording/;
export const wordOf = (category: string) => WORDS[category] ?? category.slice(0, 1).toUpperCase() + category.slice(1);

const BEFORE_COLOR = "#7f8fa6";

/** A category has one colour in all charts. */
export function categoryColor(category: string): string {
  const at = Object.keys(WORDS).indexOf(category);
  return BEFORE.test(category) ? BEFORE_COLOR : at < 0 || /^unknown/i.test(category) ? OTHERS : COLORS[at % COLORS.length];
}

/** The last time of a curve: both charts of the page have the same axis. */
export function endOf(s: Section): number {
  const at = columnOf(s, "time_ns");
  return s.rows.reduce((last, r) => Math.max(last, Number(r[at])), 0);
}

/** What a section has in bytes, over its times. What is always 0 is left out, as what is reserved on a CPU. `stacked`: parts of a whole. */
export function curveOption(s: Section, end: number, stacked = false): ChartOption {
  const at = columnOf(s, "time_ns"), all = s.columns.map((column, i) => ({ column, i })).filter((x) => x.column.unit === "bytes");
  const lines = all.filter((x, k) => (!stacked && k === 0) || s.rows.some((r) => r[x.i])), value = (r: Cell[], i: number) => Number(r[i] ?? 0);
  const high = (r: Cell[]) => (stacked ? lines.reduce((sum, x) => sum + value(r, x.i), 0) : Math.max(...lines.map((x) => value(r, x.i))));
  const top = s.rows.reduce((most, r) => Math.max(most, high(r)), 0), tick = 2 ** Math.max(0, Math.ceil(Math.log2(top / 8)));
  return {
    tooltip: { trigger: "axis", confine: true, valueFormatter: tip(bytes) },
    legend: { top: 0 },
    grid: { left: 74, right: 16, top: 34, bottom: 40 },
    xAxis: { type: "value", min: 0, max: end, name: "time since the start", nameLocation: "middle", nameGap: 24, axisLabel: { formatter: axis("ns"), hideOverlap: true, showMaxLabel: false },
      axisPointer: { label: { formatter: (p: any) => time(Number(p.value)) } } },
    yAxis: { type: "value", min: 0, max: Math.ceil(top / tick) * tick || undefined, interval: tick, axisLabel: { formatter: axis("bytes") } },
    series: lines.map((x, k) => {
      const color = stacked ? categoryColor(x.column.title) : COLORS[k % COLORS.length];
      return {
        type: "line",
        step: "end",
        name: wordOf(x.column.title),
        showSymbol: false,
        itemStyle: { color },
        lineStyle: { width: stacked ? 0 : 1.5, color },
        ...(stacked ? { stack: "held", areaStyle: { opacity: 0.8 } } : { areaStyle: k === 0 ? { opacity: 0.15 } : undefined }),
        data: s.rows.map((r) => [r[at], r[x.i]]),
      };
    }),
  } as any;
}
