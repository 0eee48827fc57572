// What each op achieved, against what the GPU could: FLOP/s over FLOPs per byte.
import type { Cell, Report } from "../api";
import { numberAt, textAt } from "../cells";
import { COLORS, echarts, softText, type ChartOption } from "../chart";
import { middle, widthOf } from "../fit";
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
  return { peaks: [...peaks].map(([name, tflops]) => ({ name, tflops })).sort((a, b) => b.tflops - a.tflops), gbs };
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

/** How many points may have their names beside them: those with the most time that have room. */
const NAMED = 12, FONT = "12px system-ui, sans-serif", NAME_WIDTH = 190, NAME_HEIGHT = 15, DISTANCE = 5;
const GRID = { left: 70, right: 24, top: 40, bottom: 46 };
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

interface Rect {
  x: number;
  y: number;
  w: number;
  h: number;
}

const meet = (a: Rect, b: Rect) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

const dotSize = (p: Point) => 6 + 3 * Math.sqrt(p.share);

const SIDES = ["right", "left", "top", "bottom"] as const;

/** Where a name of this width stands beside its dot. */
function beside(side: (typeof SIDES)[number], [x, y]: [number, number], size: number, w: number): Rect {
  const off = size / 2 + DISTANCE, h = NAME_HEIGHT;
  if (side === "right" || side === "left") return { x: side === "right" ? x + off : x - off - w, y: y - h / 2, w, h };
  return { x: x - w / 2, y: side === "top" ? y - off - h : y + off, w, h };
}

/** The sides on which names are drawn: most time first, and only where a name covers neither another one nor a dot. Better beside the roofs than on them.
 * Of points with one name, as an op with several shapes, the first alone has it. */
function placeNames(all: Point[], at: (p: Point) => [number, number], text: (p: Point) => string, roofs: Rect[], room: Rect): Map<Point, (typeof SIDES)[number]> {
  const dots = all.map((p) => ({ p, rect: around(at(p), dotSize(p)) })), names: Rect[] = [], written = new Set<string>(), sides = new Map<Point, (typeof SIDES)[number]>();
  for (const p of [...all].sort((a, b) => b.share - a.share)) {
    if (sides.size === NAMED) break;
    if (written.has(text(p))) continue;
    const w = widthOf(text(p), FONT) + 4, free = SIDES.map((side) => ({ side, rect: beside(side, at(p), dotSize(p), w) })).filter(({ rect }) =>
      rect.x >= room.x && rect.x + rect.w <= room.x + room.w && rect.y >= room.y && rect.y + rect.h <= room.y + room.h && !names.some((n) => meet(n, rect)) && !dots.some((d) => d.p !== p && meet(d.rect, rect)));
    const best = free.find(({ rect }) => !roofs.some((r) => meet(r, rect))) ?? free[0];
    if (!best) continue;
    names.push(best.rect);
    written.add(text(p));
    sides.set(p, best.side);
  }
  return sides;
}

const around = ([x, y]: [number, number], size: number): Rect => ({ x: x - size / 2, y: y - size / 2, w: size, h: size });

/** A line as small pieces. */
function pieces(line: [number, number][]): Rect[] {
  return line.slice(1).flatMap((to, i) => {
    const from = line[i], n = Math.max(1, Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / 4));
    return Array.from({ length: n + 1 }, (_x, k) => around([from[0] + ((to[0] - from[0]) * k) / n, from[1] + ((to[1] - from[1]) * k) / n], 3));
  });
}

const opOf = (t: Report): Name => (r) => [textAt(t, r, "op") || textAt(t, r, "kernel"), textAt(t, r, "direction")].filter((x) => x).join(", ");

