// Charts. All of a page's colours and the PNG button are here.
import * as echarts from "echarts/core";
import { BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart, TreemapChart } from "echarts/charts";
import { BrushComponent, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TitleComponent, ToolboxComponent, TooltipComponent, VisualMapComponent } from "echarts/components";
import { LabelLayout } from "echarts/features";
import { CanvasRenderer } from "echarts/renderers";
import { add, button, h, save } from "./dom";
import { middle, widthOf } from "./fit";

echarts.use([BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart, TreemapChart, BrushComponent, DataZoomComponent, GridComponent, LegendComponent,
  MarkLineComponent, TitleComponent, ToolboxComponent, TooltipComponent, VisualMapComponent, CanvasRenderer, LabelLayout]);

export type Chart = echarts.ECharts;
export type ChartOption = Parameters<Chart["setOption"]>[0];

/** Okabe and Ito's colours, which colour-blind people can tell apart. */
export const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#9a8c00", "#7f7f7f", "#5b3fa0", "#8c564b"];

/** Of what has no colour of its own. */
export const OTHERS = "#a8b0b8";

export function dark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const shown = new Set<Chart>();

/** Charts of the page that is left. */
export function forgetCharts(): void {
  places.disconnect();
  for (const c of shown) c.dispose();
  shown.clear();
}

/** A chart is as wide as its place, which becomes narrower when another one comes beside it. */
const places = new ResizeObserver((list) =>
  list.forEach((e) => {
    const place = e.target as HTMLElement, chart = echarts.getInstanceByDom(place), option = fitting.get(place);
    chart?.resize();
    if (chart && option) chart.setOption(option(place.clientWidth));
  }),
);

/** Options that depend on the width. */
const fitting = new WeakMap<HTMLElement, (width: number) => ChartOption>();

/** Shows a chart in `parent`. `height` in pixels. */
export function showChart(parent: HTMLElement, title: string, option: ChartOption | ((width: number) => ChartOption), height = 280): Chart {
  const place = h("div", { class: "canvas", style: `height:${height}px`, role: "img", "aria-label": title });
  const tools = h("div", { class: "tools" }, h("h3", {}, title), h("span", { class: "space" }));
  add(parent, h("section", { class: "chart" }, tools, place));
  const chart = echarts.init(place, dark() ? "dark" : undefined);
  shown.add(chart);
  places.observe(place);
  Object.assign(place, { chart }); // for the browser's console, and for tests
  chart.setOption({ backgroundColor: "transparent", color: COLORS, animation: false, textStyle: { fontFamily: "system-ui, sans-serif" }, ...(typeof option === "function" ? option(place.clientWidth) : (option as object)) });
  if (typeof option === "function") fitting.set(place, option);
  add(tools, button("PNG", () => save(`${title}.png`, chart.getDataURL({ pixelRatio: 2, backgroundColor: dark() ? "#16191d" : "#ffffff" })), { title: "Save the chart as a picture" }));
  return chart;
}

export interface Share {
  name: string;
  value: number;
  color?: string;
}

/** How text on a chart is written. */
const FONT = "12px system-ui, sans-serif", ROW = 23;

export const softText = () => (dark() ? "#c8d0d8" : "#3a424a");

const shareOf = (value: number, whole: number) => `${whole > 0 ? ((100 * value) / whole).toFixed(1) : "0.0"} %`;

/** The others are no bar, beside which the first ones would be hard to see, but a number. */
const BARELESS = { itemStyle: { color: "transparent" }, label: { position: "insideLeft" } };

/** Parts of a whole as bars, the `top` largest first, the others as a number. What counts twice is no part of a whole. */
export function showBars(parent: HTMLElement, title: string, values: Share[], format: (v: number) => string, top = 10): Chart {
  const sorted = values.filter((v) => v.value > 0).sort((a, b) => b.value - a.value), whole = sorted.reduce((sum, v) => sum + v.value, 0);
  const shares = sorted.slice(0, top), rest = sorted.slice(top).reduce((sum, v) => sum + v.value, 0);
  if (rest > 0) shares.push({ name: `${sorted.length - top} others`, value: rest });
  const says = (v: number) => `${format(v)}   ${shareOf(v, whole)}`, right = shares.reduce((w, v) => Math.max(w, widthOf(says(v.value), FONT)), 0) + 12;
  const names = (width: number) => Math.min(shares.reduce((w, v) => Math.max(w, widthOf(v.name, FONT)), 40), Math.floor(width * 0.45));
  const option = (width: number) => ({
    tooltip: { trigger: "axis", axisPointer: { type: "none" }, confine: true, formatter: (p: any) => `${echarts.format.encodeHTML(shares[p[0].dataIndex].name)}<br>${says(shares[p[0].dataIndex].value)}` },
    grid: { left: names(width) + 10, right, top: 2, bottom: 2 },
    xAxis: { type: "value", show: false, min: 0, max: shares[0]?.value },
    yAxis: { type: "category", inverse: true, data: shares.map((v) => v.name), axisLine: { show: false }, axisTick: { show: false }, axisLabel: { interval: 0, font: FONT, color: softText(), formatter: (name: string) => middle(name, names(width), FONT) } },
    series: [{ type: "bar", barWidth: ROW - 7, data: shares.map((v, i) => ({ name: v.name, value: v.value, itemStyle: { color: v.color ?? COLORS[0] }, ...(i === top && BARELESS) })), label: { show: true, position: "right", font: FONT, color: softText(), formatter: (p: any) => says(p.value) } }],
  });
  const chart = showChart(parent, title, option as any, Math.max(1, shares.length) * ROW + 6), place = chart.getDom();
  // A name that is cut is whole in the tooltip of its place.
  chart.getZr().on("mousemove", (e: any) => {
    const row = Math.floor((e.offsetY - 2) / ((place.clientHeight - 4) / shares.length));
    place.title = e.offsetX < names(place.clientWidth) + 10 ? shares[row]?.name ?? "" : "";
  });
  return chart;
}

/** Parts of a whole as one bar, in their order; what they are, below it. */
export function showStacked(parent: HTMLElement, title: string, values: Share[], format: (v: number) => string): Chart {
  const there = values.filter((v) => v.value > 0), whole = there.reduce((sum, v) => sum + v.value, 0), says = (v: number) => `${format(v)}   ${shareOf(v, whole)}`;
  return showChart(parent, title, {
    tooltip: { trigger: "item", confine: true, formatter: (p: any) => `${echarts.format.encodeHTML(p.seriesName)}<br>${says(p.value)}` },
    legend: { top: 42, left: 0, orient: "vertical", itemGap: 8, itemWidth: 14, textStyle: { fontSize: 12, color: softText() }, formatter: (name: string) => `${name}   ${says(there.find((v) => v.name === name)?.value ?? 0)}` },
    grid: { left: 0, right: 0, top: 4, height: 30 },
    xAxis: { type: "value", show: false, min: 0, max: whole },
    yAxis: { type: "category", show: false, data: [""] },
    series: there.map((v, k) => ({ type: "bar", stack: "whole", name: v.name, barWidth: 30, itemStyle: { color: v.color ?? COLORS[k % COLORS.length] }, data: [v.value] })),
  } as any, 54 + 22 * there.length);
}

export { echarts };
