// Steps as stacked bars of what filled them.
import type { Cell, Column, Table } from "./api";
import { columnOf } from "./api";
import { COLORS, showChart, type Chart } from "./chart";
import * as place from "./place";
import { roleColor } from "./timeline/colors";
import { axis, time, tip } from "./format";

/** "A..B", "A..", "..B" or "A"; "all", which is also what lies outside the steps. */
export function stepRange(text: string): [from: number, to: number] {
  if (text === "all") return [-Infinity, Infinity];
  const [a, b] = text.includes("..") ? text.split("..") : [text, text];
  return [a === "" ? -Infinity : Number(a), b === "" ? Infinity : Number(b)];
}

/** The columns that the step's length is the sum of: times that have a share beside them. */
export function partsOf(table: Table): { column: Column; at: number }[] {
  return table.columns
    .map((column, at) => ({ column, at }))
    .filter((x) => x.column.unit === "ns" && columnOf(table, x.column.id.replace(/_ns$/, "_pct")) >= 0);
}

/** `use`: whether a step's bar is of the chosen ones; others are pale. */
export function showSteps(parent: HTMLElement, title: string, table: Table, o: { height?: number; use?: (step: Cell) => boolean; choose?: (step: Cell) => void } = {}): Chart {
  const parts = partsOf(table).map((p, k) => ({ ...p, color: roleColor(p.column.title) ?? COLORS[k % COLORS.length] })).filter((p) => table.rows.some((r) => r[p.at]));
  const step = Math.max(columnOf(table, "step"), 0), names = table.rows.map((r) => String(r[step] ?? ""));
  const chart = showChart(parent, title, {
    tooltip: { trigger: "axis", confine: true, axisPointer: { type: "shadow" }, valueFormatter: tip(time) },
    legend: { top: 0, itemWidth: 14, itemGap: 8 },
    grid: { left: 64, right: 12, top: parts.length > 4 ? 56 : 36, bottom: names.length > 40 ? 62 : 42 },
    xAxis: { type: "category", data: names, name: "step", nameLocation: "middle", nameGap: 24 },
    yAxis: { type: "value", axisLabel: { formatter: axis("ns") } },
    dataZoom: names.length > 40 ? [{ type: "slider", height: 18, bottom: 6 }, { type: "inside" }] : [],
    series: parts.map((p) => ({
      type: "bar",
      stack: "step",
      name: p.column.title,
      barMaxWidth: 60,
      itemStyle: { color: p.color },
      data: table.rows.map((r) => (o.use && !o.use(r[step]) ? { value: r[p.at], itemStyle: { opacity: 0.25 } } : r[p.at])),
    })),
  } as any, o.height ?? 280);
  if (o.choose) chart.on("click", (e: any) => typeof e.dataIndex === "number" && o.choose?.(table.rows[e.dataIndex][step]));
  return chart;
}

/** To the step on the timeline. */
export function toStep(s: Table): (step: Cell) => void {
  const [step, start, total] = ["step", "start_ns", "total_ns"].map((id) => columnOf(s, id));
  return (chosen) => {
    const r = s.rows.find((x) => x[step] === chosen);
    if (r && r[start] !== null && r[total] !== null) location.hash = place.linkTo("timeline", { look: `${r[start]}..${BigInt(r[start] as number | bigint) + BigInt(r[total] as number | bigint)}` });
  };
}
