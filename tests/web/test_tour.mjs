// A tour in Firefox, for ./test, which has no time for all tests in a second browser (tools/nightly does): each page of a GPU trace, some
// of them exported, and on the timeline what browsers do differently: the wheel, keys, drawing. All of it is asked of Chromium by the other tests.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { assert, same } from "./harness.mjs";
import { camera, colors, selected, settled } from "./test_timeline.mjs";

export const only = "firefox";

const TRACE = join(process.env.OPSCOPE_ROOT, "tests/data/h200/gpt_bf16.json.gz"), INPUT = "/gpt_bf16/default";

/** These pages, or each that the menu names. */
async function pages(t, base, views) {
  await t.open("overview", INPUT, {}, base);
  views ??= await t.page.locator("nav a").evaluateAll((list) => list.map((a) => a.getAttribute("href").slice(1).split("?")[0]));
  for (const view of views) {
    await t.open(view, INPUT, {}, base);
    const { wrong, shown, wide } = await t.page.evaluate(() => ({
      wrong: [...document.querySelectorAll("main .error:not([hidden])")].map((e) => e.innerText.trim()).join(""),
      shown: document.querySelectorAll("main :is(.tabulator-row, canvas, .finding, textarea, .nothing, .empty)").length,
      wide: document.documentElement.scrollWidth - innerWidth,
    }));
    assert(!wrong && shown && wide <= 0, `${view}: "${wrong}", ${shown} things are shown, ${wide} pixels too wide`);
    await t.shot(`tour-${view}`);
  }
}

async function exported(t) {
  const out = join(t.folder, "tour.html");
  execFileSync(process.env.OPSCOPE, ["serve", `--export=${out}`, TRACE], { stdio: "ignore" });
  await pages(t, pathToFileURL(out).href, ["overview", "timeline"]);
}

/** Drawn, in both themes; the wheel and a key bring it nearer; what is found is chosen and named. */
async function timeline(t, base) {
  await t.open("timeline", INPUT, {}, base);
  await settled(t);
  assert((await colors(t)) > 20, "few colours");
  const before = await camera(t), b = await t.page.locator(".tl canvas").boundingBox();
  await t.page.mouse.move(b.x + 700, b.y + 200);
  await t.page.mouse.wheel(0, -300);
  await t.until("the wheel brings it nearer", async () => (await camera(t)).scale < before.scale * 0.6);
  await settled(t);
  const nearer = await camera(t);
  await t.page.keyboard.down("w");
  await t.until("w brings it nearer", async () => (await camera(t)).scale < nearer.scale * 0.8);
  await t.page.keyboard.up("w");
  await t.page.keyboard.press("/");
  await t.page.keyboard.type("nvjet");
  await t.page.keyboard.press("Enter");
  await t.until("a hit is chosen", async () => /nvjet/i.test((await selected(t))?.name ?? ""));
  await t.page.locator(".tl .panel h3", { hasText: /nvjet/i }).waitFor();
  await t.page.waitForFunction(() => /[?&]q=nvjet.*ev=|ev=.*[?&]q=nvjet/.test(location.hash)); // the address follows when the picture rests
  await t.page.locator(".tl canvas").focus();
  const ground = () => t.page.evaluate(() => getComputedStyle(document.body).backgroundColor), light = await ground();
  await t.page.keyboard.press("t");
  await t.until("the dark", async () => (await ground()) !== light);
  await t.ready("timeline");
  await settled(t);
  assert((await colors(t)) > 20, "few colours in the dark");
  const url = await t.url(), { row } = await selected(t);
  await t.page.goto("about:blank");
  await t.page.goto(url);
  await t.ready("timeline");
  same((await selected(t))?.row, row, "the address shows the same");
}

/** As the program's; searched; a row leads on. */
async function table(t, base) {
  await t.open("kernels", INPUT, {}, base);
  const want = (...args) => JSON.parse(execFileSync(process.env.OPSCOPE, ["report", "kernels", TRACE, "--format=json", ...args], { stdio: ["ignore", "pipe", "ignore"] }));
  await t.sameTable("kernels", want());
  await t.page.keyboard.press("/");
  await t.page.keyboard.type("nvjet");
  const found = want().rows.filter((r) => r.some((v) => typeof v === "string" && /nvjet/i.test(v))).length;
  assert(found > 0, "nothing to be found");
  await t.until("some rows are found", async () => (await t.rows("kernels")).length === found);
  await t.choose("kernels", '[data-table="kernel-op"] .tabulator-row');
}

/** One test, which loads the viewer twice. */
async function served(t) {
  const { base } = await t.serve([TRACE]);
  await pages(t, base);
  assert((await t.page.locator("nav a").count()) >= 17, "pages are missing");
  await table(t, base);
  await timeline(t, base);
}

export const tests = [["pages, table, timeline", served], ["exported pages", exported]];
