// From an iteration to its ops, and from one of them to its kernels.
import { add, h } from "../dom";
import { opOf, showIterations, showKernels, showOps, stepOf, stepText } from "../instances";
import { detail } from "../parts";
import * as place from "../place";
import { type View } from "../view";

export const kernelsOp: View = {
  id: "kernels-op",
  title: "Kernels by op",
  group: "Steps",
  ofDevice: true,
  async show(page, c) {
    const iterations = h("div", {});
    add(page, iterations);
    const open = await detail(page, c, "step", async (box, value) => {
      const step = stepOf(value), name = value === "none" ? "outside all steps" : `of step ${value}`, ops = h("div", {});
      add(box, ops);
      const openOp = await detail(box, { ...c, args: place.read().args }, "op", async (inner, text) => {
        const op = opOf(text);
        if (op) await showKernels(inner, c, `Kernels of ${op.op ?? "no op"}, ${name}`, { step, ...op });
      }, "Choose an op to see its kernels.");
      await showOps(ops, c, `Ops ${name}`, { step }, place.read().args.op, openOp);
    }, "Choose an iteration to see its ops.");
    await showIterations(iterations, c, c.args.step, (step) => (place.note({ op: undefined }), open(stepText(step))));
  },
};
