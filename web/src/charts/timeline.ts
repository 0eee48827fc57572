// A run on one picture: threads of the host and streams of devices, what is too short to be drawn summed up (src/query/timeline_list.h).
import { MarkAreaComponent } from "echarts/components";
import { COLORS, echarts, OTHERS, type ChartOption } from "../chart";
import { axis, count, percent, time } from "../format";

echarts.use([MarkAreaComponent]);

export interface Timeline {
  /** Lanes, from the top; the first lane of a thread or stream has its name. */
  lanes: { name: string; device: boolean }[];
  names: string[];
  /** [lane, start, duration, busy, events, name, colour], times in ns since the first event. */
  items: [number, number, number, number, number, number, number][];
  /** [name, start, duration] */
  steps: [string, number, number][];
  end: number;
}

const LANE = 17;

/** Names may hold anything: line breaks, and characters that turn the direction of text. */
const plain = (name: string) => name.replace(/\s+/g, " ").replace(/\p{C}/gu, "\ufffd");

export const timelineHeight = (t: Timeline) => Math.min(900, 96 + LANE * Math.max(3, t.lanes.length));

function tip(t: Timeline, item: Timeline["items"][number]): string {
  const [, start, duration, busy, events, name] = item, shown = echarts.format.encodeHTML(plain(t.names[name].slice(0, 300)));
  const what = events > 1 ? `${count(events)} events, ${percent(duration ? (100 * busy) / duration : 100)} busy; the longest: ${shown}` : shown;
  return `${what}<br>${time(duration)} from ${time(start)} on`;
}

/** As wide as its time, at least a pixel; as high as it is busy. Its name where there is room. */
function draw(t: Timeline, params: any, api: any): any {
  const item = t.items[params.dataIndex], [left, middle] = api.coord([item[1], item[0]]), right = api.coord([item[1] + item[2], item[0]])[0];
  const full = api.size([0, 1])[1] * 0.84, share = item[4] > 1 && item[2] ? Math.max(0.15, item[3] / item[2]) : 1, height = full * share;
  const shape = echarts.graphic.clipRectByRect({ x: left, y: middle + full / 2 - height, width: Math.max(1, right - left), height }, params.coordSys as any);
  if (!shape) return undefined;
  const wide = shape.width > 44 && height > 9;
  const text = wide ? { text: plain(t.names[item[5]]), width: shape.width - 6, overflow: "truncate", fontSize: 10, fill: "#fff" } : undefined;
  return { type: "rect", shape, style: { fill: COLORS[item[6]] ?? OTHERS }, ...(text && { textContent: { style: text }, textConfig: { position: "insideLeft", distance: 3 } }) };
}

export function timelineOption(t: Timeline): ChartOption {
  const stripes = t.steps.map(([name, start, duration]) => [{ name: plain(name), xAxis: start }, { xAxis: start + duration }]);
  return {
    tooltip: { trigger: "item", confine: true, formatter: (p: any) => tip(t, t.items[p.dataIndex]) },
    grid: { left: 150, right: 16, top: 24, bottom: 62 },
    xAxis: { type: "value", min: 0, max: t.end, name: "time since the first event", nameLocation: "middle", nameGap: 24, axisLabel: { formatter: axis("ns"), hideOverlap: true, showMaxLabel: false } },
    yAxis: { type: "category", inverse: true, data: t.lanes.map((lane) => plain(lane.name)), axisTick: { show: false }, axisLabel: { interval: 0, width: 138, overflow: "truncate", fontSize: 11 }, splitLine: { show: false } },
    dataZoom: [{ type: "inside", xAxisIndex: 0, filterMode: "weakFilter" }, { type: "slider", xAxisIndex: 0, filterMode: "weakFilter", height: 16, bottom: 8, labelFormatter: (v: number) => time(v), showDataShadow: false }],
    series: [
      {
        type: "custom", name: "events", renderItem: (params: any, api: any) => draw(t, params, api), encode: { x: [1, 2], y: 0 }, dimensions: ["lane", "start", "end"],
        data: t.items.map((x) => [x[0], x[1], x[1] + x[2]]),
        markArea: { silent: true, itemStyle: { color: "rgba(127, 127, 127, 0.09)", borderColor: "rgba(127, 127, 127, 0.5)", borderWidth: 1 }, label: { position: "top", fontSize: 10, color: "#7f7f7f" }, data: stripes },
      },
    ],
  } as any;
}
