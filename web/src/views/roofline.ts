// What each op achieved, against what the GPU could: FLOP/s over FLOPs per byte.
import type { Cell, Report } from "../api";
import { numberAt, textAt } from "../api";
import { showChart } from "../chart";
import { SMALL_PCT, points, rooflineOption, type Name } from "../charts/roofline";
import { add, h } from "../dom";
import { middle } from "../fit";
import { percent, time } from "../format";
import { choice, drawShort, figure, shortKernels, showReport } from "../parts";
import { report, sumsNote, type View } from "../view";

const HEIGHT = 460;
/** Columns not shown at first: what others are made of, and how single calls differ. */
const HIDDEN = /^(class|attainable_ns|peak|kernels|flops|bytes|short_name)$|^(mean|median|stddev|min|max)_/;

function chart(page: HTMLElement, t: Report, nameOf: Name): void {
  const shown = new Set(points(t).map((p) => p.row)), made = rooflineOption(t, HEIGHT, nameOf);
  const outside = t.rows.filter((_r, i) => !shown.has(i)), left = outside.length;
  if (made) {
    const { option, far } = made;
    showChart(page, "Roofline", option, HEIGHT);
    if (far.length) add(page, h("p", { class: "note" }, `Beyond the axes: ${far.length === 1 ? "a point" : `${far.length} points`} with less than ${SMALL_PCT} % of device work each: ${far.map((p) => nameOf(t.rows[p.row])).slice(0, 5).join("; ")}${far.length > 5 ? "; …" : ""}.`));
  }
  if (left) add(page, h("p", { class: "note" }, `Not in the chart: ${time(outside.reduce((sum, r) => sum + (numberAt(t, r, "total_gpu_ns") ?? 0), 0))}, ${percent(outside.reduce((sum, r) => sum + (numberAt(t, r, "total_pct") ?? 0), 0))} of device work, in ${left} ${left === 1 ? "row" : "rows"} whose FLOPs or bytes are 0 or unknown.`));
}

/** How much time is between what was measured and the roof, and where the most of it is. */
function gains(page: HTMLElement, t: Report, nameOf: Name): void {
  const rows = t.rows.map((r) => ({ r, gain: numberAt(t, r, "gain_ns") ?? 0, pct: numberAt(t, r, "gain_pct") ?? 0 })).filter((x) => x.gain > 0).sort((a, b) => b.gain - a.gain);
  if (!rows.length) return;
  const sum = (f: (x: (typeof rows)[0]) => number) => rows.reduce((n, x) => n + f(x), 0), box = h("div", { class: "figures" });
  add(box, figure("Missing to the roof, at most", `${time(sum((x) => x.gain))}, ${percent(sum((x) => x.pct))} of device work`, "the sum of gain: what all of these took less what they would take at the peaks"));
  for (const [i, x] of rows.slice(0, 3).entries()) add(box, figure(`${["First", "Then", "Then"][i]}: ${middle(nameOf(x.r), 260, "12.5px system-ui, sans-serif")}`, `${time(x.gain)}, ${percent(x.pct)}`, `${nameOf(x.r)}: its gain at most, and that of device work`));
  add(page, box);
}

export const roofline: View = {
  id: "roofline",
  title: "Roofline",
  group: "Kernels and ops",
  ofDevice: true,
  async show(page, c) {
    const by = c.args.by ?? "op", t = await report(c, "roofline", { group_by: by });
    add(page, h("div", { class: "choices" }, choice(c, "By", "by", [["op", "op"], ["shape", "op and shape"], ["kernel", "kernel"]])));
    const short = by === "kernel" ? await shortKernels(c) : (name: Cell) => String(name ?? ""), nameOf = (r: Cell[]) => [textAt(t, r, "op") || short(textAt(t, r, "kernel")), textAt(t, r, "direction"), textAt(t, r, "done_by") === "copy engines" ? "copy engines" : ""].filter((x) => x).join(", ");
    gains(page, t, nameOf);
    add(page, await sumsNote(c));
    chart(page, t, nameOf);
    showReport(page, "roofline", t, { title: "Ops against the peaks", steps: c, hide: t.columns.map((x) => x.id).filter((id) => HIDDEN.test(id) || (/^(over_peak|unknown)$/.test(id) && t.rows.every((r) => !textAt(t, r, id)))), draw: { kernel: drawShort(short) } });
  },
};
