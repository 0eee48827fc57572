// What each op achieved, against what the GPU could: FLOP/s over FLOPs per byte.
import type { Cell, Report } from "../api";
import { numberAt, textAt } from "../cells";
import { COLORS, echarts, softText, type ChartOption } from "../chart";
import { middle } from "../fit";
import { count, percent, time } from "../format";

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

export interface Point {
  bound: string;
  value: [number, number];
  row: number;
  share: number;
}

export function points(t: Report): Point[] {
  const list: Point[] = [];
  for (const [row, r] of t.rows.entries()) {
    const x = numberAt(t, r, "flops_per_byte"), y = numberAt(t, r, "tflops_per_s");
    if (x && y && x > 0 && y > 0) list.push({ bound: textAt(t, r, "bound") || "unknown", value: [x, y], row, share: numberAt(t, r, "total_pct") ?? 0 });
  }
  return list;
}

export type Name = (r: Cell[]) => string;

/** How many points have their names beside them: those with the most time. */
const NAMED = 8;
/** Points with a smaller share of the device work do not stretch the axes by more than a decade. */
export const SMALL_PCT = 0.5;

/** From which value to which the points lie: of all, or where those with little time alone lie far out, without them. */
function extent(all: Point[], axis: 0 | 1): [number, number] {
  const of = (list: Point[]): [number, number] => list.reduce(([a, b], p) => [Math.min(a, p.value[axis]), Math.max(b, p.value[axis])], [Infinity, 0]);
  const [from, to] = of(all), large = all.filter((p) => p.share >= SMALL_PCT);
  if (!large.length) return [from, to];
  const [a, b] = of(large);
  return [from < a / 10 ? a : from, to > 10 * b ? b : to];
}

const opOf = (t: Report): Name => (r) => [textAt(t, r, "op") || textAt(t, r, "kernel"), textAt(t, r, "direction")].filter((x) => x).join(", ");

/** undefined: no row has both. far: points beyond the axes. */
export function rooflineOption(t: Report, nameOf: Name = opOf(t)): { option: ChartOption; far: Point[] } | undefined {
  const all = points(t), { peaks, gbs } = ceilings(t);
  if (!all.length) return undefined;
  const [least, most] = extent(all, 0), [low, high] = extent(all, 1), ridges = gbs ? peaks.map((p) => (p.tflops * 1e3) / gbs) : [];
  const from = least / 2, to = Math.max(most, ...ridges) * 2.5, bottom = low / 2, top = Math.max(high, ...peaks.map((p) => p.tflops)) * 2;
  const far = all.filter(({ value: [x, y] }) => x < from || x > to || y < bottom || y > top);
  const tip = (p: any) => {
    const r = t.rows[p.data.row];
    if (!r) return echarts.format.encodeHTML(p.seriesName);
    const gain = numberAt(t, r, "gain_ns");
    return `${echarts.format.encodeHTML(nameOf(r))}<br>${p.value[1].toPrecision(4)} TFLOP/s at ${p.value[0].toPrecision(4)} FLOP/byte<br>${time(numberAt(t, r, "total_gpu_ns") ?? 0)}, ${percent(p.data.share)} of device work${gain === undefined ? "" : `<br>at most ${time(gain)} to gain`}`;
  };
  const named = new Set([...all].sort((a, b) => b.share - a.share).slice(0, NAMED));
  return {
    far,
    option: {
      tooltip: { trigger: "item", confine: true, formatter: tip },
      legend: { type: "scroll", top: 0, itemGap: 16, textStyle: { fontSize: 13, color: softText() }, formatter: (name: string) => name.replace(/ of [^,]+(?=,)/, "") },
      grid: { left: 70, right: 24, top: 40, bottom: 46 },
      xAxis: { type: "log", min: from, max: to, name: "FLOP per byte", nameLocation: "middle", nameGap: 26, axisLabel: { formatter: tick, showMinLabel: false, showMaxLabel: false } },
      yAxis: { type: "log", min: bottom, max: top, name: "TFLOP/s", nameLocation: "middle", nameGap: 48, axisLabel: { formatter: tick, showMinLabel: false, showMaxLabel: false } },
      series: [
        ...BOUNDS.map((bound, k) => ({
          type: "scatter", name: bound + (k < 3 ? " bound" : ""), itemStyle: { color: [COLORS[0], COLORS[1], COLORS[3], COLORS[5], COLORS[7]][k], opacity: 0.8 }, symbolSize: (_v: unknown, p: any) => 6 + 3 * Math.sqrt(p.data.share), z: 3,
          label: { distance: 5, font: "12px system-ui, sans-serif", color: softText(), formatter: (p: any) => middle(nameOf(t.rows[p.data.row]).replace(/^aten::/, ""), 190, "12px system-ui, sans-serif") },
          labelLayout: { hideOverlap: true, moveOverlap: "shiftY" },
          data: all.filter((p) => p.bound === bound).map((p) => ({ ...p, label: { show: named.has(p), position: Math.log(p.value[0] / from) > 0.7 * Math.log(to / from) ? "left" : "right" } })),
        })).filter((s) => s.data.length),
        ...peaks.map((p, k) => ({ type: "line", name: p.name, showSymbol: false, symbol: "none", lineStyle: { color: COLORS[(k + 4) % COLORS.length], width: 2, type: "dashed" }, itemStyle: { color: COLORS[(k + 4) % COLORS.length] }, data: roof(p.tflops, gbs, from, to) })),
      ],
    } as any,
  };
}
