// The start page of a folder: a row for each run, jobs as one row, search, order, comparing two, what comes and goes.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { assert, near, same } from "./harness.mjs";

const DATA = join(process.env.OPSCOPE_ROOT, "tests/data");

/** A folder with three runs, one of them broken, and a job of four ranks. */
function folder() {
  const dir = mkdtempSync(join(tmpdir(), "opscope-runs-"));
  for (const [run, file] of [["first", "synthetic/two_steps_overlap.json"], ["second", "synthetic/training_gpu.json"]]) {
    mkdirSync(join(dir, run));
    cpSync(join(DATA, file), join(dir, run, "trace.json"));
  }
  mkdirSync(join(dir, "broken"));
  writeFileSync(join(dir, "broken", "worker0.pt.trace.json"), '{"traceEvents": nonsense');
  cpSync(join(DATA, "h200/ddp_gloo_late_backward"), join(dir, "ddp"), { recursive: true });
  return dir;
}

const JOB = "job ddp";
const row = (t, key) => t.page.locator(`tr[data-run="${key}"]`);
const cell = (t, key, column) => row(t, key).locator(`td[data-column="${column}"]`);
const names = (t) => t.page.locator("tr[data-run]").evaluateAll((list) => list.map((e) => e.dataset.run));

/** The address that the program prints. */
async function start(t, base) {
  t.origin = base.replace(/[^/]*$/, "");
  await t.page.goto("about:blank");
  await t.page.goto(base);
  await t.ready();
}

const known = (t, key) => t.until(`the figures of ${key}`, async () => (await cell(t, key, "kind").count()) && (await cell(t, key, "kind").innerText()) !== "");

async function figures(t) {
  const dir = folder(), { base, child } = await t.serve([dir]);
  try {
    await start(t, base);
    assert((await t.url()).endsWith("#runs"), await t.url());
    same((await names(t)).sort().join(), ["broken/worker0/default", "first/trace/default", JOB, "second/trace/default"].sort().join(), "rows");
    for (const run of ["first", "second"]) {
      const key = `${run}/trace/default`, file = join(dir, run, "trace.json"), overview = t.program(["report", "overview"], file), found = t.program(["advise"], file);
      await known(t, key);
      near(await cell(t, key, "step").innerText(), overview.rows[0][overview.columns.findIndex((c) => c.id === "mean_ns")], `step of ${run}`);
      const gpus = overview.sections.find((s) => s.name === "devices");
      near(await cell(t, key, "busy").innerText(), gpus.rows[0][gpus.columns.findIndex((c) => c.id === "busy_pct")], `GPU busy of ${run}`);
      assert((await cell(t, key, "findings").innerText()).startsWith(String(found.rows.length)), "findings");
      if (found.rows.length) assert((await cell(t, key, "findings").innerText()).includes(found.rows[0][found.columns.findIndex((c) => c.id === "problem")]), "the first finding");
    }
    assert((await cell(t, "first/trace/default", "mfu").getAttribute("title")).length > 10, "why there is no MFU");
    await t.until("why it cannot be read", async () => (await row(t, "broken/worker0/default").innerText()).includes("no traceEvents array"));
    assert(await row(t, "broken/worker0/default").locator("input").isDisabled(), "what cannot be read is compared with nothing");
    await known(t, JOB);
    const all = t.program(["report", "overview"], join(dir, "ddp"));
    near(await cell(t, JOB, "step").innerText(), all.rows[0][all.columns.findIndex((c) => c.id === "mean_ns")], "step of the job");
    same(await cell(t, JOB, "gpu").innerText(), "4 × NVIDIA H200", "its GPUs");
    await t.accessible("runs, light");
    // Its ranks, by keys alone.
    await row(t, JOB).locator(".fold").focus();
    await t.page.keyboard.press("Enter");
    same(await t.page.locator("tr.rank").count(), 4, "ranks");
    same(await t.page.evaluate(() => document.activeElement.getAttribute("aria-expanded")), "true", "the button keeps the focus");
    await t.until("figures of the ranks", async () => (await t.page.locator("tr.rank td[data-column=kind]").allInnerTexts()).every((x) => x === "kineto"));
    await t.page.setViewportSize({ width: 1366, height: 768 });
    same(await t.page.evaluate(() => document.documentElement.scrollWidth), 1366, "no wider than the window");
    await t.page.keyboard.press("t");
    await t.ready("runs");
    await t.accessible("runs, dark");
    await t.shot("runs-dark-1366");
    same(await t.page.locator("tr.rank").count(), 4, "what is unfolded stands in the address");
    await row(t, JOB).locator("[data-control=open]").click();
    await t.ready("job");
    await t.page.locator("header a", { hasText: "All runs" }).click();
    await t.ready("runs");
  } finally {
    child.kill();
    rmSync(dir, { recursive: true });
  }
}

