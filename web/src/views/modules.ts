// Time by nn.Module: a tree and a flame graph, forward and backward.
import type { Report } from "../api";
import { ApiError, columnOf, numberAt, textAt } from "../api";
import { add, h } from "../dom";
import { showFlame, type FlameNode } from "../flame";
import { time } from "../format";
import { byDepth, choice, figure, part, showReport } from "../parts";
import * as place from "../place";
import { report, type Context, type View } from "../view";

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

async function tree(box: HTMLElement, c: Context): Promise<void> {
  const t = await report(c, "modules"), has = SIZES.filter(([, , columns]) => columnOf(t, columns[0]) >= 0);
  const size = has.find(([id]) => id === c.args.size) ?? has[0];
  add(box, h("div", { class: "choices" }, choice(c, "Width", "size", has.map(([id, title]): [string, string] => [id, title])), choice(c, "Order", "order", [["run", "as they ran"], ["time", "most time first"]])));
  showFlame(box, `Modules by ${size[1]}`, flameNodes(t, size[2]), c.args.order === "time", c.args.at ?? "", (at) => place.note({ at }));
  showReport(box, "modules", t, { title: "Modules", steps: c, children: byDepth(t), tree: "module", hide: ["depth", "module_id", "device_exclusive_ns", "host_exclusive_ns", "backward_device_self_ns", "operators"] });
}

const DIRECTIONS: [id: string, title: string][] = [["forward", "Forward"], ["backward", "Backward"], ["optimizer", "Optimizer"]];

/** Device work, or without any the host's time, by direction, then by layer; by line of Python where the input does not say which layers
 * there are. */
async function layers(box: HTMLElement, c: Context): Promise<void> {
  let by = "layer";
  const t = await report(c, "layers").catch((e) => {
    if (!(e instanceof ApiError)) throw e;
    by = "line";
    return report(c, "layers", { group_by: "line" }).catch(() => Promise.reject(e));
  });
  const device = columnOf(t, "total_gpu_ns") >= 0, of = device ? "gpu" : "host", what = device ? "device work" : "on the host";
  const sum = (id: string) => t.rows.reduce((s, r) => s + (numberAt(t, r, id) ?? 0), 0);
  add(box, h("div", { class: "figures" }, ...DIRECTIONS.map(([id, title]) => figure(`${title}, ${what}`, time(sum(`${id}_${of}_ns`))))));
  showReport(box, "layers", t, { title: by === "line" ? "Lines of Python: what each took by itself" : "Layers: what each took by itself", steps: c, hide: device ? ["forward_host_ns", "backward_host_ns", "modelled_pct"] : [] });
}

export const modules: View = {
  id: "modules",
  title: "Modules",
  group: "Kernels and ops",
  needs: "modules",
  shows: { modules: {} },
  async show(page, c) {
    await part(page, "Modules", (box) => tree(box, c));
    await part(page, "Layers", (box) => layers(box, c));
  },
};
