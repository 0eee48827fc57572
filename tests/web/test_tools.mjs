// What every table and chart can do, SQL, choosing steps, the address, the keyboard.
import { copyFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assert, INPUTS, same } from "./harness.mjs";

/** Tests that are killed leave no server. */
async function killed(t) {
  const script = `import { Harness } from ${JSON.stringify(fileURLToPath(new URL("harness.mjs", import.meta.url)))}; const s = await new Harness().serve([${JSON.stringify(INPUTS.own.path)}]); console.log(s.base);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const base = await new Promise((done) => child.stdout.once("data", (text) => done(String(text).trim())));
  same((await fetch(base)).status, 200, "it serves");
  child.kill("SIGKILL");
  await t.until("the server has ended", () => fetch(base).then(() => false, () => true));
}

async function sorting(t) {
  await t.open("kernels", "plugin");
  await t.page.locator('[data-table="kernels"] .tabulator-col', { hasText: "Calls" }).click();
  await t.page.waitForFunction(() => location.hash.includes("kernels.sort=-calls"));
  const k = t.report("kernels", "plugin"), calls = k.columns.findIndex((c) => c.id === "calls"), want = k.rows.map((r) => r[calls]).sort((a, b) => b - a);
  const shown = async () => (await t.rows("kernels")).map((r) => Number(new Map(r).get(calls).replace(/,/g, "")));
  same((await shown()).join(), want.join(), "by calls");
  const url = await t.url();
  await t.page.goto("about:blank");
  await t.page.goto(url);
  await t.ready("kernels");
  same((await shown()).join(), want.join(), "by the same address");
  // The same by keys alone.
  await t.page.locator('[data-table="kernels"] .tabulator-col', { hasText: "Calls" }).focus();
  await t.page.keyboard.press("Enter");
  await t.page.waitForFunction(() => location.hash.includes("kernels.sort=calls"));
  same((await shown()).join(), [...want].reverse().join(), "the other way round");
}

async function searching(t) {
  await t.open("kernels", "plugin");
  await t.page.keyboard.press("/");
  await t.page.keyboard.type("sgemm");
  const k = t.report("kernels", "plugin"), want = k.rows.filter((r) => r.some((v) => typeof v === "string" && v.toLowerCase().includes("sgemm")));
  await t.page.waitForFunction((n) => document.querySelector(".found").innerText.startsWith(n + " of"), want.length);
  same((await t.rows("kernels")).length, want.length, "found");
  assert((await t.url()).includes("kernels.q=sgemm"), "the search stands in the address");
}

async function paging(t) {
  await t.open("kernels", "plugin");
  const grid = t.page.locator('[data-table="kernels"]'), k = t.report("kernels", "plugin");
  same(await grid.locator(".tabulator-row").count(), 20, "rows of the first page");
  await grid.locator('.tabulator-page[data-page="last"]').click();
  same(await grid.locator(".tabulator-row").count(), k.rows.length % 20, "rows of the last page");
  assert((await t.url()).includes("kernels.page=4"), "the page stands in the address");
}

/** What is found, in the order shown; nothing searched or sorted: what the program writes. */
async function csv(t) {
  await t.open("kernels", "plugin");
  const button = t.page.locator("section.table", { has: t.page.locator('[data-table="kernels"]') }).getByRole("button", { name: "CSV" });
  const file = await t.saved(() => button.click()), want = t.text(["report", "kernels", "--format=csv"], "plugin");
  same(file.name, "kernels.csv", "its name");
  same(file.bytes.toString(), want, "the whole table");
  await t.open("kernels", "plugin", { "kernels.q": "sgemm", "kernels.sort": "calls" });
  await t.rows("kernels");
  const some = (await t.saved(() => button.click())).bytes.toString(), sorted = t.text(["report", "kernels", "--format=csv", "--filter=sgemm", "--sort=calls"], "plugin");
  same(some.split("\n").length, sorted.split("\n").length, "rows found");
  const calls = some.trim().split("\n").slice(1).map((l) => Number(/,(\d+),/.exec(l.replace(/"[^"]*"/g, ""))[1]));
  same(calls.join(), [...calls].sort((x, y) => x - y).join(), "their order");
}

/** Times on the trace's clock do not fit a number of JavaScript; the page shows and saves all their digits. */
async function longIntegers(t) {
  const query = "SELECT name, start_ns, -start_ns AS x_count FROM kernels_raw ORDER BY start_ns LIMIT 5";
  const want = t.text(["sql", query, "--format=csv"], "plugin").trim().split("\n").slice(1).map((l) => l.split(",").slice(-2));
  await t.open("sql", "plugin", { q: query });
  const rows = await t.rows("rows");
  same(rows.length, 5, "rows");
  for (const [i, [start, minus]] of want.entries()) {
    assert(!Number.isSafeInteger(Number(start)), `${start} would fit`);
    same(rows[i][1][1], start.replace(/(\d{9})$/, ".$1 s"), "as a point in time");
    same(rows[i][2][1].replace(/,/g, ""), minus, "as a count");
  }
  const file = await t.saved(() => t.page.getByRole("button", { name: "CSV" }).first().click());
  same(file.bytes.toString(), t.text(["sql", query, "--format=csv"], "plugin"), "saved");
}

/** Names of traces and of a query's columns are shown as they are, also where the pointer rests. */
async function noHtml(t) {
  const name = 'void f<int>(<b class="made">float</b>*)';
  await t.open("sql", "own", { q: `SELECT '${name}' AS "<b class=made>n</b>"` });
  await t.rows("rows");
  const grid = t.page.locator('[data-table="rows"]');
  same(await grid.locator(".tabulator-col-title").first().innerText(), "<b class=made>n</b>", "the heading");
  await grid.locator(".tabulator-cell").first().hover();
  await t.page.locator(".tabulator-tooltip").waitFor();
  same(await t.page.locator(".tabulator-tooltip").innerText(), name, "the tooltip");
  same(await t.page.locator(".made").count(), 0, "elements made of names");
}

async function png(t) {
  await t.open("operators", "plugin");
  const buttons = t.page.getByRole("button", { name: "PNG" });
  same(await buttons.count(), 2, "charts");
  const file = await t.saved(() => buttons.first().click());
  same(file.bytes.subarray(1, 4).toString(), "PNG", "a picture");
  same(file.name, "Device self time.png", "its name");
}

async function columns(t) {
  await t.open("kernels", "plugin");
  const header = t.page.locator('[data-table="kernels"] .tabulator-col', { hasText: "p95" });
  assert(!(await header.isVisible()), "hidden at first");
  await t.page.locator("details.columns summary").first().click();
  await t.page.locator("details.columns label", { hasText: "p95" }).first().click();
  assert(await header.isVisible(), "shown");
}

async function top(t) {
  await t.open("operators", "plugin", { top: "5" });
  same((await t.chart("Device self time")).series[0].data.length, 6, "five, and the rest");
  await t.open("operators", "plugin", { top: "all" });
  const o = t.report("operators", "plugin"), self = o.columns.findIndex((c) => c.id === "device_self_ns");
  same((await t.chart("Device self time")).series[0].data.length, o.rows.filter((r) => r[self] > 0).length, "all");
}

async function sql(t) {
  await t.open("sql", "plugin");
  const text = t.page.getByLabel("Query"), query = "SELECT name, calls, total_ns FROM kernels ORDER BY total_ns DESC LIMIT 7";
  await text.fill(query);
  await text.press("Control+Enter");
  await t.page.waitForSelector('[data-table="rows"] .tabulator-row');
  await t.sameTable("rows", t.program(["sql", query], "plugin"));
  await t.shot("sql");
  await text.fill("DELETE FROM span");
  await text.press("Control+Enter");
  await t.page.waitForSelector("main .empty, main .error");
  assert((await t.page.locator("main .empty, main .error").innerText()).length > 10, "it says why not");
}

async function steps(t) {
  await t.open("iterations", "plugin");
  await t.page.locator("input[name=start]").fill("6");
  await t.page.locator("input[name=stop]").fill("8");
  await t.page.getByRole("button", { name: "Show", exact: true }).click();
  await t.page.waitForFunction(() => location.hash.includes("steps=6..8"));
  await t.ready("iterations");
  same(await t.figure("Steps chosen"), "3", "steps chosen");
  await t.shot("iterations-chosen");
  await t.page.locator("nav a", { hasText: /^Kernels$/ }).click();
  await t.ready("kernels");
  await t.sameTable("kernels", t.report("kernels", "plugin", "--steps=6..8"));
}

async function keyOp(t) {
  await t.open("iterations", "dlprof");
  await t.page.locator("input[name=key_op]").fill("conv2d");
  await t.page.getByRole("button", { name: "Show", exact: true }).click();
  await t.page.waitForFunction(() => location.hash.includes("key_op=conv2d"));
  await t.ready("iterations");
  await t.sameTable("steps", t.report("steps", "dlprof", "--key-op=conv2d"));
}

/** Aggregations can be added to files of opscope alone, and not when the server may not write. */
async function whereReaggregate(t) {
  const made = "/made/default", button = t.page.getByRole("button", { name: "Re-aggregate" });
  await t.open("iterations", "plugin");
  same(await button.count(), 0, "on a trace");
  await t.open("iterations", made);
  same(await button.count(), 1, "on a file of opscope");
  const { child, base } = await t.serve(["--read-only", `${t.folder}/made.opscope`]);
  await t.open("iterations", made, {}, base);
  same(await button.count(), 0, "read-only");
  child.kill();
}

async function reaggregate(t) {
  t.need("plugin");
  const file = `${t.folder}/made.opscope`, button = t.page.getByRole("button", { name: "Re-aggregate" });
  await t.open("iterations", "/made/default");
  await t.page.locator("input[name=start]").fill("6");
  await t.page.locator("input[name=stop]").fill("7");
  await button.click();
  await t.page.waitForFunction(() => location.hash.includes("aggregation=2"));
  await t.ready("iterations");
  const list = t.report("aggregations", file);
  same(list.rows.length, 2, "aggregations in the file");
  same(list.rows[1][list.columns.findIndex((c) => c.id === "steps")], "6..7", "its steps");
  assert((await t.page.locator(".aggregations [aria-current]").innerText()).includes("6..7"), "it is shown, and marked in the list");
  await t.page.locator("nav a", { hasText: /^Kernels$/ }).click();
  await t.ready("kernels");
  await t.sameTable("kernels", t.report("kernels", file, "--aggregation=2"));
  await t.shot("reaggregated");
}

async function keyboard(t) {
  await t.open("ops-kernels", "plugin");
  await t.page.locator('[data-table="ops"] .tabulator-row').first().focus();
  await t.page.keyboard.press("Enter");
  await t.page.waitForSelector('[data-table="kernels"] .tabulator-row');
}

async function theme(t) {
  await t.open("overview", "plugin");
  const ground = () => t.page.evaluate(() => getComputedStyle(document.body).backgroundColor), before = await ground();
  const bars = () => t.page.locator('[data-table="overview"] .tabulator-tableholder').evaluate((e) => getComputedStyle(e).scrollbarColor), lightBars = await bars();
  await t.page.getByRole("button", { name: "Light or dark" }).click();
  await t.ready("overview");
  assert((await ground()) !== before, "another ground");
  assert(lightBars !== "auto" && (await bars()) !== lightBars, "scroll bars have the page's colours");
  same(await t.page.evaluate(() => localStorage.getItem("theme")), "dark", "and it is kept");
  const head = t.page.locator('[data-table="overview"] .tabulator-col').first(), light = () => head.evaluate((e) => Math.max(...getComputedStyle(e).backgroundColor.match(/\d+/g)));
  await head.hover();
  assert((await light()) < 128, "a header under the pointer is dark, too");
}

/** A file that cannot be read says why, wherever it is met; once it can, its pages come by themselves. */
async function failing(t) {
  const folder = join(t.folder, "run"), bad = join(folder, "bad.json");
  mkdirSync(folder);
  writeFileSync(bad, '{"traceEvents": 7}');
  copyFileSync(INPUTS.own.path, join(folder, "good.json.gz"));
  const { child, base } = await t.serve([folder]), state = async () => (await (await fetch(`${base}api/state`)).json()).inputs, of = async () => (await state()).find((i) => i.path === bad);
  const input = (await of()).input;
  await t.open("overview", input, {}, base);
  await t.until("it has failed", async () => (await of()).state === "failed");
  const reason = (await of()).error;
  assert(reason.includes("bad.json"), reason);
  await t.page.locator("main .empty", { hasText: reason }).first().waitFor();
  same(await t.page.locator("header a.failed").innerText(), "1 of 2 cannot be read", "the bar");
  assert((await t.page.locator("header option", { hasText: "(cannot be read)" }).count()) === 1, "the list of inputs");
  await t.shot("failed");
  await t.page.locator("header a.failed").click();
  await t.ready("system");
  const row = (await t.rows("inputs")).map((r) => r.map(([, x]) => x)).find((r) => r.includes(bad));
  assert(row.includes("failed") && row.includes(reason), row.join(" | "));
  await t.open("overview", input, {}, base);
  copyFileSync(join(folder, "good.json.gz"), bad);
  await t.page.locator('[data-table="overview"] .tabulator-row').first().waitFor();
  same(await t.figure("Average step"), "28.086 ms", "what the file now holds");
  child.kill();
}

/** While an input is being read, the page says how far that is. */
async function progress(t) {
  t.need("h100");
  let answers = 0, go = false;
  await t.page.route(/\/api\/report\/kernels/, (route) => {
    answers++;
    return go ? route.continue() : route.fulfill({ status: 202, contentType: "application/json", body: JSON.stringify({ done_bytes: 25, total_bytes: 100 }) });
  });
  await t.page.goto(t.address("kernels", "h100"));
  await t.page.waitForFunction(() => document.querySelector("main progress")?.value === 0.25);
  await t.until("it asks again", () => answers > 2);
  go = true;
  await t.ready("kernels");
  same(await t.page.locator("main progress").count(), 0, "progress when all is there");
}

async function help(t) {
  await t.open("overview", "own");
  await t.page.keyboard.press("?");
  const box = t.page.locator("dialog.help");
  await box.waitFor();
  for (const x of ["Keys of all pages", "search", "Shift + drag"]) assert((await box.innerText()).includes(x), x);
  await t.shot("help");
  await t.page.keyboard.press("Escape");
  await box.waitFor({ state: "hidden" });
  await t.page.keyboard.press("]");
  await t.ready("advice");
  await t.page.keyboard.press("[");
  await t.ready("overview");
  await t.page.keyboard.press("t");
  await t.page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
}

async function served(t) {
  for (const name of Object.keys(INPUTS)) t.need(name);
  await t.open("system", "not/there");
  await t.page.locator("header select").selectOption(INPUTS.h100.key);
  await t.page.locator("header select").nth(2).waitFor();
  await t.ready("system");
  await t.open("system", "h100");
  const rows = await t.rows("inputs"), text = rows.map((r) => r.map(([, x]) => x).join(" ")).join("\n");
  for (const x of Object.values(INPUTS)) assert(text.includes(x.path), x.path);
}

/** A file that becomes another while its page is open. */
async function otherContent(t) {
  const file = join(t.folder, "changing.json"), put = (name) => (copyFileSync(new URL(`../data/synthetic/${name}.json`, import.meta.url), file + ".new"), renameSync(file + ".new", file));
  put("two_steps_overlap");
  const { child, base } = await t.serve([file]);
  await t.open("operators", "/changing/default", {}, base);
  await t.row("operators", "aten::mm").waitFor();
  same(await t.row("operators", "aten::linear").count(), 0, "an op of the other file");
  put("training_gpu");
  await t.row("operators", "aten::linear").waitFor();
  await t.ready("operators");
  await t.sameTable("operators", t.report("operators", file));
  child.kill();
}

export const tests = [
  ["sorting", sorting], ["searching", searching], ["paging", paging], ["CSV", csv], ["long integers", longIntegers], ["no HTML in names", noHtml], ["PNG", png], ["columns", columns], ["top of bars", top], ["SQL", sql], ["steps", steps], ["key op", keyOp],
  ["where to re-aggregate", whereReaggregate], ["re-aggregate", reaggregate], ["rows by keyboard", keyboard], ["light and dark", theme], ["what is served", served], ["other content", otherContent],
  ["files that cannot be read", failing], ["progress", progress], ["help and keys", help], ["tests that are killed", killed],
];
