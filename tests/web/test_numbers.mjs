// Numbers on the pages: those that the TensorBoard plugin gave for the same trace, and those of `opscope report`.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Absent, assert, INPUTS, near, same } from "./harness.mjs";

const us = (v) => Number(v) * 1e3;

/** Two steps are both, and chosen ones are so many. */
async function sums(t) {
  const { base } = await t.serve([join(process.env.OPSCOPE_ROOT, "tests/data/synthetic/two_steps_overlap.json")]);
  for (const [args, want] of [[{}, "both steps"], [{ steps: "1..2" }, "the 2 steps"]]) {
    await t.open("kernels", "/two_steps_overlap/default", args, base);
    same(await t.page.locator("[data-sums]").first().innerText(), `Times are of ${want} together.`, "over what uses are summed up");
  }
}

/** Columns of a table of the plugin, by name. */
function columns(table) {
  const at = {};
  table.columns.forEach((c, i) => (at[c.name] = i));
  return at;
}

async function overview(t) {
  await t.open("overview", "plugin");
  const rows = await t.rows("overview"), want = t.expected("overview").performance;
  near(rows[0][1][1], us(177592), "average step");
  same(await t.figure("Kernel busy"), "55.51 %", "kernel busy");
  assert(await t.figure("MFU"), "MFU has a figure, be it unknown");
  same(await t.figure("SM efficiency"), "54.68 %", "SM efficiency");
  same(await t.page.locator(".device .note", { hasText: "MFU" }).count(), 0, "a reason why the MFU is unknown, which it is not");
  same(await t.figure("Occupancy"), "49.13 %", "occupancy");
  const steps = t.report("steps", "plugin").rows.length;
  same(await t.page.locator("[data-sums]").first().innerText(), `Times are of ${steps === 2 ? "both" : `all ${steps}`} steps together.`, "over what uses are summed up");
  same(await t.figure("Tensor Core share"), "0.00 %", "Tensor Core share");
  const all = [want[0], ...want[0].children], byName = new Map(rows.map((r) => [r[0][1], r.map(([, text]) => text)]));
  same(rows.length, all.length, "roles");
  same(byName.size, all.length, "names of roles");
  for (const w of all) {
    const cells = byName.get(w.name);
    assert(cells, `no role ${w.name}`);
    assert(Math.abs(parse(cells[1]) - us(w.value)) <= 1000, `${w.name}: ${cells[1]}, the plugin has ${w.value} us`);
    if (w.extra !== undefined) near(cells[2], Number(w.extra), w.name);
  }
}

/** What the time was used for, each moment once, and the ops' device time by Tensor Cores. */
async function uses(t) {
  await t.open("overview", "h100");
  const s = t.report("summary", "h100"), ops = s.sections.find((x) => x.name === "ops"), parts = async (title) => (await t.chart(title)).series.map((x) => `${x.name} ${x.data[0]}`).join();
  same(await parts("What the time was used for"), s.rows.filter((r) => r[2]).map((r) => `${r[0]} ${r[2]}`).join(), "uses");
  same(await parts("Device time of ops by Tensor Cores"), ops.rows.filter((r) => r[1] && r[0] !== "all").map((r) => `${r[0] === "all others" ? "other ops" : `ops that ${r[0]}`} ${r[1]}`).join(), "ops by Tensor Cores");
  same(await t.page.locator("[data-sums]").first().innerText(), "Times are of one step.", "over what they are summed up");
}

