// Time by nn.Module: a tree and a flame graph, forward and backward.
import type { Report } from "../api";
import { columnOf, textAt } from "../api";
import { add, h } from "../dom";
import { showFlame, type FlameNode } from "../flame";
import { byDepth, choice, part, showReport } from "../parts";
import * as place from "../place";
import { report, type View } from "../view";

/** What the width of a flame may be: sums of columns, of which those that the table has are taken. */
const SIZES: [id: string, title: string, columns: string[]][] = [
  ["device", "device time, forward and backward", ["device_total_ns", "backward_device_total_ns"]],
  ["forward", "device time, forward", ["device_total_ns"]],
  ["backward", "device time, backward", ["backward_device_total_ns"]],
  ["host", "host time, forward and backward", ["host_total_ns", "backward_host_ns"]],
];

function flameNodes(t: Report, columns: string[]): FlameNode[] {
  const below = byDepth(t), at = columns.map((id) => columnOf(t, id)).filter((i) => i >= 0);
  const node = (row: number): FlameNode => ({
    name: textAt(t, t.rows[row], "module"),
    value: at.reduce((sum, i) => sum + Number(t.rows[row][i] ?? 0), 0),
    below: below(t.rows[row], row).map(node),
  });
  const depth = columnOf(t, "depth");
  return t.rows.map((_, i) => i).filter((i) => t.rows[i][depth] === 0).map(node);
}

export const modules: View = {
  id: "modules",
  title: "Modules",
  group: "Kernels and ops",
  shows: { modules: {} },
  async show(page, c) {
    const t = await report(c, "modules"), has = SIZES.filter(([, , columns]) => columnOf(t, columns[0]) >= 0);
    const size = has.find(([id]) => id === c.args.size) ?? has[0];
    add(page, h("div", { class: "choices" }, choice(c, "Width", "size", has.map(([id, title]): [string, string] => [id, title]))));
    showFlame(page, `Modules by ${size[1]}`, flameNodes(t, size[2]), c.args.at ?? "", (at) => place.note({ at }));
    showReport(page, "modules", t, { title: "Modules", children: byDepth(t), tree: "module", hide: ["depth", "module_id", "device_exclusive_ns", "host_exclusive_ns"] });
    await part(page, "Layers", async (box) => {
      const l = await report(c, "layers");
      showReport(box, "layers", l, { title: "Layers: what each took by itself" });
    });
  },
};
