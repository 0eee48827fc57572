// Tests of the viewer in a browser: run.mjs [--browser=chromium|firefox] [WORD...] runs those whose names hold a word. Speaks TAP.
//
// Starts `opscope serve` on a free port and one browser, Chromium unless another is named, and runs every test of the test_*.mjs beside
// it, each of which exports `tests`, a list of [name, async (t) => ...] (t: harness.mjs), and may export `only`, the browser that they are
// for. A test fails when it throws, when the page logs an error, and when a request leaves the server. OPSCOPE_SCREENSHOTS=DIR: pictures
// of the pages are written there. Where there is no browser all is skipped, or with OPSCOPE_BROWSER=required fails; a test is skipped
// whose trace is not there.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { lacking, launch, NAMES, within } from "./browsers.mjs";

const here = dirname(fileURLToPath(import.meta.url)), root = join(here, "..", "..");
process.env.OPSCOPE_ROOT ??= root;
process.env.OPSCOPE ??= join(root, "build/src/cli/opscope");
process.env.OPSCOPE_DATA ??= join(root, "../shared/data");

/** For a test as a whole, beyond what it waits for each condition; and for the browser to leave its page. */
const TEST_MS = 600000, LEAVE_MS = 60000;

function skipAll(why) {
  const must = process.env.OPSCOPE_BROWSER === "required";
  console.log(must ? `1..1\nnot ok 1 - ${why}` : `1..0 # SKIP ${why}`);
  process.exit(must ? 1 : 0);
}

const options = process.argv.slice(2).filter((x) => x.startsWith("-")), words = process.argv.slice(2).filter((x) => !x.startsWith("-"));
const name = options[0]?.replace("--browser=", "") ?? "chromium";
if (options.length > 1 || !NAMES.includes(name)) {
  console.error(`usage: run.mjs [--browser=${NAMES.join("|")}] [WORD...]`);
  process.exit(2);
}
if (lacking(name)) skipAll(lacking(name));
if (!existsSync(process.env.OPSCOPE)) skipAll(`no program at ${process.env.OPSCOPE}`);

const { Absent, Harness } = await import("./harness.mjs"), files = readdirSync(here).filter((f) => /^test_.*\.mjs$/.test(f)).sort(), list = [];
for (const f of files) {
  const { tests, only } = await import("./" + f);
  if (!only || only === name) for (const [what, run] of tests) list.push([`${f.slice(5, -4)}: ${what}`, run]);
}
const chosen = list.filter(([what]) => !words.length || words.some((w) => what.includes(w)));

if (process.env.OPSCOPE_SCREENSHOTS) mkdirSync(process.env.OPSCOPE_SCREENSHOTS, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "opscope-web-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
let t;
for (const [signal, number] of [["SIGHUP", 1], ["SIGINT", 2], ["SIGTERM", 15]])
  process.once(signal, () => {
    t?.stop();
    process.exit(128 + number);
  });

/** {skip} or {why it failed}; neither: it passed. */
async function attempt(run) {
  try {
    await t.fresh();
    const skip = await run(t);
    return { skip, why: t.problems.join("\n") };
  } catch (e) {
    return e instanceof Absent ? { skip: e.message } : { why: [e.stack ?? String(e), ...t.problems].join("\n"), thrown: true };
  }
}

const said = (text) => console.log(text.replace(/^/gm, "# "));
let failed = 0;
try {
  t = new Harness(await launch(name, join(folder, "saved")), folder);
  await t.start();
  console.log(`TAP version 13\n1..${chosen.length}`);
  for (const [i, [what, run]] of chosen.entries()) {
    const begin = performance.now(), { skip, why, thrown } = await within(TEST_MS, what, attempt(run)).catch((e) => ({ why: e.message, thrown: true }));
    console.log(`${why ? "not ok" : "ok"} ${i + 1} - ${what}${skip ? ` # SKIP ${skip}` : ""}`);
    said(`${((performance.now() - begin) / 1000).toFixed(1)} s`);
    if (why) said(why);
    failed += why ? 1 : 0;
    if (thrown) await within(LEAVE_MS, "another page", t.drop()); // keys and buttons may be down
  }
} catch (e) {
  console.log(`Bail out! ${e.message.split("\n")[0]}`);
  said(e.stack);
  failed++;
} finally {
  t?.stop();
}
process.exit(failed ? 1 : 0); // which ends the browser