/** Runs of which not all is known: one cut off, one without device work, an empty file; and two files of one name. */
function doubtful() {
  const dir = mkdtempSync(join(tmpdir(), "opscope-doubtful-")), put = (run, name, bytes) => (mkdirSync(join(dir, run), { recursive: true }), writeFileSync(join(dir, run, name), bytes));
  const whole = readFileSync(join(DATA, "h200/gpt_fp32.json.gz")), twin = readFileSync(join(DATA, "synthetic/two_steps_overlap.json"));
  put("whole", "trace.json.gz", whole);
  put("cut", "trace.json.gz", whole.subarray(0, 100000));
  put("cpu", "trace.json", readFileSync(join(DATA, "synthetic/pure_cpu.json")));
  put("empty", "trace.json", "");
  put("twins", "trace.json", twin);
  put("twins", "trace.json.gz", gzipSync(twin));
  return dir;
}

async function doubts(t) {
  const dir = doubtful(), { base, child } = await t.serve([dir]), title = (key, column) => cell(t, key, column).getAttribute("title"), file = (run) => join(dir, run, "trace.json.gz");
  try {
    await start(t, base);
    for (const run of ["whole", "cut", "cpu", "twins"]) await known(t, `${run}/trace/default`);
    // What reading lost is said as the program says it on stderr.
    const cut = "cut/trace/default", lost = JSON.parse(execFileSync(process.env.OPSCOPE, ["info", file("cut"), "--format=json"], { maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "ignore"] })).sections.find((s) => s.name === "problems");
    const message = lost.rows.find((r) => r[lost.columns.findIndex((c) => c.id === "level")] === "lost")[lost.columns.findIndex((c) => c.id === "message")], start_ = message.split(" at byte")[0];
    assert(start_.length > 10 && (await row(t, cut).locator(".lost").getAttribute("title")).includes(start_), "what was lost");
    same(await t.page.locator("tr[data-run] .lost").count(), 1, "rows of which something was lost");
    same(await cell(t, cut, "busy").innerText(), "-", "GPU busy of what was cut off");
    assert((await title(cut, "busy")).includes("what could be read") && !(await title(cut, "busy")).includes("no kernel ran"), await title(cut, "busy"));
    // Nothing found where nothing could be looked at is no 0.
    for (const run of ["cut", "cpu"]) {
      same(await cell(t, `${run}/trace/default`, "findings").innerText(), "-", `findings of ${run}`);
      assert(/^\d+ of \d+ detectors could not look: the input has no device work/.test(await title(`${run}/trace/default`, "findings")), await title(`${run}/trace/default`, "findings"));
    }
    // Of which peak an MFU is.
    const mfu = t.program(["report", "mfu"], file("whole")), of = (id) => mfu.rows.at(-1)[mfu.columns.findIndex((c) => c.id === id)], peak = `of ${of("peak_tflops_per_s")} TFLOP/s, ${of("peak_of")}`;
    near(await cell(t, "whole/trace/default", "mfu").innerText(), of("mfu_pct"), "MFU");
    assert((await title("whole/trace/default", "mfu")).startsWith(peak), await title("whole/trace/default", "mfu"));
    await t.until("why the empty file cannot be read", async () => (await row(t, "empty/trace/default").innerText()).includes("the file is empty"));
    await t.until("how many cannot be read", async () => (await t.page.locator(".found").innerText()) === "6 runs; 1 cannot be read");
    assert((await names(t)).filter((x) => x.startsWith("twins/")).length === 2, "both of one name");
    const shown = await t.page.locator('tr[data-run^="twins/"] a[data-control=open]').allInnerTexts();
    same(shown.sort().join(), "twins/trace.json,twins/trace.json.gz", "what tells them apart");
    await t.open("overview", "twins/trace/default", {}, base);
    same((await t.page.locator("header select").nth(2).locator("option").allInnerTexts()).sort().join(), "default (trace.json),default (trace.json.gz)", "and in the menu of spans");
    // The pages of the run say what was lost, too.
    await t.open("overview", cut, {}, base);
    assert((await t.page.locator("main .losses").innerText()).includes(start_), "the banner");
    assert(/applicable; \d+ are not\./.test(await t.page.locator(".findings .nothing").innerText()), await t.page.locator(".findings .nothing").innerText());
    assert(/^\d+ detectors are not applicable$/.test(await t.page.locator(".findings details.idle summary").innerText()), "one line");
    assert(!(await t.page.locator("main").innerText()).includes("No work of this recording"), "no work is claimed of what was cut off");
    await t.accessible("a run that was cut off");
    await t.open("system", cut, {}, base);
    assert((await t.rows("problems")).some((r) => r.some(([, text]) => text.includes(start_))), "problems as text");
    await t.open("overview", "whole/trace/default", {}, base);
    same(await t.page.locator("main .losses").count(), 0, "no banner where nothing was lost");
    same(await t.page.locator('[data-figure="MFU"] small').innerText(), peak, "the peak beside the MFU");
  } finally {
    child.kill();
    rmSync(dir, { recursive: true });
  }
}

