// Ops by where they stand in the model, as a tree.
import { byDepth, showReport } from "../parts";
import { report, type View } from "../view";

export const groups: View = {
  id: "groups",
  title: "Group ops",
  group: "Kernels and ops",
  async show(page, c) {
    const t = await report(c, "groups");
    showReport(page, "groups", t, { title: "Groups of ops", children: byDepth(t), tree: "group", hide: ["depth", "path", "min_gpu_ns", "max_gpu_ns", "mean_cpu_ns", "steps"], height: "70vh" });
  },
};
