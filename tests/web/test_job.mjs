// The page of a job: its numbers are those of `opscope report` about the folder of the ranks.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, copyFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Absent, assert, near, same } from "./harness.mjs";

const TP8 = join(process.env.OPSCOPE_DATA, "multirank/megatron_a100_tp8"), SAMPLED = join(process.env.OPSCOPE_DATA, "multirank/hta_trace_filter");
const VIEWPORTS = [[1920, 1080], [1366, 768]];

function need(folder) {
  if (!existsSync(folder)) throw new Absent(`no ${folder}`);
}

/** `opscope report NAME FOLDER`. */
function report(name, folder, ...args) {
  return JSON.parse(execFileSync(process.env.OPSCOPE, ["report", name, folder, ...args, "--format=json"], { maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }).toString());
}

async function keyOf(base, n = 0) {
  return (await (await fetch(`${base}api/state`)).json()).inputs[n].input;
}

async function open(t, folder, view = "job", args = {}) {
  const { base } = await t.serve([folder]);
  await t.open(view, await keyOf(base), args, base);
  return base;
}

/** Every table, and every cell of the picture. */
async function numbers(t) {
  need(TP8);
  await open(t, TP8);
  for (const name of ["ranks", "stragglers", "overlap", "collectives"]) await t.sameTable(name, report(name, TP8));
  const late = report("stragglers", TP8), at = (id) => late.columns.findIndex((c) => c.id === id);
  same(await t.figure("Others waited most for"), `rank ${late.rows[0][at("rank")]}`, "the straggler");
  near(await t.page.locator('[data-figure^="They waited, summed over 7 ranks"] b').innerText(), late.rows[0][at("waited_for_ns")], "how long");
  same(await t.figure("Because of"), late.rows[0][at("cause")] ?? "unknown", "why");
  same(await t.figure("Ranks"), "8", "ranks");
  same(await t.figure("Clocks"), "as recorded", "clocks");
  const ranks = report("ranks", TP8), title = { exposed_wait_ns: "Waiting", compute_ns: "Computation", exposed_transfer_ns: "Transfer", idle_ns: "Idle", step_ns: "Step" };
  for (const [id, name] of Object.entries(title)) {
    await t.page.selectOption("label:has-text('Show') select", id);
    await t.ready("job");
    const bar = await t.page.locator(`[aria-label="${name} by rank and step"]`).evaluate((e) => e.chart.getOption().visualMap[0]);
    same(bar.text.length, 2, "numbers at the ends of the colours");
    const cells = (await t.chart(`${name} by rank and step`)).series[0].data, column = ranks.columns.findIndex((c) => c.id === id);
    same(cells.length, 8, "cells: 8 ranks, 1 step");
    for (const [x, y, v] of cells) same(`${x} ${v}`, `0 ${ranks.rows[y][column]}`, `${name} of rank ${y}`);
  }
}

async function groupings(t) {
  need(TP8);
  await open(t, TP8);
  for (const by of ["group", "op", "size", "instance"]) {
    await t.page.selectOption("label:has-text('Rows by') select", by);
    await t.ready("job");
    await t.sameTable("collectives", report("collectives", TP8, `--group-by=${by}`));
  }
}

/** A row of a rank leads to its pages, and a cell of the picture to its timeline. */
async function ways(t) {
  need(TP8);
  const base = await open(t, TP8);
  await t.row("ranks", "6").first().click();
  await t.ready("overview");
  assert(/megatron_kineto_\d/.test(decodeURIComponent(await t.url())), await t.url());
  await t.open("job", await keyOf(base), {}, base);
  await t.page.locator('[role="img"]').first().click({ position: { x: 300, y: 40 }, force: true });
  await t.ready("timeline");
}

/** What is refused or missing is said, not left out. */
async function doubts(t) {
  need(SAMPLED);
  await open(t, SAMPLED);
  const text = await t.page.locator("main").innerText();
  for (const want of ["2 of 128 ranks are here", "cannot be compared", "do not coincide"]) assert(text.includes(want), `not on the page: ${want}`);
  same(await t.figure("Ranks"), "2 of 128", "ranks");
  same(await t.figure("Clocks"), "unknown", "clocks");
  same(await t.figure("Others waited most for"), "unknown", "nobody is named");
}

