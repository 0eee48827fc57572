// The pages of docs/questions, done as they say: their clicks, from the page that `opscope serve` opens, lead to what they name. ./test does three of them; OPSCOPE_ALL=1, as tools/nightly sets it, all.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Absent, assert, same } from "./harness.mjs";

const FOLDER = join(process.env.OPSCOPE_ROOT, "docs/questions"), OFTEN = ["changed", "slow_rank", "compiled"];
const SERVE = /`opscope serve ([^`]*)`; (\d+) clicks?:/, CLICK = /^\d+\. (?:\*([^*]+)\*: )?\*\*([^*]+)\*\*/gm, SHOWN = /`([^`]+)`/g;

/** Where an input of a page lies: `traces/` is the folder of public traces. */
function pathOf(input) {
  const path = input.startsWith("traces/") ? join(process.env.OPSCOPE_DATA, input.slice("traces/".length)) : join(process.env.OPSCOPE_ROOT, input);
  if (!existsSync(path)) throw new Absent(`no ${path}`);
  return path;
}

const done = (page) => async (t) => {
  if (!process.env.OPSCOPE_ALL && !OFTEN.includes(page)) return "asked with OPSCOPE_ALL=1";
  const section = readFileSync(join(FOLDER, page + ".md"), "utf8").split("## In the viewer\n")[1].split("\n## ")[0];
  const [begin, inputs, count] = SERVE.exec(section), clicks = [...section.matchAll(CLICK)];
  same(clicks.length, Number(count), "clicks");
  const { base } = await t.serve(inputs.split(" ").map(pathOf));
  t.origin = base.replace(/[^/]*$/, "");
  await t.page.goto(base);
  await t.ready();
  for (const [, choice, text] of clicks) {
    const before = await t.url();
    if (choice === "Tick") await t.page.getByLabel(`Compare ${text}`, { exact: true }).check();
    else if (choice) await t.page.locator("label.choice", { hasText: choice }).locator("select").first().selectOption({ label: text });
    else await t.page.getByText(text, { exact: true }).locator("visible=true").first().click();
    await t.until(`another address after ${text}`, async () => (await t.url()) !== before);
    await t.ready();
  }
  const shown = [...section.replace(begin, "").matchAll(SHOWN)].map((m) => m[1]);
  assert(shown.length > 0, "the page names nothing that is shown");
  for (const what of shown) await t.until(`${what} on the page`, async () => (await t.page.locator("main").innerText()).includes(what));
  await t.shot(`question-${page}`);
};

export const tests = readdirSync(FOLDER).filter((f) => f.endsWith(".md")).sort().map((f) => [f.slice(0, -3), done(f.slice(0, -3))]);
