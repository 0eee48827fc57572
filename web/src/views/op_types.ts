// GPU time by kind of op.
import { columnOf, numberAt, textAt } from "../api";
import { showBars } from "../chart";
import { add, h } from "../dom";
import { time } from "../format";
import { showReport, topChoice, topOf } from "../parts";
import * as place from "../place";
import { report, sumsNote, type View } from "../view";

export const opTypes: View = {
  id: "op-types",
  title: "Op types",
  group: "Kernels and ops",
  async show(page, c) {
    const t = await report(c, "op-types"), row = h("div", { class: "row" }), type = columnOf(t, "type");
    const shares = (id: string) => t.rows.map((r) => ({ name: [...new Set([textAt(t, r, "type"), textAt(t, r, "direction")])].filter((x) => x).join(", "), value: numberAt(t, r, id) ?? 0 }));
    add(page, h("div", { class: "choices" }, topChoice(c)), row);
    showBars(row, "GPU time by op type", shares("total_gpu_ns"), time, topOf(c));
    showBars(row, "CPU time by op type", shares("total_cpu_ns"), time, topOf(c));
    add(page, await sumsNote(c));
    showReport(page, "op-types", t, { title: "Op types", hide: ["min_gpu_ns", "max_gpu_ns", "mean_cpu_ns"], choose: (cells) => (location.hash = place.linkTo("ops-kernels", { "ops.q": String(cells[type]) })) });
  },
};
