// The ranks of a job together: where the time of each went in each step, whom the others waited for and why, and what of the collectives is waiting.
import { columnOf, get, numberAt, textAt, type Args, type Report, type State } from "../api";
import { dark, showChart } from "../chart";
import { add, h, select } from "../dom";
import { known, note, percent, time } from "../format";
import { choice, choose, figure, part, showReport } from "../parts";
import * as place from "../place";
import type { Context, View } from "../view";

/** What /api/job says. */
export interface JobInfo {
  world: number;
  missing: number;
  repeated: number;
  left_out: number;
  collectives: number;
  ranks: { rank: number; input: string; worker: string; clock: string; offset_ns: number; steps: number; collectives: number }[];
  reports: { name: string; title: string; group_by: string[] }[];
}

interface JobSteps {
  whole: boolean;
  steps: number[];
  ranks: ({ rank: number } & Record<string, (number | null)[]>)[];
}

/** What the picture of ranks and steps shows: ids as in the report `ranks`. */
const QUANTITIES: [id: string, title: string, help: string][] = [
  ["exposed_wait_ns", "Waiting", "only collectives ran, and the last rank had not come"],
  ["compute_ns", "Computation", "the GPU ran any kernel but collectives"],
  ["exposed_transfer_ns", "Transfer", "only collectives ran, and all ranks had come"],
  ["exposed_unknown_ns", "Transfer or waiting", "only collectives ran, and how long they waited is unknown"],
  ["exposed_copy_ns", "Copies", "the GPU only copied"],
  ["idle_ns", "Idle", "the GPU did nothing"],
  ["step_ns", "Step", "its length, with the device work that it launched"],
];

/** The run of the input that is chosen. */
export async function runOf(c: Context): Promise<string> {
  const state = await get<State>("/api/state", {}, c.signal);
  return state.inputs.find((i) => i.input === c.input)?.run ?? "";
}

function ask(c: Context, run: string, name: string, args: Args = {}): Promise<Report> {
  return get<Report>(`/api/job/report/${name}`, { run, steps: c.args.steps, ...args }, c.signal, c.progress);
}

/** Without `late` it is not known who waited for whom. */
function figures(box: HTMLElement, job: JobInfo, ranks: Report, late: Report | undefined): void {
  const list = h("div", { class: "figures" }), worst = late?.rows[0], clocks = [...new Set(job.ranks.map((r) => r.clock))];
  const here = job.missing ? `${job.ranks.length} of ${job.world}` : String(job.ranks.length);
  add(list, figure("Ranks", here, job.missing ? `${job.missing} ranks of the job have no recording here` : "all ranks of the job are here"));
  add(list, figure("Clocks", clocks.length === 1 ? clocks[0] : "some unknown", "how the clocks of the ranks were found"));
  const waits = ranks.rows.map((r) => numberAt(ranks, r, "exposed_wait_ns")).filter((v): v is number => v !== undefined);
  const steps = ranks.rows.map((r) => numberAt(ranks, r, "step_ns")).filter((v): v is number => v !== undefined), sum = (v: number[]) => v.reduce((a, b) => a + b, 0), most = Math.max(0, ...ranks.rows.map((r) => numberAt(ranks, r, "steps") ?? 0));
  add(list, figure("Waiting, of the step", waits.length && steps.length === waits.length ? percent((100 * sum(waits)) / sum(steps)) : undefined, "exposed waiting / step, over all ranks"));
  if (late && worst && (numberAt(late, worst, "waited_for_ns") ?? 0) > 0) {
    add(list, figure("Others waited most for", `rank ${worst[columnOf(late, "rank")]}`, note(late.notes[0] ?? "")));
    add(list, figure(`They waited, summed over ${job.ranks.length - 1} ${job.ranks.length === 2 ? "rank" : "ranks"}${most > 1 ? ` and ${most} steps` : ""}`, known(numberAt(late, worst, "waited_for_ns"), time), "device time, summed over the ranks that waited"));
    add(list, figure("Because of", textAt(late, worst, "cause") || undefined, "what took that rank longer than the others"));
    const op = textAt(late, worst, "op");
    if (op) add(list, figure("At op", op.length > 40 ? op.slice(0, 39) + "…" : op, op));
  } else {
    add(list, figure("Others waited most for", late ? "nobody" : undefined));
  }
  add(box, list);
}

