// Tests of the viewer in a browser: run.mjs [WORD...] runs those whose names hold a word. Speaks TAP.
//
// Starts `opscope serve` on a free port and one Chromium, and runs every test of the test_*.mjs beside it, each of which exports
// `tests`, a list of [name, async (t) => ...] (t: harness.mjs). A test fails when it throws, when the page logs an error, and when
// a request leaves the server. OPSCOPE_SCREENSHOTS=DIR: pictures of the pages are written there. Where there is no browser all is
// skipped, or with OPSCOPE_BROWSER=required fails; a test is skipped whose trace is not there.
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url)), root = join(here, "..", "..");
process.env.OPSCOPE_ROOT ??= root;
process.env.OPSCOPE ??= join(root, "build/src/cli/opscope");
process.env.OPSCOPE_DATA ??= join(root, "../shared/data");

function skipAll(why) {
  const must = process.env.OPSCOPE_BROWSER === "required";
  console.log(must ? `1..1\nnot ok 1 - ${why}` : `1..0 # SKIP ${why}`);
  process.exit(must ? 1 : 0);
}

const browserAt = process.env.CHROMIUM ?? ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
if (!browserAt) skipAll("no chromium (Debian: chromium-headless-shell); CHROMIUM=PATH names another browser");
if (!existsSync(process.env.OPSCOPE)) skipAll(`no program at ${process.env.OPSCOPE}`);
const driver = join(root, "web/node_modules/playwright-core/index.mjs");
if (!existsSync(driver)) skipAll("no web/node_modules/playwright-core; the build fetches it");

const { chromium } = await import(driver), { Absent, Harness } = await import("./harness.mjs");
const files = readdirSync(here).filter((f) => /^test_.*\.mjs$/.test(f)).sort(), words = process.argv.slice(2), list = [];
for (const f of files) for (const [name, run] of (await import("./" + f)).tests) list.push([`${f.slice(5, -4)}: ${name}`, run]);
const chosen = list.filter(([name]) => !words.length || words.some((w) => name.includes(w)));

if (process.env.OPSCOPE_SCREENSHOTS) mkdirSync(process.env.OPSCOPE_SCREENSHOTS, { recursive: true });
const browser = await chromium.launch({ executablePath: browserAt, args: ["--no-sandbox"] });
const t = new Harness(browser);

/** {skip} or {why it failed}; neither: it passed. */
async function attempt(run) {
  try {
    await t.fresh();
    const skip = await run(t);
    return { skip, why: t.problems.join("\n") };
  } catch (e) {
    if (e instanceof Absent) return { skip: e.message };
    await t.drop(); // keys and buttons may be down
    return { why: [e.stack ?? String(e), ...t.problems].join("\n") };
  }
}

const said = (text) => console.log(text.replace(/^/gm, "# "));
let failed = 0;
try {
  await t.start();
  console.log(`TAP version 13\n1..${chosen.length}`);
  for (const [i, [name, run]] of chosen.entries()) {
    const begin = performance.now(), { skip, why } = await attempt(run);
    console.log(`${why ? "not ok" : "ok"} ${i + 1} - ${name}${skip ? ` # SKIP ${skip}` : ""}`);
    said(`${((performance.now() - begin) / 1000).toFixed(1)} s`);
    if (why) said(why);
    failed += why ? 1 : 0;
  }
} finally {
  await browser.close();
  t.stop();
}
process.exit(failed ? 1 : 0);
