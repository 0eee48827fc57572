// What each op achieved, against what the GPU could: FLOP/s over FLOPs per byte.
import type { Report } from "../api";
import { numberAt, textAt } from "../api";
import { COLORS, echarts, showChart } from "../chart";
import { add, h } from "../dom";
import { count, percent, time } from "../format";
import { choice, showReport } from "../parts";
import { report, type View } from "../view";

interface Ceiling {
  name: string;
  tflops: number;
}

const BOUNDS = ["compute", "memory", "latency", "over peak", "unknown"];

/** What the rows' shares are of: TFLOP/s of each peak, GB/s of the memory. */
function ceilings(t: Report): { peaks: Ceiling[]; gbs: number | undefined } {
  const peaks = new Map<string, number>();
  let gbs: number | undefined;
  for (const r of t.rows) {
    const rate = numberAt(t, r, "tflops_per_s"), share = numberAt(t, r, "peak_pct"), name = textAt(t, r, "peak");
    if (name && rate && share && !peaks.has(name)) peaks.set(name, (100 * rate) / share);
    const flow = numberAt(t, r, "gb_per_s"), part = numberAt(t, r, "bandwidth_pct");
    if (flow && part && gbs === undefined) gbs = (100 * flow) / part;
  }
  return { peaks: [...peaks].map(([name, tflops]) => ({ name, tflops })), gbs };
}

/** Along the memory's slope to the ridge, then level. */
function roof(tflops: number, gbs: number | undefined, from: number, to: number): [number, number][] {
  if (gbs === undefined) return [[from, tflops], [to, tflops]];
  const ridge = (tflops * 1e3) / gbs;
  return [[from, Math.min(tflops, (from * gbs) / 1e3)], [Math.min(Math.max(ridge, from), to), tflops], [Math.max(to, ridge), tflops]];
}

const tick = (v: number) => (v >= 1e-3 ? count(v) : v.toExponential(0));

function points(t: Report): { bound: string; value: [number, number]; row: number; share: number }[] {
  const list = [];
  for (const [row, r] of t.rows.entries()) {
    const x = numberAt(t, r, "flops_per_byte"), y = numberAt(t, r, "tflops_per_s");
    if (x && y && x > 0 && y > 0) list.push({ bound: textAt(t, r, "bound") || "unknown", value: [x, y] as [number, number], row, share: numberAt(t, r, "total_pct") ?? 0 });
  }
  return list;
}

function chart(page: HTMLElement, t: Report): void {
  const all = points(t), { peaks, gbs } = ceilings(t), shown = new Set(all.map((p) => p.row));
  const outside = t.rows.filter((_r, i) => !shown.has(i)), left = outside.length;
  if (all.length) {
    const xs = all.map((p) => p.value[0]), ridges = gbs ? peaks.map((p) => (p.tflops * 1e3) / gbs) : [];
    const from = 10 ** Math.floor(Math.log10(Math.min(...xs))), to = 10 ** Math.ceil(Math.log10(Math.max(...xs, ...ridges) * 2));
    const tip = (p: any) => {
      const r = t.rows[p.data.row];
      if (!r) return echarts.format.encodeHTML(p.seriesName);
      const name = echarts.format.encodeHTML([textAt(t, r, "op") || textAt(t, r, "kernel"), textAt(t, r, "direction")].filter((x) => x).join(", "));
      return `${name}<br>${p.value[1].toPrecision(4)} TFLOP/s at ${p.value[0].toPrecision(4)} FLOP/byte<br>${time(numberAt(t, r, "total_gpu_ns") ?? 0)}, ${percent(p.data.share)} of device work`;
    };
    showChart(page, "Roofline", {
      tooltip: { trigger: "item", confine: true, formatter: tip },
      legend: { type: "scroll", top: 0 },
      grid: { left: 70, right: 24, top: 36, bottom: 46 },
      xAxis: { type: "log", min: from, max: to, name: "FLOP per byte", nameLocation: "middle", nameGap: 26, axisLabel: { formatter: tick } },
      yAxis: { type: "log", name: "TFLOP/s", nameLocation: "middle", nameGap: 48, axisLabel: { formatter: tick } },
      series: [
        ...BOUNDS.map((bound, k) => ({
          type: "scatter", name: bound + (k < 3 ? " bound" : ""), itemStyle: { color: [COLORS[0], COLORS[1], COLORS[3], COLORS[5], COLORS[7]][k], opacity: 0.8 }, symbolSize: (_v: unknown, p: any) => 6 + 3 * Math.sqrt(p.data.share),
          data: all.filter((p) => p.bound === bound),
        })).filter((s) => s.data.length),
        ...peaks.map((p, k) => ({ type: "line", name: p.name, showSymbol: false, lineStyle: { color: COLORS[(k + 4) % COLORS.length], width: 2, type: "dashed" }, itemStyle: { color: COLORS[(k + 4) % COLORS.length] }, data: roof(p.tflops, gbs, from, to) })),
      ],
    } as any, 420);
  }
  if (left) add(page, h("p", { class: "note" }, `Not in the chart: ${time(outside.reduce((sum, r) => sum + (numberAt(t, r, "total_gpu_ns") ?? 0), 0))}, ${percent(outside.reduce((sum, r) => sum + (numberAt(t, r, "total_pct") ?? 0), 0))} of device work, in ${left} ${left === 1 ? "row" : "rows"} whose FLOPs or bytes are 0 or unknown.`));
}

export const roofline: View = {
  id: "roofline",
  title: "Roofline",
  group: "Kernels and ops",
  async show(page, c) {
    const by = c.args.by ?? "op", t = await report(c, "roofline", { group_by: by });
    add(page, h("div", { class: "choices" }, choice(c, "By", "by", [["op", "op"], ["shape", "op and shape"], ["kernel", "kernel"]])));
    chart(page, t);
    showReport(page, "roofline", t, { title: "Ops against the peaks", steps: c, hide: ["class", "attainable_ns", "peak", "kernels", "flops", "bytes"] });
  },
};
