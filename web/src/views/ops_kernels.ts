// Ops of the model; the kernels of the one that is chosen.
import type { Cell } from "../api";
import { columnOf } from "../api";
import { add, h } from "../dom";
import { opOf, showKernels, showStack } from "../instances";
import { choice, detail, part, pathEnd, showReport } from "../parts";
import { report, type View } from "../view";

const HIDDEN = ["op_id", "type", "shapes", "data_type", "stack", "ops", "min_gpu_ns", "max_gpu_ns", "mean_cpu_ns", "min_cpu_ns", "max_cpu_ns", "mean_overhead_ns", "mean_idle_ns"];

export const opsKernels: View = {
  id: "ops-kernels",
  title: "Ops and kernels",
  group: "Kernels and ops",
  shows: { "tensor-cores": { pick: "unused" } },
  async show(page, c) {
    const t = await report(c, "ops"), id = columnOf(t, "op_id"), direction = columnOf(t, "direction"), stack = columnOf(t, "stack");
    const key = (cells: Cell[]) => JSON.stringify([cells[id], cells[direction]]);
    const pick = c.args.pick ?? "all", at = columnOf(t, "tc_eligible"), used = columnOf(t, "tc_used");
    const keep = (r: Cell[]) => pick === "all" || (r[at] === true && (pick === "eligible" || r[used] === "no"));
    const rows = { ...t, rows: t.rows.filter(keep) }, place = h("div", {});
    add(page, h("div", { class: "choices" }, choice(c, "Show", "pick", [["all", "all ops"], ["eligible", "ops that could use Tensor Cores"], ["unused", "ops that could, but do not"]])), place);
    const open = await detail(page, c, "op", async (box, value) => {
      const op = opOf(value);
      if (!op) return;
      await part(box, "Kernels", (b) => showKernels(b, c, `Kernels of ${op.op}, ${op.direction}`, op));
      showStack(box, t.rows.find((r) => key(r) === value)?.[stack] ?? null);
    }, "Choose an op to see its kernels.");
    showReport(place, "ops", rows, { title: "Ops", key: "ops", hide: HIDDEN, pageSize: 10, draw: { name: pathEnd }, choose: (cells) => open(key(cells)), chosen: (cells) => key(cells) === c.args.op });
  },
};
