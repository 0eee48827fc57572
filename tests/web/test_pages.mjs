// Every page on every kind of input: it shows something, or the server's reason why it cannot.
import { assert, INPUTS, same } from "./harness.mjs";

/** The report that a page is about; without one it has something to show whatever the input. */
const ABOUT = { reports: "overview", memory: "memory", modules: "modules", roofline: "roofline", groups: "groups", "op-types": "op-types", operators: "operators", kernels: "kernels", gpus: "devices", "ops-kernels": "ops", "kernels-iteration": "kernels", "kernels-op": "kernels", iterations: "steps" };

/** Pages about all inputs of a run, where these are the ranks of a job. */
const OF_JOBS = ["job", "ranks-timeline"];

async function reasonOf(t, view, input) {
  const [run] = INPUTS[input].key.split("/"), of = OF_JOBS.includes(view) ? `job?${new URLSearchParams({ run })}` : `report/${ABOUT[view]}?${new URLSearchParams({ input: INPUTS[input].key })}`;
  const answer = await fetch(`${t.base}api/${of}`);
  return answer.ok ? undefined : (await answer.json()).error;
}

async function views(t, input) {
  await t.open("overview", input);
  return t.page.locator("nav a").evaluateAll((list) => list.map((a) => a.getAttribute("href").slice(1).split("?")[0]));
}

/** Whether it has nothing but the reason. */
async function look(t, view, input) {
  const main = t.page.locator("main"), reason = (ABOUT[view] || OF_JOBS.includes(view)) && (await reasonOf(t, view, input));
  if (reason) {
    const said = await main.locator(".empty").allInnerTexts();
    assert(said.some((x) => x.includes(reason)), `${view}: the page says ${JSON.stringify(said)}, the server ${JSON.stringify(reason)}`);
  } else {
    // Inputs of other programs are compared with none of the others: the page says so.
    assert(await main.locator(`.tabulator-row, canvas, .finding, textarea, .nothing${view === "compare" ? ", .empty" : ""}`).count(), `${view}: nothing is shown`);
  }
  const nothing = reason && !(await main.locator("[data-table]").count());
  if (nothing) {
    const link = t.page.locator("nav a[aria-current]");
    assert(await link.evaluate((e) => e.classList.contains("dim")), `${view}: the menu does not say that there is nothing`);
    assert((await link.getAttribute("title")).length > 10, `${view}: the menu does not say why`);
  }
  for (const key of new Set(await main.locator("[data-table]").evaluateAll((list) => list.map((e) => e.dataset.table)))) await t.tidy(key);
  const wrong = (await main.locator(".error").allInnerTexts()).filter((x) => x.trim());
  assert(!wrong.length, `${view}: ${wrong}`);
  await t.until(`${view}: charts as wide as their places`, () => t.page.evaluate(() => [...document.querySelectorAll(".canvas")].every((e) => Math.abs(e.chart.getWidth() - e.clientWidth) <= 1)));
  assert((await t.page.evaluate(() => document.documentElement.scrollWidth)) <= 1280, `${view}: wider than the window`);
  return !!nothing;
}

const of = (input, theme) => async (t) => {
  await t.fresh(theme);
  if (theme === "dark" && input !== "h100" && !process.env.OPSCOPE_SCREENSHOTS) return "only with OPSCOPE_SCREENSHOTS";
  const all = await views(t, input);
  assert(all.length >= 17, `only ${all.length} pages`);
  const dim = await t.page.locator("nav a.dim").evaluateAll((list) => list.map((a) => a.textContent));
  for (const [i, view] of all.entries()) {
    await t.open(view, input);
    const nothing = await look(t, view, input), title = await t.page.locator("nav a[aria-current]").textContent();
    if (view === "memory" || view === "modules") same(dim.includes(title), nothing, `${title} is dimmed before it was asked for`);
    // axe-core takes a while: each page in one of the themes, with pictures in both.
    if (input === "h100" && (process.env.OPSCOPE_SCREENSHOTS || i % 2 === Number(theme === "dark"))) await t.accessible(`${view}, ${theme}`);
    await t.shot(`${input}-${view}-${theme}`);
  }
};

/** Pages that are left before they stand, at once and a little later, raise nothing. */
async function early(t) {
  const all = await views(t, "own");
  for (const view of [...all, ...all.slice(0, 6).reverse()]) {
    await t.page.evaluate((v) => (location.hash = location.hash.replace(/^#[^?]*/, "#" + v)), view);
    await t.page.waitForTimeout(view.length * 9);
  }
  await t.open("overview", "own");
  await t.page.locator("nav a", { hasText: /^Operators$/ }).focus();
  await t.page.keyboard.press("Enter");
  await t.ready("operators");
  same(await t.page.evaluate(() => document.activeElement.textContent), "Operators", "the link that was followed keeps the focus");
  const dim = await t.page.locator("nav a.dim").evaluateAll((list) => list.map((a) => a.textContent));
  assert(dim.includes("Roofline") && dim.includes("Kernels") && !dim.includes("Operators"), `dimmed without being asked: ${dim}`);
}

export const tests = Object.keys(INPUTS).flatMap((input) => ["light", "dark"].map((theme) => [`${input}, ${theme}`, of(input, theme)])).concat([["left early", early]]);
