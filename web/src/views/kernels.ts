// Which kernels took the time, and how much of it with Tensor Cores.
import type { Table } from "../api";
import { columnOf, numberAt, textAt } from "../api";
import { COLORS, showBars, showStacked, type Share } from "../chart";
import { add, h } from "../dom";
import { time } from "../format";
import { choice, detail, kernelName, part, showReport, topChoice, topOf } from "../parts";
import { roleColor } from "../timeline/colors";
import { report, sumsNote, type Context, type View } from "../view";

const USES: Record<string, [text: string, color: string]> = {
  yes: ["Using Tensor Cores", COLORS[2]],
  no: ["Not using Tensor Cores", COLORS[1]],
  unknown: ["Not known", COLORS[7]],
};

function tensorCores(t: Table): Share[] {
  return Object.entries(USES).map(([use, [name, color]]) => ({
    name,
    value: t.rows.reduce((sum, r) => sum + (textAt(t, r, "tensor_cores") === use ? numberAt(t, r, "total_ns") ?? 0 : 0), 0),
    color,
  }));
}

export const kernels: View = {
  id: "kernels",
  title: "Kernels",
  group: "Kernels and ops",
  ofDevice: true,
  async show(page, c: Context) {
    const by = c.args.by ?? "name", t = await report(c, "kernels", { group_by: by }), row = h("div", { class: "row" });
    const names = by === "name" ? t : await report(c, "kernels");
    add(page, h("div", { class: "choices" }, topChoice(c), choice(c, "Group by", "by", [["name", "name"], ["op", "name and op"], ["launch", "launch configuration"]], ["row"])), row);
    showBars(row, "Total time by kernel", names.rows.map((r) => ({ name: kernelName(names, r), value: numberAt(names, r, "total_ns") ?? 0, color: roleColor(textAt(names, r, "class")) })), time, topOf(c));
    showStacked(row, "Tensor Cores by time", tensorCores(names), time);
    add(page, await sumsNote(c));
    const nameAt = columnOf(t, "name"), place = h("div", {});
    add(page, place);
    const open = await detail(page, c, "row", async (box, value) => {
      const row = t.rows[Number(value)] ?? [], name = String(row[nameAt] ?? "");
      for (const [group, title] of [["op", "Launched by"], ["launch", "Launch configurations"]]) {
        if (group === by) continue;
        const d = await report(c, "kernels", { group_by: group, filter: name });
        d.rows = d.rows.filter((r) => textAt(d, r, "name") === name);
        await part(box, title, async (b) => showReport(b, "kernels", d, { title: `${title}: ${kernelName(t, row)}`, key: "kernel-" + group, hide: ["name", "class", "total_pct", "stddev_ns", "median_ns", "p95_ns", "p99_ns"], pageSize: 10 }));
      }
    }, "Choose a kernel to see which ops launched it, and how.");
    showReport(place, "kernels", t, {
      title: "Kernels",
      steps: c,
      hide: ["median_ns", "p95_ns", "p99_ns", "stddev_ns"],
      choose: (_cells, i) => open(String(i)),
      chosen: (_cells, i) => c.args.row === String(i),
    });
  },
};
