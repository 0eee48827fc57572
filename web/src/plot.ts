// One picture on a page of its own, as the Python package makes them: the page holds this script, and what is to be drawn as JSON.
import { showChart } from "./chart";
import { curveOption, endOf } from "./charts/curve";
import { rooflineOption } from "./charts/roofline";
import { timelineHeight, timelineOption } from "./charts/timeline";
import { add, h } from "./dom";

const at = document.getElementById("opscope-plot");
const ROOFLINE_HEIGHT = 420;
const { kind, title, notes, data } = JSON.parse(at?.textContent ?? "null");

switch (kind) {
  case "roofline":
    showChart(document.body, title, rooflineOption(data, ROOFLINE_HEIGHT)!.option, ROOFLINE_HEIGHT);
    break;
  case "memory":
    showChart(document.body, title, curveOption(data, endOf(data)), 320);
    break;
  default:
    showChart(document.body, title, timelineOption(data), timelineHeight(data));
}
for (const note of notes) add(document.body, h("p", { class: "note" }, note));
