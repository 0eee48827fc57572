// Flame graphs: boxes as wide as their time, what is inside below.
import { add, button, h } from "./dom";
import { dark, echarts, showChart } from "./chart";
import { middle } from "./fit";
import { percent, time } from "./format";
import { roleColor, textOnColor } from "./timeline/colors";

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
  holds: boolean; // others
}

/** Children are no wider than their parent, whatever overlaps. */
function layOut(list: FlameNode[], from: number, width: number, whole: number, depth: number, path: string, out: Box[]): void {
  const sum = Math.max(whole, list.reduce((s, n) => s + n.value, 0));
  if (sum <= 0) return;
  for (const n of list) {
    const w = (width * n.value) / sum, own = path ? `${path}/${n.name}` : n.name;
    if (w < 1e-4) continue;
    out.push({ path: own, name: n.name, value: n.value, depth, from, width: w, holds: n.below.length > 0 });
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

/** What a module does, by the words of its type; colours are those of the kernels that such modules mostly run. */
const KINDS: [kind: RegExp, word: string, title: string][] = [
  [/attention|attn/i, "attention", "attention"], [/conv/i, "conv", "convolution"], [/norm|softmax|loss/i, "norm", "norm, softmax, loss"], [/embed/i, "embedding", "embedding"], [/pool/i, "pool", "pooling"],
  [/linear|dense|matmul|lstm|gru|rnn/i, "gemm", "linear"], [/relu|elu|silu|gelu|glu|tanh|sigmoid|swish|activation|dropout|identity|quickgelu/i, "elementwise", "elementwise"],
];

/** Of modules that hold others, by depth; and of those whose type tells nothing. */
const HOLDERS = { light: ["#d9e1ea", "#c9d4e0"], dark: ["#303a45", "#3b4754"] }, UNTOLD = "#c9cdd9";

const kindOf = (name: string) => KINDS.find(([kind]) => kind.test(name));

function colorOf(box: Box, night: boolean): string {
  if (box.holds) return HOLDERS[night ? "dark" : "light"][box.depth % 2];
  const kind = kindOf(box.name);
  return (kind && roleColor(kind[1])) ?? UNTOLD;
}

const FONT = "12px system-ui, sans-serif";

function drawBox(api: any, box: Box, rowHeight: number): object | undefined {
  const [x, y] = api.coord([box.from, box.depth]), [w] = api.size([box.width, 1]), fill = colorOf(box, dark());
  const shape = echarts.graphic.clipRectByRect({ x, y: y - rowHeight / 2, width: Math.max(w - 1, 0.5), height: rowHeight - 1 }, { x: 0, y: 0, width: api.getWidth(), height: api.getHeight() });
  const text = w > 22 ? middle(box.name, w - 8, FONT) : "";
  return shape && {
    type: "rect",
    shape,
    style: { fill },
    emphasis: { style: { stroke: dark() ? "#fff" : "#000", lineWidth: 1 } },
    textContent: text.length > 2 ? { style: { text, fill: textOnColor(fill), font: FONT } } : undefined,
    textConfig: { position: "insideLeft" },
  };
}

/** What the colours of the boxes mean. */
function legend(boxes: Box[]): HTMLElement {
  const met = new Set(boxes.filter((b) => !b.holds).map((b) => kindOf(b.name))), item = (color: string, title: string) => h("span", {}, h("i", { style: `background:${color}` }), title);
  return h("div", { class: "legend" }, ...KINDS.filter((k) => met.has(k)).map(([, word, title]) => item(roleColor(word) ?? UNTOLD, title)),
    met.has(undefined) ? item(UNTOLD, "other") : null, boxes.some((b) => b.holds) ? item(HOLDERS[dark() ? "dark" : "light"][1], "modules that hold others") : null);
}

/** Each level by time, the longest first. */
function byTime(list: FlameNode[]): FlameNode[] {
  return [...list].sort((a, b) => b.value - a.value).map((n) => ({ ...n, below: byTime(n.below) }));
}

/** `at`: names from the root to the box that fills the width, with '/'; "" = all. `sorted`: by time, not in the order of the nodes. */
export function showFlame(parent: HTMLElement, title: string, nodes: FlameNode[], sorted: boolean, at: string, moved: (at: string) => void): void {
  const roots = sorted ? byTime(nodes) : nodes;
  const place = h("div", { class: "flame" });
  add(parent, place);
  const draw = (path: string) => {
    const node = path ? find(roots, path) : undefined, list = node ? [node] : roots, boxes: Box[] = [];
    const above = node && path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
    layOut(list, 0, 1, 0, 0, above, boxes);
    const whole = list.reduce((s, n) => s + n.value, 0), deep = boxes.reduce((d, b) => Math.max(d, b.depth), 0) + 1, rowHeight = 22;
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
    add(place, legend(boxes));
    Object.assign(chart, { boxes }); // for tests
    chart.on("click", (e: any) => (moved(boxes[e.dataIndex].path), draw(boxes[e.dataIndex].path)));
  };
  draw(at);
}