/** Ranks x steps, darker for more. */
function heatMap(box: HTMLElement, c: Context, job: JobInfo, data: JobSteps): void {
  const there = QUANTITIES.filter(([id]) => data.ranks.some((r) => r[id].some((v) => v)));
  const [id, title, help] = there.find(([x]) => x === c.args.show) ?? there[0] ?? QUANTITIES[0];
  const cells = data.ranks.flatMap((r, y) => r[id].map((v, x) => [x, y, v ?? "-"] as [number, number, number | "-"])), values = cells.flatMap((x) => (x[2] === "-" ? [] : [x[2]]));
  add(box, h("div", { class: "choices" }, select("Show", there.map(([x, t]): [string, string] => [x, t]), id, (v) => choose("show", v)), h("span", { class: "note" }, `Of each rank, per step: ${help}.`)));
  const names = data.steps.map((s) => (data.whole ? "all device work" : String(s))), most = values.reduce((a, b) => Math.max(a, b), 1), low = id === "step_ns" ? values.reduce((a, b) => Math.min(a, b), most) : 0;
  const chart = showChart(box, `${title} by rank and step`, {
    tooltip: { confine: true, formatter: (p: any) => `rank ${data.ranks[p.value[1]].rank}, step ${names[p.value[0]]}<br>${title}: ${typeof p.value[2] === "number" ? time(p.value[2]) : "no such step"}` },
    grid: { left: 64, right: 110, top: 10, bottom: 46 },
    xAxis: { type: "category", data: names, name: data.whole ? "" : "step", nameLocation: "middle", nameGap: 26, splitArea: { show: false } },
    yAxis: { type: "category", data: data.ranks.map((r) => `rank ${r.rank}`), inverse: true },
    visualMap: {
      min: low, max: most, calculable: false, orient: "vertical", right: 4, top: 10, itemHeight: 100, text: [time(most), time(low)], formatter: (v: number) => time(v),
      // One hue, dark for more on a light ground and light for more on a dark one.
      inRange: { color: dark() ? ["#1b2733", "#1f5a8a", "#4ea3dd", "#d5ecff"] : ["#eef5fb", "#9cc9ea", "#3d8fc9", "#083c66"] },
    },
    series: [{ type: "heatmap", name: title, data: cells, progressive: 0, emphasis: { itemStyle: { borderColor: dark() ? "#fff" : "#000", borderWidth: 1 } } }],
  } as any, Math.min(620, 90 + Math.max(4, data.ranks.length) * 22));
  chart.on("click", (p: any) => {
    const r = job.ranks.find((x) => x.rank === data.ranks[p.value[1]].rank), steps: Record<string, string> = data.whole ? {} : { steps: String(data.steps[p.value[0]]) };
    if (r) location.hash = place.linkTo("timeline", { input: r.input, ...steps });
  });
  add(box, h("p", { class: "note" }, data.whole ? "No steps were found: the time from the first to the last device work counts as one. A cell leads to the timeline of its rank." : "A cell leads to the step on the timeline of its rank."));
}

/** A row of a table about ranks leads to the rank's own pages. */
function toRank(job: JobInfo, t: Report): (cells: unknown[]) => void {
  const at = columnOf(t, "rank");
  return (cells) => {
    const r = job.ranks.find((x) => x.rank === Number(cells[at]));
    if (r) location.hash = place.linkTo("overview", { input: r.input });
  };
}

const GROUPS: [string, string][] = [["kind", "kind"], ["group", "process group"], ["size", "size"], ["op", "op"], ["instance", "each by itself"]];

async function collectives(box: HTMLElement, c: Context, run: string): Promise<void> {
  const by = GROUPS.find(([id]) => id === c.args.by)?.[0] ?? "kind", t = await ask(c, run, "collectives", { group_by: by });
  add(box, h("div", { class: "choices" }, choice(c, "Rows by", "by", GROUPS, ["collectives.sort", "collectives.page", "collectives.q"])));
  showReport(box, "collectives", t, { title: "Collectives", hide: ["op_count"] });
}

async function others(box: HTMLElement, c: Context, run: string, job: JobInfo): Promise<void> {
  const shown = ["ranks", "stragglers", "overlap", "collectives"], more = job.reports.filter((r) => !shown.includes(r.name));
  if (!more.length) return;
  add(box, h("div", { class: "choices" }, choice(c, "More about the ranks", "report", [["", "choose a report"], ...more.map((r): [string, string] => [r.name, r.title])])));
  const r = more.find((x) => x.name === c.args.report);
  if (r) showReport(box, r.name, await ask(c, run, r.name), { title: r.title });
}

/** Dumps of a flight recorder tell where the job hangs, and hold no times for the rest of the page. */
async function hangs(page: HTMLElement, c: Context, run: string, info: JobInfo): Promise<void> {
  await part(page, "Where the job hangs", async (box) => {
    const t = await ask(c, run, "hangs");
    showReport(box, "hangs", t, { title: "Where the job hangs" });
    for (const s of t.sections) showReport(box, "hangs", s, { title: s.title });
  });
  await part(page, "More", (box) => others(box, c, run, { ...info, reports: info.reports.filter((r) => r.name !== "hangs") }));
}

async function isOfFlightRecorder(c: Context, run: string): Promise<boolean> {
  const state = await get<State>("/api/state", {}, c.signal);
  return state.inputs.some((i) => i.run === run && i.format === "flight-recorder");
}

export const job: View = {
  id: "job",
  title: "Job",
  group: "Run",
  ofRun: true,
  shows: { ranks: {}, stragglers: {}, overlap: {}, collectives: {}, hangs: {} },
  async show(page, c) {
    const run = await runOf(c), info = await get<JobInfo>("/api/job", { run }, c.signal, c.progress);
    if (await isOfFlightRecorder(c, run)) return hangs(page, c, run, info);
    await part(page, "Ranks", async (box) => {
      const ranks = await ask(c, run, "ranks"), head = h("div", {});
      add(box, head);
      await part(box, "Ranks and steps", async (inner) => heatMap(inner, c, info, await get<JobSteps>("/api/job/steps", { run, steps: c.args.steps }, c.signal)));
      let late: Report | undefined;
      await part(box, "For whom the others waited, and why", async (inner) => {
        late = await ask(c, run, "stragglers");
        showReport(inner, "stragglers", late, { title: "For whom the others waited, and why", choose: toRank(info, late) });
      });
      figures(head, info, ranks, late);
      showReport(box, "ranks", ranks, { title: "Each rank", hide: ["device", "gpu", "steps", "drift_ppm", "clock", "input"], choose: toRank(info, ranks) });
    });
    await part(page, "Overlap", async (box) => {
      const t = await ask(c, run, "overlap");
      showReport(box, "overlap", t, { title: "Communication beside computation", choose: toRank(info, t) });
    });
    await part(page, "Collectives", (box) => collectives(box, c, run));
    await part(page, "More", (box) => others(box, c, run, info));
  },
};
