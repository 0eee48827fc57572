// Charts. All of a page's colours and the PNG button are here.
import * as echarts from "echarts/core";
import { BarChart, CustomChart, HeatmapChart, LineChart, PieChart, ScatterChart, TreemapChart } from "echarts/charts";
import { BrushComponent, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TitleComponent, ToolboxComponent, TooltipComponent, VisualMapComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";
import { add, button, h, save } from "./dom";

echarts.use([BarChart, CustomChart, HeatmapChart, LineChart, PieChart, ScatterChart, TreemapChart, BrushComponent, DataZoomComponent, GridComponent, LegendComponent,
  MarkLineComponent, TitleComponent, ToolboxComponent, TooltipComponent, VisualMapComponent, CanvasRenderer]);

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
const places = new ResizeObserver((list) => list.forEach((e) => echarts.getInstanceByDom(e.target as HTMLElement)?.resize()));

/** Shows a chart in `parent`. `height` in pixels. */
export function showChart(parent: HTMLElement, title: string, option: ChartOption, height = 280): Chart {
  const place = h("div", { class: "canvas", style: `height:${height}px`, role: "img", "aria-label": title });
  const tools = h("div", { class: "tools" }, h("h3", {}, title), h("span", { class: "space" }));
  add(parent, h("section", { class: "chart" }, tools, place));
  const chart = echarts.init(place, dark() ? "dark" : undefined);
  shown.add(chart);
  places.observe(place);
  Object.assign(place, { chart }); // for the browser's console, and for tests
  chart.setOption({ backgroundColor: "transparent", color: COLORS, animation: false, textStyle: { fontFamily: "inherit" }, ...(option as object) });
  add(tools, button("PNG", () => save(`${title}.png`, chart.getDataURL({ pixelRatio: 2, backgroundColor: dark() ? "#16191d" : "#ffffff" })), { title: "Save the chart as a picture" }));
  return chart;
}

/** Shares of a whole: the `top` largest, the rest as one. */
export function pie(values: { name: string; value: number; itemStyle?: object }[], format: (v: number) => string, top = 10): ChartOption {
  const sorted = values.filter((v) => v.value > 0).sort((a, b) => b.value - a.value);
  const shares = sorted.slice(0, top), rest = sorted.slice(top).reduce((sum, v) => sum + v.value, 0);
  if (rest > 0) shares.push({ name: `${sorted.length - top} others`, value: rest, itemStyle: { color: OTHERS } });
  return {
    tooltip: { trigger: "item", confine: true, formatter: (p: any) => `${echarts.format.encodeHTML(p.name)}<br>${format(p.value)} (${p.percent} %)` },
    legend: { type: "scroll", orient: "vertical", left: "52%", top: "middle", textStyle: { width: 180, overflow: "truncate" } },
    series: [{ type: "pie", radius: ["35%", "75%"], center: ["26%", "50%"], data: shares, label: { show: false } }],
  };
}

export { echarts };