/** undefined: no row has both. far: points beyond the axes. The option is that of a chart of this height, in a place of the width that it gets. */
export function rooflineOption(t: Report, height: number, nameOf: Name = opOf(t)): { option: (width: number) => ChartOption; far: Point[] } | undefined {
  const all = points(t), { peaks, gbs } = ceilings(t);
  if (!all.length) return undefined;
  const [least, most] = extent(all, 0), [low, high] = extent(all, 1), ridges = gbs ? peaks.map((p) => (p.tflops * 1e3) / gbs) : [];
  const from = least / 2, to = Math.max(most, ...ridges) * 2.5, bottom = low / 2, top = Math.max(high, ...peaks.map((p) => p.tflops)) * 2;
  const outside = ({ value: [x, y] }: Point) => x < from || x > to || y < bottom || y > top, far = all.filter(outside), near = all.filter((p) => !outside(p));
  const tip = (p: any) => {
    const r = t.rows[p.data.row];
    if (!r) return echarts.format.encodeHTML(p.seriesName);
    const gain = numberAt(t, r, "gain_ns"), shape = textAt(t, r, "params");
    return `${echarts.format.encodeHTML(nameOf(r))}<br>${shape ? `${echarts.format.encodeHTML(shape)}<br>` : ""}${p.value[1].toPrecision(4)} TFLOP/s at ${p.value[0].toPrecision(4)} FLOP/byte<br>${time(numberAt(t, r, "total_gpu_ns") ?? 0)}, ${percent(p.data.share)} of device work${gain === undefined ? "" : `<br>at most ${time(gain)} to gain`}`;
  };
  const text = (p: Point) => middle(nameOf(t.rows[p.row]).replace(/^aten::/, ""), NAME_WIDTH, FONT);
  const option = (width: number) => {
    const room = { x: GRID.left, y: GRID.top, w: Math.max(1, width - GRID.left - GRID.right), h: Math.max(1, height - GRID.top - GRID.bottom) };
    const pixel = ([x, y]: [number, number]): [number, number] => [room.x + (room.w * Math.log(x / from)) / Math.log(to / from), room.y + room.h - (room.h * Math.log(y / bottom)) / Math.log(top / bottom)];
    const roofs = peaks.map((p) => roof(p.tflops, gbs, from, to)), sides = placeNames(near, (p) => pixel(p.value), text, roofs.flatMap((line) => pieces(line.map(pixel))), room);
    return {
      tooltip: { trigger: "item", confine: true, formatter: tip },
      legend: { type: "scroll", top: 0, itemGap: 16, textStyle: { fontSize: 13, color: softText() }, formatter: (name: string) => name.replace(/ of [^,]+(?=,)/, "") },
      grid: GRID,
      xAxis: { type: "log", min: from, max: to, name: "FLOP per byte", nameLocation: "middle", nameGap: 26, axisLabel: { formatter: tick, showMinLabel: false, showMaxLabel: false } },
      yAxis: { type: "log", min: bottom, max: top, name: "TFLOP/s", nameLocation: "middle", nameGap: 48, axisLabel: { formatter: tick, showMinLabel: false, showMaxLabel: false } },
      series: [
        ...BOUNDS.map((bound, k) => ({
          type: "scatter", name: bound + (k < 3 ? " bound" : ""), itemStyle: { color: [COLORS[0], COLORS[1], COLORS[3], COLORS[5], COLORS[7]][k], opacity: 0.8 }, symbolSize: (_v: unknown, p: any) => dotSize(p.data), z: 3,
          label: { distance: DISTANCE, font: FONT, color: softText(), formatter: (p: any) => text(p.data) },
          data: all.filter((p) => p.bound === bound).map((p) => ({ ...p, label: { show: sides.has(p), position: sides.get(p) ?? "right" } })),
        })).filter((s) => s.data.length),
        ...peaks.map((p, k) => ({ type: "line", name: p.name, showSymbol: false, symbol: "none", lineStyle: { color: COLORS[(k + 4) % COLORS.length], width: 2, type: "dashed" }, itemStyle: { color: COLORS[(k + 4) % COLORS.length] }, data: roofs[k] })),
      ],
    } as any;
  };
  return { far, option };
}
