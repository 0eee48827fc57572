// Flame graphs: boxes as wide as their time, what is inside below.
import { add, button, h } from "./dom";
import { COLORS, dark, echarts, showChart } from "./chart";
import { percent, time } from "./format";

export interface FlameNode {
  name: string;
  value: number;
  below: FlameNode[];
}

interface Box {
  path: string;
  name: string;
  value: number;
  depth: number;
  from: number; // 0..1 of what is shown
  width: number;
}

/** Children are no wider than their parent, whatever overlaps. */
function layOut(list: FlameNode[], from: number, width: number, whole: number, depth: number, path: string, out: Box[]): void {
  const sum = Math.max(whole, list.reduce((s, n) => s + n.value, 0));
  if (sum <= 0) return;
  for (const n of list) {
    const w = (width * n.value) / sum, own = path ? `${path}/${n.name}` : n.name;
    if (w < 1e-4) continue;
    out.push({ path: own, name: n.name, value: n.value, depth, from, width: w });
    layOut(n.below, from, w, n.value, depth + 1, own, out);
    from += w;
  }
}

function find(list: FlameNode[], path: string): FlameNode | undefined {
  let now: FlameNode | undefined, below = list;
  for (const name of path.split("/")) {
    now = below.find((n) => n.name === name);
    if (!now) return undefined;
    below = now.below;
  }
  return now;
}

function colorOf(name: string): string {
  let sum = 0;
  for (const ch of name.replace(/_\d+$/, "")) sum = (sum * 31 + ch.charCodeAt(0)) >>> 0;
  return COLORS[sum % COLORS.length];
}

function drawBox(api: any, box: Box, rowHeight: number): object | undefined {
  const [x, y] = api.coord([box.from, box.depth]), [w] = api.size([box.width, 1]);
  const shape = echarts.graphic.clipRectByRect({ x, y: y - rowHeight / 2, width: Math.max(w - 1, 0.5), height: rowHeight - 1 }, { x: 0, y: 0, width: api.getWidth(), height: api.getHeight() });
  return shape && {
    type: "rect",
    shape,
    style: { fill: colorOf(box.name), opacity: dark() ? 0.85 : 0.65 },
    textContent: w > 24 ? { style: { text: box.name, width: w - 8, overflow: "truncate", fill: dark() ? "#fff" : "#111", fontSize: 11, ...(dark() ? { textShadowColor: "#000", textShadowBlur: 2 } : {}) } } : undefined,
    textConfig: { position: "insideLeft" },
  };
}

/** `at`: names from the root to the box that fills the width, with '/'; "" = all. */
export function showFlame(parent: HTMLElement, title: string, roots: FlameNode[], at: string, moved: (at: string) => void): void {
  const place = h("div", { class: "flame" });
  add(parent, place);
  const draw = (path: string) => {
    const node = path ? find(roots, path) : undefined, list = node ? [node] : roots, boxes: Box[] = [];
    const above = node && path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
    layOut(list, 0, 1, 0, 0, above, boxes);
    const whole = list.reduce((s, n) => s + n.value, 0), deep = boxes.reduce((d, b) => Math.max(d, b.depth), 0) + 1, rowHeight = 20;
    place.replaceChildren();
    if (!boxes.length) {
      add(place, h("p", { class: "empty" }, "No time of this kind was recorded in modules."));
      return;
    }
    add(place, h("p", { class: "note" }, node ? button("Show all", () => (moved(""), draw(""))) : "Click a box to look into it.", node ? ` ${path}` : ""));
    const chart = showChart(place, title, {
      tooltip: { confine: true, formatter: (p: any) => `${echarts.format.encodeHTML(boxes[p.dataIndex].path)}<br>${time(boxes[p.dataIndex].value)} (${percent((100 * boxes[p.dataIndex].value) / whole)})` },
      grid: { left: 4, right: 4, top: 4, bottom: 4 },
      xAxis: { type: "value", min: 0, max: 1, show: false },
      yAxis: { type: "value", min: -0.5, max: deep - 0.5, inverse: true, show: false },
      series: [{ type: "custom", renderItem: (p: any, api: any) => drawBox(api, boxes[p.dataIndex], rowHeight), encode: { x: 0, y: 1 }, data: boxes.map((b) => [b.from, b.depth]) }],
    } as any, deep * rowHeight + 12);
    chart.on("click", (e: any) => (moved(boxes[e.dataIndex].path), draw(boxes[e.dataIndex].path)));
  };
  draw(at);
}