async function choosing(t) {
  const dir = folder(), { base, child } = await t.serve([dir]);
  try {
    await start(t, base);
    for (const key of ["first/trace/default", "second/trace/default", JOB]) await known(t, key);
    // Order: the newest first, and by any column, what is unknown last.
    await t.page.getByRole("button", { name: "Step time" }).click();
    const steps = async () => (await t.page.locator("td[data-column=step]").allInnerTexts()).filter((x) => /^[\d.,]+ [mu]?s$/.test(x));
    const down = await steps();
    assert((await t.url()).includes("sort=-step") && down.length === 3, `${await t.url()}: ${down}`);
    same((await names(t)).pop(), "broken/worker0/default", "what is unknown stands last");
    await t.page.getByRole("button", { name: "Step time" }).click();
    same((await steps()).join(), [...down].reverse().join(), "the other way round");
    same((await names(t)).pop(), "broken/worker0/default", "and is last again");
    same(await t.page.locator("th", { hasText: "Step time" }).getAttribute("aria-sort"), "ascending", "which is said");
    // Search: by name, and by finding.
    await t.page.keyboard.press("/");
    await t.page.keyboard.type("second");
    same((await names(t)).join(), "second/trace/default", "found by name");
    await t.page.getByLabel("Search names and findings").fill("collectives itself");
    same((await names(t)).join(), JOB, "found by its first finding");
    const found = t.program(["advise"], join(dir, "ddp"));
    assert(found.rows.length > 1, "several findings");
    await t.page.getByLabel("Search names and findings").fill(found.rows.at(-1)[found.columns.findIndex((c) => c.id === "problem")]);
    same((await names(t)).join(), JOB, "found by its last finding");
    await t.page.getByLabel("Search names and findings").fill("collectives itself");
    const url = await t.url();
    await t.page.goto("about:blank");
    await t.page.goto(url);
    await t.ready("runs");
    same(await t.page.getByLabel("Search names and findings").inputValue(), "collectives itself", "it stands in the address");
    await t.page.getByLabel("Search names and findings").fill("");
    // Two are compared.
    const compare = t.page.getByRole("button", { name: "Compare", exact: true });
    assert(await compare.isDisabled() && (await row(t, JOB).locator("input").isDisabled()), "nothing to compare yet, and no job");
    await row(t, "second/trace/default").locator("input").check();
    assert(await compare.isDisabled(), "one alone");
    same(await t.page.locator(".pair").innerText(), "A: second/trace; tick B", "the first ticked is A");
    await row(t, "first/trace/default").locator("input").check();
    await t.page.reload();
    await t.ready("runs");
    assert(await row(t, "first/trace/default").locator("input").isChecked(), "ticks stand in the address");
    same(await t.page.locator(".pair").innerText(), "A: second/trace, B: first/trace", "which is which");
    await compare.click();
    await t.ready("compare");
    const at = new URLSearchParams((await t.url()).split("?")[1]);
    same(`${at.get("input")} ${at.get("b")}`, "second/trace/default first/trace/default", "A and B");
    assert((await t.page.locator("main .choices").first().innerText()).includes("A is second/trace,"), "A by its name on the start page");
    // One that is removed goes, also where it is in memory; a new one comes.
    await t.page.goBack();
    await t.ready("runs");
    rmSync(join(dir, "second"), { recursive: true });
    mkdirSync(join(dir, "third"));
    cpSync(join(DATA, "synthetic/two_steps_overlap.json"), join(dir, "third", "trace.json"));
    await t.until("the list of now", async () => (await names(t)).sort().join() === ["broken/worker0/default", "first/trace/default", JOB, "third/trace/default"].sort().join());
    assert(!(await t.url()).includes("second"), "its tick is gone");
    await row(t, "first/trace/default").locator("[data-control=open]").click();
    await t.ready("overview");
    const picks = await t.page.locator("header select").first().locator("option").allInnerTexts();
    same(picks.sort().join(), "broken,ddp,first,third", "runs to pick");
    for (const run of ["broken", "ddp", "third"]) rmSync(join(dir, run), { recursive: true });
    await t.until("one is left", async () => (await (await fetch(`${base}api/runs`)).json()).runs.length === 1);
    await start(t, base);
    same(await t.page.locator("main").getAttribute("data-ready"), "overview", "a single run is opened");
    rmSync(join(dir, "first"), { recursive: true });
    await t.until("none is left", async () => !(await (await fetch(`${base}api/runs`)).json()).runs.length);
    await start(t, base);
    const said = await t.page.locator("main .empty").innerText();
    assert(said.includes(dir) && said.includes("*.json.gz"), said);
  } finally {
    child.kill();
    rmSync(dir, { recursive: true });
  }
}

export const tests = [["a row for each run", figures], ["runs of which not all is known", doubts], ["order, search, two to compare, and what comes and goes", choosing]];
