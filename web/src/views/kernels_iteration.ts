// Iterations with their kernels; the kernels of the one that is chosen.
import { add, h } from "../dom";
import { showIterations, showKernels, stepOf, stepText } from "../instances";
import { detail } from "../parts";
import { type View } from "../view";

export const kernelsIteration: View = {
  id: "kernels-iteration",
  title: "Kernels by iteration",
  group: "Steps",
  ofDevice: true,
  async show(page, c) {
    const place = h("div", {});
    add(page, place);
    const open = await detail(page, c, "step", (box, value) => showKernels(box, c, value === "none" ? "Kernels outside all steps" : `Kernels of step ${value}`, { step: stepOf(value) }), "Choose an iteration to see its kernels.");
    await showIterations(place, c, c.args.step, (step) => open(stepText(step)));
  },
};