async function missing(t) {
  need(TP8);
  const folder = mkdtempSync(join(tmpdir(), "opscope-job-"));
  try {
    for (const f of readdirSync(TP8).filter((f) => !/[34]\.json/.test(f))) copyFileSync(join(TP8, f), join(folder, f));
    writeFileSync(join(folder, "megatron_kineto_4.json"), '{"distributedInfo": {"rank": 4, "world_size": 8}, "traceEvents": 17}');
    const { base } = await t.serve([folder]);
    await t.open("job", await keyOf(base), {}, base);
    const text = await t.page.locator("main").innerText();
    assert(text.includes("6 of 8 ranks are here; missing: 3, 4."), "the missing ranks are named");
    assert(/megatron_kineto_4\S* is left out/.test(text), "the damaged rank is named");
    await t.sameTable("ranks", report("ranks", folder));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function noJob(t) {
  await t.open("job", "own");
  assert((await t.page.locator(".empty").first().innerText()).includes("no job"), "it says so");
}

/** Nothing is cut off, at both widths. */
async function sizes(t) {
  need(TP8);
  for (const theme of process.env.OPSCOPE_SCREENSHOTS ? ["light", "dark"] : ["light"]) {
    await t.fresh(theme);
    const { base } = await t.serve([TP8]);
    for (const [width, height] of VIEWPORTS) {
      await t.page.setViewportSize({ width, height });
      await t.open("job", await keyOf(base), {}, base);
      const wide = await t.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert(wide <= 0, `${width}: the page is ${wide} pixels too wide`);
      await t.shot(`job-${theme}-${width}`);
    }
  }
}

/** What the timeline of the chosen ranks draws: their lanes in order, and a chain of arrows through each collective. */
async function timeline(t) {
  need(TP8);
  const base = await open(t, TP8, "ranks-timeline", { ranks: "0,3..5" }), line = () => t.page.locator(".tl canvas");
  await t.until("a whole picture", () => line().evaluate((e) => e.timeline.stats.idle));
  const { bands, ties, found } = await line().evaluate((e) => ({
    bands: e.timeline.layout.bands.filter((b) => b.kind === "process").map((b) => b.title),
    ties: e.timeline.scene.ties, found: e.timeline.ties.found,
  }));
  same(bands.join(), "rank 0,rank 3,rank 4,rank 5", "ranks");
  same(found, 84, "collectives in view");
  const all = report("collectives", TP8, "--group-by=instance"), last = all.columns.findIndex((c) => c.id === "last_rank"), wait = all.columns.findIndex((c) => c.id === "wait_ns");
  same(ties.reduce((n, x) => n + x.wait_ns, 0), all.rows.reduce((n, r) => n + r[wait], 0), "what their ranks waited");
  for (const x of ties) {
    same(x.parts.length, 4, "parts");
    assert(x.parts.every((p, i) => !i || p.start >= x.parts[i - 1].start), "arrows lead on in time");
    assert(all.rows.some((r) => r[wait] === x.wait_ns && r[last] === x.last), "the rank that came last");
  }
  await t.until("the strip shows when the ranks were busy", async () => ((await t.page.locator(".tl .minimap .busy").getAttribute("d")) ?? "").length > 100);
  await t.shot("ranks-timeline");
  await t.open("ranks-timeline", await keyOf(base), { ranks: "0,6", from: "240000000", to: "270000000" }, base);
  await t.until("a whole picture", () => line().evaluate((e) => e.timeline.stats.idle));
  await t.page.setViewportSize({ width: 1366, height: 768 });
  await line().evaluate((e) => e.timeline.jump({ ...e.timeline.scene.ties[0].parts[0] }));
  await t.page.waitForSelector(".panel h3");
  assert((await t.page.locator(".panel h3").innerText()).includes("nccl"), "a part of a collective is a kernel of NCCL");
  await t.shot("ranks-timeline-part");
  const own = await keyOf(base), path = join(TP8, "megatron_kineto_0.json.gz"), mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;
  await t.open("timeline", own, {}, base);
  await t.until("the track of communication", () => line().evaluate((e) => e.timeline.layout.curves.some((c) => c.kind === "communication")));
  const { steps } = await line().evaluate((e) => e.timeline.info), c = await (await fetch(`${base}api/timeline/counters?${new URLSearchParams({ input: own, from: steps[0].start, to: steps.at(-1).end, points: 2000 })}`)).json();
  const busy = JSON.parse(execFileSync(process.env.OPSCOPE, ["report", "gpu-timeline", path, "--format=json"], { stdio: ["ignore", "pipe", "ignore"] })), id = (x) => busy.columns.findIndex((k) => k.id === x);
  for (const [kind, values] of [["communication", c.devices[0].communication], ["exposed_communication", c.devices[0].exposed_communication]]) {
    const want = busy.rows.find((r) => r[id("kind")] === kind)[id("share_pct")];
    assert(Math.abs(100 * mean(values) - want) < 0.05, `${kind}: ${100 * mean(values)} %, expected ${want}`);
  }
}

/** Dumps of a flight recorder open at where the job hangs, and nothing there refuses. */
async function hanging(t) {
  const folder = join(process.env.OPSCOPE_DATA, "recorders/nccl_fr/lock_gil_2nd");
  need(folder);
  const { base } = await t.serve([folder]);
  t.origin = base.replace(/[^/]*$/, "");
  await t.page.goto("about:blank");
  await t.page.goto(base);
  await t.ready("job");
  same(await t.page.locator("main h3").first().innerText(), "Where the job hangs", "what stands first");
  await t.sameTable("hangs", report("hangs", folder));
  same(await t.page.locator("main .empty").count(), 0, "parts without anything");
}

export const tests = [
  ["where a job hangs", hanging],
  ["tables and picture of a job", numbers],
  ["collectives in each grouping", groupings],
  ["from a rank to its pages", ways],
  ["clocks that are refused", doubts],
  ["ranks that are missing or damaged", missing],
  ["one recording is no job", noJob],
  ["a job at two sizes", sizes],
  ["one timeline of chosen ranks", timeline],
];
