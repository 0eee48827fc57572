// What each op achieved, against what the GPU could: FLOP/s over FLOPs per byte.
import type { Report } from "../api";
import { numberAt } from "../api";
import { showChart } from "../chart";
import { points, rooflineOption } from "../charts/roofline";
import { add, h } from "../dom";
import { percent, time } from "../format";
import { choice, showReport } from "../parts";
import { report, type View } from "../view";

function chart(page: HTMLElement, t: Report): void {
  const shown = new Set(points(t).map((p) => p.row)), option = rooflineOption(t);
  const outside = t.rows.filter((_r, i) => !shown.has(i)), left = outside.length;
  if (option) showChart(page, "Roofline", option, 420);
  if (left) add(page, h("p", { class: "note" }, `Not in the chart: ${time(outside.reduce((sum, r) => sum + (numberAt(t, r, "total_gpu_ns") ?? 0), 0))}, ${percent(outside.reduce((sum, r) => sum + (numberAt(t, r, "total_pct") ?? 0), 0))} of device work, in ${left} ${left === 1 ? "row" : "rows"} whose FLOPs or bytes are 0 or unknown.`));
}

export const roofline: View = {
  id: "roofline",
  title: "Roofline",
  group: "Kernels and ops",
  async show(page, c) {
    const by = c.args.by ?? "op", t = await report(c, "roofline", { group_by: by });
    add(page, h("div", { class: "choices" }, choice(c, "By", "by", [["op", "op"], ["shape", "op and shape"], ["kernel", "kernel"]])));
    chart(page, t);
    showReport(page, "roofline", t, { title: "Ops against the peaks", hide: ["class", "attainable_ns", "peak", "kernels", "flops", "bytes"] });
  },
};