function parse(text) {
  const [v, unit] = text.split(" ");
  return Number(v) * { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[unit];
}

/** The bars of a step are its parts, and add up to it. */
async function steps(t) {
  await t.open("overview", "plugin");
  const chart = await t.chart("Steps"), s = t.report("overview", "plugin").sections.find((x) => x.name === "steps"), total = s.columns.findIndex((c) => c.id === "total_ns");
  same(chart.x.join(), "5,6,7,8,9,10", "steps");
  for (const [i, row] of s.rows.entries()) same(chart.series.reduce((sum, x) => sum + x.data[i], 0), row[total], `step ${row[0]}`);
  same(new Set(chart.series.map((x) => x.stack)).size, 1, "stacks");
}

async function kernels(t) {
  await t.open("kernels", "plugin");
  const want = t.expected("kernel_table").data, at = columns(want), rows = await t.rows("kernels"), own = t.report("kernels", "plugin");
  const id = (name) => own.columns.findIndex((c) => c.id === name), byName = new Map(rows.map((r) => [r.find(([c]) => c === id("name"))[1], new Map(r)]));
  same(rows.length, want.rows.length, "kernels");
  for (const w of want.rows) {
    const r = byName.get(w[at["Name"]].replace(/\s+/g, " "));
    assert(r, `no kernel ${w[at["Name"]]}`);
    same(r.get(id("tensor_cores")), w[at["Tensor Cores Used"]].toLowerCase(), "Tensor Cores");
    near(r.get(id("calls")), w[at["Calls"]], "calls");
    near(r.get(id("total_ns")), us(w[at["Total Duration (us)"]]), "total");
    assert(Math.abs(parse(r.get(id("mean_ns"))) - us(w[at["Mean Duration (us)"]])) <= 501, `mean of ${w[0]}`);
    near(r.get(id("max_ns")), us(w[at["Max Duration (us)"]]), "longest");
    near(r.get(id("min_ns")), us(w[at["Min Duration (us)"]]), "shortest");
  }
}

async function operators(t) {
  await t.open("operators", "plugin", { steps: "all" });
  const list = t.expected("operator_table").data, own = t.report("operators", "plugin", "--steps=all"), rows = await t.rows("operators");
  const id = (name) => own.columns.findIndex((c) => c.id === name), byName = new Map(rows.map((r) => [r[0][1], new Map(r)]));
  same(rows.length, list.length, "operators");
  for (const w of list) {
    const r = byName.get(w.name);
    assert(r, `no operator ${w.name}`);
    near(r.get(id("calls")), w.calls, `calls of ${w.name}`);
    for (const part of ["device_self", "device_total", "host_self", "host_total"]) near(r.get(id(part + "_ns")), us(w[part + "_duration"]), `${part} of ${w.name}`);
    same(r.get(id("tc_eligible")), w.tc_eligible.toLowerCase(), `Tensor Cores and ${w.name}`);
  }
  const self = (await t.chart("Device self time")).series[0].data, whole = t.expected("operator_pies").device_self_time.rows;
  const value = new Map(self.map((x) => [x.name, x.value]));
  same(self.length, 11, "the ten largest, and the rest");
  for (const [name, v] of whole.slice(0, 5)) same(value.get(name), us(v), name);
  same(self.reduce((sum, x) => sum + x.value, 0), us(whole.reduce((sum, [, v]) => sum + v, 0)), "all bars together");
  same(await t.page.locator("[role=img]").count(), 2, "charts: of times that count twice there are none");
}

/** Rows of a CSV file as objects, behind `before` lines of other text. */
function csv(path, before = 0) {
  const rows = readFileSync(path, "utf8").trim().split(/\r?\n/).slice(before).map((l) => [...l.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].slice(0, -1).map(([, v]) => (v.startsWith('"') ? v.slice(1, -1).replace(/""/g, '"') : v)));
  const last = (r) => rows[0].map((name, i) => [name, r[i] ?? ""]);
  return rows.slice(1).map((r) => Object.fromEntries(last(r)));
}

const ids = (t, report, input) => new Map(t.report(report, input).columns.map((c, i) => [c.id, i]));
const squeezed = (text) => text.replace(/\s+/g, " ").trim();

/** DLProf's own tables of the same run. */
async function dlprofTables(t) {
  t.need("dlprof");
  const folder = dirname(INPUTS.dlprof.path), types = csv(join(folder, "dlprof_op_type.csv"), 1), id = ids(t, "op-types", "dlprof");
  await t.open("op-types", "dlprof");
  const shown = new Map((await t.rows("op-types")).map((r) => [r[0][1], new Map(r)]));
  assert(types.length > 5, `${types.length} types`);
  for (const w of types) {
    const r = shown.get(w["Op Type"].replace(/_v\d+$/, "")); // the version of a call's ABI is no part of its type here
    assert(r, `no type ${w["Op Type"]}`);
    for (const [column, name] of [["ops", "# Ops"], ["calls", "# Calls"], ["total_gpu_ns", "Total GPU Time (ns)"], ["total_cpu_ns", "Total CPU Time (ns)"], ["total_overhead_ns", "Total CPU Overhead (ns)"]])
      near(r.get(id.get(column)), Number(w[name]), `${name} of ${w["Op Type"]}`);
  }
  const groups = csv(join(folder, "dlprof_group_op.csv"), 1), at = ids(t, "groups", "dlprof");
  await t.open("groups", "dlprof");
  const root = new Map((await t.rows("groups"))[0]), w = groups.find((g) => g.Name === "/");
  for (const [column, name] of [["calls", "Num Calls Aggregated"], ["gpu_ns", "Total GPU Time (ns)"], ["cpu_ns", "Total CPU Time (ns)"]]) near(root.get(at.get(column)), Number(w[name]), `${name} of all`);
}

/** TraceLens' summary of the same trace. */
async function traceLensKernels(t) {
  t.need("h100");
  const sums = new Map(), id = ids(t, "kernels", "h100");
  for (const k of csv(join(INPUTS.h100.path.replace(".json.gz", "_perf_report_csvs"), "kernel_summary.csv"))) {
    const name = squeezed(k["Kernel name"]), s = sums.get(name) ?? [0, 0];
    sums.set(name, [s[0] + Number(k["Kernel duration (µs)_count"]), s[1] + 1000 * Number(k["Kernel duration (µs)_sum"])]);
  }
  await t.open("kernels", "h100");
  let compared = 0;
  for (const r of await t.rows("kernels")) {
    const [calls, total] = sums.get(squeezed(r[0][1])) ?? [], cells = new Map(r);
    assert(calls, `TraceLens has no ${r[0][1]}`);
    near(cells.get(id.get("calls")), calls, `calls of ${r[0][1]}`);
    near(cells.get(id.get("total_ns")), total, `time of ${r[0][1]}`);
    compared++;
  }
  assert(compared > 5, `${compared} kernels`);
}

/** The same recording as another tool wrote it as a Chrome trace, with short names. */
async function nsysKernels(t) {
  t.need("nsys");
  const sums = new Map(), id = ids(t, "kernels", "nsys");
  for (const e of JSON.parse(gunzipSync(readFileSync(INPUTS.nsys.path.replace(".sqlite", ".json.gz"))))) {
    if (e.cat !== "cuda") continue;
    const s = sums.get(e.name) ?? [0, 0];
    sums.set(e.name, [s[0] + 1, s[1] + Math.round(1000 * e.dur)]);
  }
  await t.open("kernels", "nsys", { steps: "all" });
  const rows = await t.rows("kernels");
  same(rows.length, sums.size, "kernels");
  for (const r of rows) {
    const name = r[0][1].replace(/^void /, "").replace(/[<(].*$/, "").split("::").pop(), [calls, total] = sums.get(name) ?? [];
    assert(calls, `the other trace has no ${name}`);
    near(new Map(r).get(id.get("calls")), calls, `calls of ${name}`);
    near(new Map(r).get(id.get("total_ns")), total, `time of ${name}`);
  }
}

/** Notes name what the pages have, not options of the program. */
async function notes(t) {
  const text = () => t.page.locator("main").innerText();
  await t.open("overview", "dlprof");
  assert(/No steps were found: .* The page Advice says what to do about it\./.test(await text()), "the note does not name the page Advice");
  same((await text()).split("No steps were found").length, 2, "the note stands there once");
  near(await t.figure("Time looked at"), t.report("overview", "dlprof").rows[0][1], "what is shown in place of a step");
  assert(!/ a step$/m.test((await t.page.locator(".finding summary").allInnerTexts()).join("\n")), "a gain per step where there are no steps");
  await t.open("kernels", "nsys");
  assert(/Outside them: 13 of 3,?778 .*; all in the field Steps above counts everything\./.test(await text()), "the note does not name the field Steps");
  const path = join(dirname(INPUTS.nsys.path), "../2024.6_fuser_h100/report1__da819b5f.sqlite");
  if (!existsSync(path)) throw new Absent(`no ${path}`);
  await t.open("overview", "/report1__da819b5f/default", {}, (await t.serve([path])).base);
  assert(/\. The field Key op of the page Iterations takes an op that each step, .*; the page Iterations lists ops that repeat\./.test(await text()), "the note does not name the field Key op");
}

/** Sums of one step, which the address keeps; where more than the steps was recorded, why there are none. */
async function perStep(t) {
  await t.open("overview", "nsys");
  const why = t.report("mfu", "nsys"), reasons = why.rows.map((r) => r[why.columns.findIndex((c) => c.id === "why")]);
  same(await t.figure("MFU"), "unknown", "MFU of what holds no FLOPs");
  same(await t.page.locator(".device .note", { hasText: "MFU" }).innerText(), `MFU is unknown: ${reasons.at(-1)}.`, "why");

  await t.open("kernels", "plugin");
  const sums = t.page.locator("section.table", { has: t.page.locator('[data-table="kernels"]') }).getByLabel("Sums"), want = t.report("kernels", "plugin", "--per=step");
  await sums.selectOption("step");
  await t.page.waitForFunction(() => /kernels\.per=step/.test(location.hash));
  await t.until("sums of a step", async () => !(await t.sameTable("kernels", want).catch((e) => e)));
  await t.page.reload();
  await t.ready("kernels");
  await t.sameTable("kernels", want);
  await sums.selectOption("");
  await t.until("sums of all", async () => !(await t.sameTable("kernels", t.report("kernels", "plugin")).catch((e) => e)));
  await t.open("kernels", "nsys", { steps: "all" });
  await sums.selectOption("step");
  await t.until("the reason", async () => /no sums|more than the steps|no steps/.test(await t.page.locator(".found").first().innerText()) && (await sums.inputValue()) === "");
}

/** Tables of pages -> the report that has the same rows. */
const TABLES = [
  // view, key of its table, report, columns that are shown shortened
  ["overview", "overview", "overview"], ["kernels", "kernels", "kernels"], ["operators", "operators", "operators"], ["op-types", "op-types", "op-types"], ["ops-kernels", "ops", "ops", ["name"]],
  ["roofline", "roofline", "roofline"], ["iterations", "steps", "steps"], ["gpus", "devices", "devices"], ["memory", "memory", "memory"],
];

const against = (input) => async (t) => {
  let compared = 0;
  for (const [view, key, report, short] of TABLES) {
    let want;
    try {
      want = t.report(report, input);
    } catch {
      continue; // the input has no such data: test_pages sees that this is said
    }
    await t.open(view, input);
    await t.sameTable(key, want, short);
    compared++;
  }
  assert(compared >= 6, `only ${compared} tables`);
};

async function memoryCurve(t) {
  await t.open("memory", "plugin");
  same(await t.figure("Peak allocated"), "≥ 2.6 GiB", "what is known at least");
  assert(/2,791,636,480 bytes \(2\.6 GiB\)/.test(await t.page.locator("main").innerText()), "long numbers of notes can be read");
  await t.open("memory", "h100");
  const s = t.report("memory", "h100").sections.find((x) => x.name === "curve"), chart = await t.chart("Memory over time"), at = s.columns.findIndex((c) => c.id === "allocated_bytes");
  same(chart.series[0].data.length, s.rows.length, "points");
  same(Math.max(...chart.series[0].data.map((p) => p[1])), Math.max(...s.rows.map((r) => r[at])), "peak");
  near(await t.figure("Peak allocated"), Math.max(...s.rows.map((r) => r[at])), "peak");
}

/** The categories: the table, and a chart whose parts add up to the report's points. */
async function memoryCategories(t) {
  await t.open("memory", "own");
  const want = t.report("memory-categories", "own"), line = want.sections.find((s) => s.name === "curve"), chart = await t.chart("Memory by what it is used for");
  const at = want.columns.findIndex((c) => c.id === "at_peak_bytes"), sorted = [...want.rows].sort((a, b) => b[at] - a[at]);
  await t.sameTable("memory-categories", { ...want, rows: sorted });
  await t.sameTable("memory-categories-unknown", want.sections.find((s) => s.name === "unknown"));
  const words = { PARAMETER: "Parameters", TEMPORARY: "Temporaries", ACTIVATION: "Activations", GRADIENT: "Gradients", AUTOGRAD_DETAIL: "Values of the backward pass", Unknown: "Unknown" };
  same(chart.series.map((s) => s.name).join(), want.rows.map((r) => words[r[0]]).join(), "categories");
  same((await t.rows("memory-categories")).map((r) => r[0][2]).join(), sorted.map((r) => words[r[0]]).join(), "categories of the table");
  const at_peak = t.report("memory", "own").sections.find((s) => s.name === "held"), parts = (await t.chart("Held at the peak")).series;
  same(parts.map((s) => s.data[0]).join(), at_peak.rows.map((r) => r[2]).join(), "what held the peak");
  near(await t.figure("Peak allocated"), at_peak.rows.reduce((n, r) => n + r[2], 0), "the peak is the sum of what held it");
  same((await t.chart("Memory over time")).series.map((s) => s.name).join(), "Allocated", "no curve of what a CPU reserves");
  for (const [i, r] of line.rows.entries()) {
    same(chart.series.reduce((sum, s) => sum + s.data[i][1], 0), r.slice(1).reduce((a, b) => a + b, 0), `bytes at ${r[0]} ns`);
    same(chart.series[0].data[i][0], r[0], "time");
  }
  await t.open("memory", "own", { from: "5000000", to: "20000000" });
  const held = [line.rows.filter((r) => r[0] <= 5e6).pop(), ...line.rows.filter((r) => r[0] > 5e6 && r[0] <= 2e7)], sum = (r) => r.slice(1).reduce((a, b) => a + b, 0);
  const peak = held.reduce((best, r) => (sum(r) > sum(best) ? r : best)), rows = new Map((await t.rows("memory-categories")).map((r) => [r[0][1], r]));
  for (const [i, c] of line.columns.entries()) {
    if (!i || held.every((r) => !r[i])) continue;
    const r = rows.get(c.title) ?? rows.get(words[c.title]);
    for (const [k, v] of [[1, peak[i]], [3, Math.max(...held.map((x) => x[i]))], [4, held[held.length - 1][i]]]) near(r[k][1], v, `${c.title} in the range, column ${k}`);
  }
}

/** Of a memory snapshot: the peak, who holds what at the end by each grouping, and in what pieces. */
async function memorySnapshot(t) {
  t.need("snapshot");
  const alone = await t.serve([INPUTS.snapshot.path]);
  t.origin = alone.base.replace(/[^/]*$/, "");
  await t.page.goto(alone.base);
  await t.ready("memory"); // where it is opened
  alone.child.kill();
  t.origin = t.base.replace(/[^/]*$/, "");
  await t.open("memory", "snapshot");
  const peaks = t.report("memory", "snapshot").sections.find((x) => x.name === "peaks");
  near(await t.figure("Peak allocated"), peaks.rows[0][peaks.columns.findIndex((c) => c.id === "peak_allocated_bytes")], "peak");
  const tables = await t.page.locator("[data-table]").evaluateAll((list) => list.map((e) => e.dataset.table));
  same(tables.at(-1), "memory", "the table without rows stands last");
  await t.sameTable("leaks", t.report("leaks", "snapshot"));
  const pieces = t.report("fragmentation", "snapshot");
  await t.sameTable("fragmentation", pieces);
  for (const s of pieces.sections) await t.sameTable(`fragmentation-${s.name}`, s);
  await t.open("memory", "snapshot", { owner: "line" });
  await t.sameTable("leaks", t.report("leaks", "snapshot", "--group-by=line"));
  await t.open("memory", "h100");
  await t.sameTable("leaks", t.report("leaks", "h100"));
  same(await t.page.locator("[data-table^=fragmentation]").count(), 0, "a trace says nothing of pieces");
}

async function tensorCores(t) {
  await t.open("kernels", "h100");
  const k = t.report("kernels", "h100"), use = k.columns.findIndex((c) => c.id === "tensor_cores"), total = k.columns.findIndex((c) => c.id === "total_ns");
  const want = k.rows.filter((r) => r[use] === "yes").reduce((sum, r) => sum + r[total], 0);
  assert(want > 0, "some kernels use Tensor Cores");
  same((await t.chart("Tensor Cores by time")).series.find((x) => x.name === "Using Tensor Cores").data[0], want, "time with Tensor Cores");
}

export const tests = [
  ["overview as the plugin's", overview], ["sums of two steps", sums], ["steps add up", steps], ["what the time was used for", uses], ["tables as DLProf's", dlprofTables], ["kernels as TraceLens'", traceLensKernels], ["kernels as another tool's of the nsys file", nsysKernels], ["kernel table as the plugin's", kernels], ["operators as the plugin's", operators],
  ["notes name what pages have", notes],
  ["tables as reports: plugin", against("plugin")], ["tables as reports: h100", against("h100")], ["tables as reports: dlprof", against("dlprof")], ["tables as reports: nsys", against("nsys")],
  ["sums per step", perStep], ["memory curve", memoryCurve], ["memory categories", memoryCategories], ["a memory snapshot", memorySnapshot], ["time with Tensor Cores", tensorCores],
];
