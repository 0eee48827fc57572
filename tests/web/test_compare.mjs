// The page that compares two inputs: what it says is what `opscope diff` says.
import { execFileSync } from "node:child_process";
import { assert, INPUTS, same } from "./harness.mjs";

const OTHER = "resnet50_num_workers_0/worker0/2", SPAN_2 = () => INPUTS.plugin.path.replace("1623143089861", "1623143566756");

function diff(...args) {
  return JSON.parse(execFileSync(process.env.OPSCOPE, ["diff", ...args, "--format=json"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
}

function verdictOf(t) {
  return t.sections.find((s) => s.name === "verdict").rows[0][0];
}

async function twoSpans(t) {
  t.need("plugin");
  const want = diff(INPUTS.plugin.path, SPAN_2());
  await t.open("compare", "plugin");
  same(await t.page.locator("main .verdict").innerText(), verdictOf(want), "the verdict");
  await t.sameTable("diff", want);
  const bars = (await t.chart("From A to B")).series[0].data;
  // Each bar begins where the one before ended, and the last one ends at the step of B.
  const at = (id) => want.sections[0].rows[0][want.sections[0].columns.findIndex((c) => c.id === id)];
  assert(Math.abs(bars[0][1] - at("a_step_ns")) < 1 && Math.abs(bars.at(-1)[1] - at("b_step_ns")) < 1, JSON.stringify(bars));
  await t.shot("compare");
}

async function rowsAndSteps(t) {
  t.need("plugin");
  const first = t.report("steps", "plugin").rows[0][0];
  await t.open("compare", "plugin", { b: INPUTS.plugin.key, a_steps: String(first), b_steps: String(first + 1) });
  const want = diff(INPUTS.plugin.path, `--steps=${first}`, INPUTS.plugin.path, `--steps=${first + 1}`);
  same(await t.page.locator("main .verdict").innerText(), verdictOf(want), "the verdict");
  for (const by of ["kernel", "op"]) {
    await t.page.locator("label.choice", { hasText: "Rows by" }).locator("select").selectOption(by);
    await t.page.waitForFunction((x) => location.hash.includes(`by=${x}`), by);
    await t.ready("compare");
    await t.sameTable("diff", diff(INPUTS.plugin.path, `--steps=${first}`, INPUTS.plugin.path, `--steps=${first + 1}`, `--by=${by}`));
  }
  await t.page.getByRole("link", { name: "Swap A and B" }).click();
  await t.ready("compare");
}

async function refused(t) {
  t.need("plugin");
  await t.open("compare", "plugin", { b: INPUTS.h100.key });
  assert(/these are not two runs of one program/.test(await t.page.locator("main .empty").innerText()), "no refusal");
  await t.page.getByRole("link", { name: "Compare runs that have little in common, too" }).click();
  await t.page.locator('[data-table="diff"] .tabulator-row').first().waitFor();
  await t.ready("compare");
}

async function narrow(t) {
  t.need("plugin");
  for (const [width, height] of [[1366, 768], [1920, 1080]]) {
    await t.page.setViewportSize({ width, height });
    await t.open("compare", "plugin", { b: OTHER });
    assert((await t.page.evaluate(() => document.documentElement.scrollWidth)) <= width, `wider than ${width}`);
    await t.shot(`compare-${width}`);
  }
}

export const tests = [["two spans", twoSpans], ["rows and steps", rowsAndSteps], ["two models", refused], ["in two sizes", narrow]];
