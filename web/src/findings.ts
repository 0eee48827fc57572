// Findings as cards that open: what is wrong, on what that rests, what to do, and where to look.
import type { Cell, Table } from "./api";
import { numberAt, textAt } from "./api";
import { add, h } from "./dom";
import { time } from "./format";
import * as place from "./place";

type Link = [view: string, text: string, args?: Record<string, string>];

/** Where the evidence of a detector is seen, by a word of its name; the first that fits. */
const EVIDENCE: [RegExp, Link][] = [
  [/memory-nearly-full/, ["memory", "memory"]],
  [/dataloader|data-loader/, ["iterations", "the steps"]],
  [/starvation|launch-bound|synchronising|communication|gaps/, ["timeline", "the timeline"]],
  [/batch-size|utilization|underutilized|imbalanced|uneven/, ["gpus", "the GPUs"]],
  [/iteration/, ["iterations", "the steps"]],
  [/tensor-cores|tensor-shape|amp|tf32/, ["ops-kernels", "the ops that could use Tensor Cores, and do not", { pick: "unused" }]],
  [/gemm|matmul/, ["reports", "matrix products", { report: "gemm" }]],
  [/conv|cudnn/, ["reports", "convolutions", { report: "conv" }]],
  [/copies|copied|tidy-copy/, ["reports", "copies", { report: "memcpy" }]],
  [/api|emit-nvtx|overhead/, ["reports", "API calls", { report: "api" }]],
  [/recomputation/, ["modules", "the modules"]],
  [/optimizer|zero|index|xla|fusion/, ["operators", "the operators"]],
];

function where(detector: string): HTMLElement | null {
  const link = EVIDENCE.find(([words]) => words.test(detector))?.[1];
  return link ? h("p", {}, h("a", { href: place.linkTo(link[0], link[2]) }, `Look at ${link[1]}`)) : null;
}

function card(table: Table, row: Cell[], open: boolean): HTMLElement {
  const gain = numberAt(table, row, "gain_ns_per_step"), severity = textAt(table, row, "severity"), detector = textAt(table, row, "detector");
  const line = (name: string, id: string) => (textAt(table, row, id) ? h("p", {}, h("b", {}, name + ": "), textAt(table, row, id)) : null);
  return h("details", { class: `finding ${severity}`, open, "data-detector": detector },
    h("summary", {}, h("b", {}, severity), " ", textAt(table, row, "problem"), gain ? h("i", {}, ` up to ${time(gain)} a step`) : null),
    line("What to do", "advice"), line("Evidence", "evidence"), line("Wrong if", "disprove"), gain ? line("The gain is at most", "bound") : null,
    where(detector), h("p", { class: "note" }, "Detector: " + detector));
}

export function showFindings(page: HTMLElement, table: Table, o: { title: string; open?: boolean; most?: number }): void {
  const rows = table.rows.slice(0, o.most ?? table.rows.length), left = table.rows.length - rows.length;
  const list = h("section", { class: "findings" }, h("h3", {}, o.title), ...rows.map((r) => card(table, r, !!o.open)));
  if (!table.rows.length) add(list, h("p", { class: "nothing" }, "Nothing was found."));
  if (left > 0) add(list, h("p", {}, h("a", { href: place.linkTo("advice") }, `${left} more`)));
  for (const n of table.notes) if (n !== "Nothing found.") add(list, h("p", { class: "note" }, n));
  add(page, list);
}
