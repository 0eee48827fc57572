// Ops by where they stand in the model, as a tree, the groups with most time first.
import { numberAt } from "../api";
import { byDepth, showReport } from "../parts";
import { report, type View } from "../view";

export const groups: View = {
  id: "groups",
  title: "Group ops",
  group: "Kernels and ops",
  async show(page, c) {
    const t = await report(c, "groups"), gpu = t.rows.some((r) => numberAt(t, r, "gpu_ns")), mean = gpu ? "mean_cpu_ns" : "mean_gpu_ns";
    showReport(page, "groups", t, { title: "Groups of ops", children: byDepth(t), tree: "group", sort: gpu ? "-gpu_ns" : "-cpu_ns", hide: ["depth", "path", "min_gpu_ns", "max_gpu_ns", mean, "steps"], height: "70vh" });
  },
};
