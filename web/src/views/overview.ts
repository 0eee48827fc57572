// The first page: where the steps' time went, how well the GPUs were used, what to do.
import type { Cell, Table } from "../api";
import { columnOf, numberAt, textAt } from "../api";
import { COLORS, showStacked } from "../chart";
import { add, h } from "../dom";
import { note, known, percent, time } from "../format";
import { deviceFacts, showDevices } from "../devices";
import { showFindings } from "../findings";
import { figure, part, pathEnd, sectionOf, showReport } from "../parts";
import * as place from "../place";
import { showSteps, toStep } from "../steps";
import { roleColor } from "../timeline/colors";
import { advise, report, summedOver, sumsNote, type Context, type View } from "../view";

async function steps(box: HTMLElement, c: Context): Promise<void> {
  const t = await report(c, "overview"), figures = h("div", { class: "figures" }), row = h("div", { class: "row" });
  const whole: Cell[] | undefined = t.rows[0], parts = t.rows.slice(1);
  const looked = !!whole && textAt(t, whole, "role") === "Time Looked At", title = looked ? "Time looked at" : "Average step"; // no steps were found
  add(figures, figure(title, known(whole && numberAt(t, whole, "mean_ns"), time), note(t.notes[0] ?? "")));
  for (const r of [...parts].sort((a, b) => (numberAt(t, b, "share_pct") ?? 0) - (numberAt(t, a, "share_pct") ?? 0)).slice(0, 4))
    add(figures, figure(textAt(t, r, "role"), known(numberAt(t, r, "share_pct"), percent), `${known(numberAt(t, r, "mean_ns"), time) ?? "unknown"} of the ${title.toLowerCase()}`));
  add(box, figures, row);
  const other = parts.find((r) => textAt(t, r, "role") === "Other");
  if (other && (numberAt(t, other, "share_pct") ?? 0) >= 10)
    add(box, h("p", { class: "note" }, "Other is time in which none of the other roles was busy: what the host did meanwhile, and why the GPU waited, is on the page ", h("a", { href: place.linkTo("advice") }, "Advice"), "."));
  showReport(row, "overview", t, { title });
  const s = sectionOf(t, "steps");
  if (s && s.rows.length > 1) showSteps(row, "Steps", s, { height: 300, choose: toStep(s) });
  else showStacked(row, `${title} by role`, parts.map((r, k) => ({ color: roleColor(textAt(t, r, "role")) ?? COLORS[k % COLORS.length], name: textAt(t, r, "role"), value: numberAt(t, r, "mean_ns") ?? 0 })), time);
  for (const n of s?.notes.filter((n) => !n.startsWith("Roles sum") && !t.notes.some((x) => x.startsWith(n))) ?? []) add(box, h("p", { class: "note" }, note(n)));
}

/** Colours of what the time was used for, by the words of the report `summary`. */
const USES: [use: RegExp, color: string][] = [
  [/^Tensor Core/, COLORS[2]], [/^other kernels/, "#0072b2"], [/^copies/, "#e69f00"], [/^data loader/, "#027395"], [/^file/, "#7e6f54"], [/^CPU/, "#6dbf70"], [/^use /, COLORS[2]], [/^could, but/, "#d55e00"], [/unknown/, "#7f7f7f"],
];
const useColor = (use: string) => USES.find(([words]) => words.test(use))?.[1] ?? "#c9cdd9";

/** DLProf's panels: the time by use, each moment counting once, and the ops' device time by Tensor Cores. */
async function uses(box: HTMLElement, c: Context): Promise<void> {
  const t = await report(c, "summary"), ops = sectionOf(t, "ops"), row = h("div", { class: "row" });
  const parts = (s: Table, name: string, value: string) => s.rows.map((r) => ({ name: textAt(s, r, name), value: numberAt(s, r, value) ?? 0, color: useColor(textAt(s, r, name)) })).filter((x) => x.name !== "all");
  add(box, row, await sumsNote(c));
  showStacked(row, "What the time was used for", parts(t, t.columns[0].id, "total_ns"), time);
  const byCores = ops ? parts(ops, ops.columns[0].id, "gpu_ns") : [];
  if (byCores.some((x) => x.value)) showStacked(row, "Device time of ops by Tensor Cores", byCores.map((x) => ({ ...x, name: x.name === "all others" ? "other ops" : `ops that ${x.name}` })), time);
  const all = ops && numberAt(ops, ops.rows.find((r) => r[0] === "all") ?? [], "gpu_ns"), sum = byCores.reduce((n, x) => n + x.value, 0);
  if (all && sum > 1.001 * all) add(box, h("p", { class: "note" }, `Ops overlap on the device: these add up to more than the ${time(all)} in which any of them ran.`));
}

async function topOps(box: HTMLElement, c: Context): Promise<void> {
  const byGpu = await report(c, "ops", { sort: "-total_gpu_ns", limit: 10 }), gpu = byGpu.rows.some((r) => numberAt(byGpu, r, "total_gpu_ns"));
  const t = gpu ? byGpu : await report(c, "ops", { sort: "-total_cpu_ns", limit: 10 });
  const wanted = ["name", "shapes", "direction", "calls", ...(gpu ? ["total_gpu_ns", "gpu_pct", "tc_eligible", "tc_used"] : ["total_cpu_ns", "mean_cpu_ns"])];
  const opId = columnOf(t, "op_id"), direction = columnOf(t, "direction");
  showReport(box, "ops", t, {
    title: `Top 10 ops by ${gpu ? "GPU" : "CPU"} time, of ${await summedOver(c)}`,
    hide: t.columns.map((x) => x.id).filter((id) => !wanted.includes(id)),
    draw: { name: pathEnd },

    choose: (cells) => (location.hash = place.linkTo("ops-kernels", { op: JSON.stringify([cells[opId], cells[direction]]) })),
  });
}

export const overview: View = {
  id: "overview",
  title: "Overview",
  group: "Run",
  async show(page, c) {
    await part(page, "Steps", (box) => steps(box, c));
    await part(page, "GPUs", async (box) => showDevices(box, await report(c, "devices"), await deviceFacts(c)));
    await part(page, "What the time was used for", (box) => uses(box, c));
    await part(page, "What to do", async (box) => showFindings(box, c, await advise(c), { title: "What to do", most: 8, brief: true }));
    await part(page, "Top ops", (box) => topOps(box, c));
    add(page, h("p", {}, h("a", { href: place.linkTo("reports") }, "All reports")));
  },
};
