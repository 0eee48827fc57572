// The op graph around an op: from which ops its inputs come, and which ops take its outputs.
import { h } from "../dom";
import { middle } from "../fit";
import { count, time } from "../format";
import type { Details, Graph, GraphEdge, Slice } from "./model";

type Jump = (e: Slice) => void;

/** "input 0, from output 1, [4, 512]": an output is told where it is not the first. */
function edgeText([, , input, output, shape]: GraphEdge): string {
  return `input ${input}${output > 0 ? `, from output ${output}` : ""}${shape && shape !== "[]" ? `, ${shape}` : ""}`;
}

function row(e: Slice, notes: string[], jump: Jump): HTMLElement {
  return h("button", { type: "button", class: "jump", onclick: () => jump(e), title: `${e.name}: ${notes.join("; ")}` }, h("span", {}, e.name), h("i", {}, notes[0] + (notes.length > 1 ? ` and ${notes.length - 1} more` : "")));
}

/** Ops of edges, each once, with what the edges say. */
function list(g: Graph, edges: GraphEdge[], end: 0 | 1, jump: Jump): HTMLElement[] {
  const notes = new Map<number, string[]>();
  for (const e of edges) if (e[end] >= 0) notes.set(e[end], [...(notes.get(e[end]) ?? []), edgeText(e)]);
  return [...notes].map(([node, said]) => row(g.nodes[node], said, jump));
}

/** The column of each op: that of the first is 0; ops that made inputs stand left of the op that takes them, ops that take outputs right of the op that made them. */
function levels(g: Graph): Map<number, number> {
  const of = new Map([[0, 0]]), inTime = [...g.edges].filter(([from]) => from >= 0).sort((a, b) => g.nodes[a[1]].start - g.nodes[b[1]].start);
  for (const [from, to] of [...inTime].reverse()) if ((of.get(to) ?? 1) <= 0) of.set(from, Math.min(of.get(from) ?? 0, of.get(to)! - 1));
  for (const [from, to] of inTime) if ((of.get(from) ?? -1) >= 0 && (of.get(to) ?? 1) > 0) of.set(to, Math.max(of.get(to) ?? 0, of.get(from)! + 1));
  return of;
}

const SVG = "http://www.w3.org/2000/svg";

function svg(tag: string, props: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const e = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) e.setAttribute(name, String(value));
  e.append(...children);
  return e;
}

/** Pixels: of a box, between columns, between boxes of a column, above the first box. */
const WIDE = 150, HIGH = 20, APART = 46, BELOW = 6, FONT = "12px system-ui, sans-serif", TOP = 1;

/** The neighbourhood as a drawing, producers left and consumers right of the op. */
function drawing(g: Graph, jump: Jump): SVGElement {
  const level = levels(g), columns = [...new Set(level.values())].sort((a, b) => a - b), place = new Map<number, [number, number]>();
  columns.forEach((l, column) => [...level].filter(([, x]) => x === l).sort(([a], [b]) => g.nodes[a].start - g.nodes[b].start).forEach(([node], i) => place.set(node, [column * (WIDE + APART), TOP + i * (HIGH + BELOW)])));
  const width = columns.length * (WIDE + APART) - APART, height = Math.max(...[...place.values()].map(([, y]) => y)) + HIGH + TOP;
  const all = svg("svg", { class: "neighbours", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Ops whose outputs go from one to the other" });
  for (const e of g.edges) {
    const a = place.get(e[0]), b = place.get(e[1]);
    if (!a || !b) continue;
    const [x, y, to, end] = [a[0] + WIDE, a[1] + HIGH / 2, b[0], b[1] + HIGH / 2], bend = Math.max(APART / 2, Math.abs(to - x) / 2);
    all.append(svg("path", { d: `M${x} ${y}C${x + bend} ${y} ${to - bend} ${end} ${to} ${end}` }, svg("title", {}, `${g.nodes[e[0]].name} to ${g.nodes[e[1]].name}: ${edgeText(e)}`)));
  }
  for (const [node, [x, y]] of place) {
    const e = g.nodes[node], box = svg("g", node ? { class: "node", tabindex: 0, role: "button", transform: `translate(${x} ${y})` } : { class: "node self", transform: `translate(${x} ${y})` },
      svg("title", {}, `${e.name}, ${time(e.dur)}`), svg("rect", { width: WIDE, height: HIGH, rx: 3 }), svg("text", { x: 6, y: 14 }, middle(e.name, WIDE - 12, FONT)));
    if (node) {
      box.addEventListener("click", () => jump(e));
      box.addEventListener("keydown", (k) => (k as KeyboardEvent).key === "Enter" && (k.stopPropagation(), jump(e)));
    }
    all.append(box);
  }
  return all;
}

/** "Inputs from" and "Used by", and the drawing. Nothing where the recording does not state them. */
export function neighbours(d: Details, jump: Jump): (HTMLElement | null)[] {
  const g = d.graph;
  if (!g) return [];
  const own = g.edges.filter((e) => e[1] === 0), users = g.edges.filter((e) => e[0] === 0), from = list(g, own, 0, jump), by = list(g, users, 1, jump);
  const outside = own.filter((e) => e[0] < 0), left = g.users - users.length, further = g.inputs - own.length;
  return [
    own.length ? h("div", { class: "links", "data-links": "inputs" }, h("h4", {}, "Inputs from"), ...from,
      outside.length ? h("p", { class: "note" }, `not in the recording: what made ${outside.map(edgeText).join("; ")}`) : null, further > 0 ? h("p", { class: "note" }, `and ${count(further)} more inputs`) : null) : null,
    by.length ? h("div", { class: "links", "data-links": "users" }, h("h4", {}, "Used by"), ...by, left > 0 ? h("p", { class: "note" }, `and ${count(left)} more inputs`) : null) : null,
    g.nodes.length > 1 ? h("details", { class: "graph", open: true }, h("summary", {}, "Op graph, two ops far"), h("div", {}, drawing(g, jump) as unknown as HTMLElement), g.left_out > 0 ? h("p", { class: "note" }, `and ${count(g.left_out)} more inputs, which are not drawn`) : null) : null,
  ];
}
