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

/** Modules are a tree whose rows open those below them. */
async function treeOfModules(t) {
  const first = t.report("steps", "own").rows[0][0], want = diff(INPUTS.own.path, `--steps=${first}`, INPUTS.own.path, `--steps=${first + 1}`, "--by=tree");
  await t.open("compare", "own", { b: INPUTS.own.key, a_steps: String(first), b_steps: String(first + 1), by: "tree" });
  const of = (id) => want.columns.findIndex((c) => c.id === id), names = (depth) => want.rows.filter((r) => r[of("depth")] === depth).map((r) => r[of("name")].replace(/\s+/g, " "));
  assert(names(2).length > 0, "the recording has modules in modules");
  for (const depth of [0, 1]) {
    const rows = await t.page.locator(`[data-table="diff"] .tabulator-row.tabulator-tree-level-${depth} .tabulator-cell[tabulator-field="cells.${of("name")}"]`).allInnerTexts();
    const others = rows.filter((x) => !names(depth).includes(x.trim()));
    assert(rows.length > 0 && !others.length, `rows that are not of depth ${depth}: ${others}`);
  }
}

const KEYS = (of) => INPUTS[of]?.key ?? of;

/** What each of the two timelines shows, and how wide its picture is without the labels. */
const cameras = (t) => t.page.evaluate(() => [...document.querySelectorAll(".tl canvas")].map((x) => ({ ...x.timeline.camera, room: x.timeline.room })));
const infoOf = (t, of) => t.page.evaluate((url) => fetch(url).then((r) => r.json()), `api/timeline?${new URLSearchParams({ input: KEYS(of) })}`);
const drawn = (t) => t.page.waitForFunction(() => [...document.querySelectorAll(".tl canvas")].every((x) => x.timeline.stats.idle));

function close(got, want, what, slack = 1e-6 * Math.max(1, Math.abs(want))) {
  assert(Math.abs(got - want) <= slack, `${what}: got ${got}, expected ${want}`);
}

/** Both have one scale, and begin as far before these times. */
function aligned([a, b], [atA, atB], what, slack) {
  same(b.scale, a.scale, `${what}: ns a pixel`);
  close(b.from - atB, a.from - atA, what, slack);
}

/** A picture's place on the page. */
async function over(t, side, x = 600, y = 150) {
  const canvas = t.page.locator(".tl canvas").nth(side);
  await canvas.scrollIntoViewIfNeeded();
  const b = await canvas.boundingBox();
  await t.page.mouse.move(b.x + x, b.y + y);
  return [b.x + x, b.y + y];
}

/** Does what moves a timeline; returns what was seen before and after. */
async function moving(t, what, act, side = 0) {
  const before = await cameras(t);
  await act();
  await t.until(what, async () => JSON.stringify((await cameras(t))[side]) !== JSON.stringify(before[side]));
  await drawn(t);
  return [before, await cameras(t)];
}

async function linked(t) {
  t.need("plugin");
  await t.open("compare", "plugin", { b: OTHER });
  await drawn(t);
  const steps = [await infoOf(t, "plugin"), await infoOf(t, OTHER)].map((i) => i.steps.filter((s) => s.counts)), starts = (k) => steps.map((s) => s[k].start);
  const longest = (k) => Math.max(...steps.map((s) => s[k].end - s[k].start));
  const first = await cameras(t);
  aligned(first, starts(0), "the first steps");
  close(first[0].from, steps[0][0].start - 0.02 * longest(0), "begins a little before the step");
  close(first[0].scale * first[0].room, 1.04 * longest(0), "shows all of the longer step");

  await over(t, 0);
  const [, zoomed] = await moving(t, "a turn of the wheel over A", () => t.page.mouse.wheel(0, -500));
  close(zoomed[0].scale, first[0].scale * Math.exp(-1), "A is nearer");
  close(zoomed[1].from - first[1].from, zoomed[0].from - first[0].from, "B begins later by as much as A does");
  aligned(zoomed, starts(0), "after zooming A");

  const [x, y] = await over(t, 1);
  const [, dragged] = await moving(t, "B is dragged", async () => {
    await t.page.mouse.down();
    await t.page.mouse.move(x - 120, y, { steps: 4 });
    await t.page.mouse.up();
  });
  close(dragged[0].from - zoomed[0].from, 120 * zoomed[0].scale, "A moves by 120 pixels of B", 2 * zoomed[0].scale);
  aligned(dragged, starts(0), "after dragging B");

  // Far beyond the ends of both: neither holds the other back.
  const [, far] = await moving(t, "all", () => t.page.locator(".tl").first().getByRole("button", { name: "Fit all" }).click());
  aligned(far, starts(0), "all of both");
  await moving(t, "the wheel over B", async () => (await over(t, 1, 900), await t.page.mouse.wheel(0, 2000)), 1);
  aligned(await cameras(t), starts(0), "farther out");

  await t.page.locator("main").getByRole("button", { name: "Next step" }).click();
  await drawn(t);
  aligned(await cameras(t), starts(1), "the second steps");
  close((await cameras(t))[0].from, steps[0][1].start - 0.02 * longest(1), "begins a little before the second step");
  await over(t, 0);
  const [, part] = await moving(t, "a part of the step", () => t.page.mouse.wheel(0, -500));
  const [, later] = await moving(t, "the same part of the third step", () => t.page.locator("main").getByRole("button", { name: "Next step" }).click());
  aligned(later, starts(2), "the third steps");
  close(later[0].scale, part[0].scale, "at the same zoom");
  assert(/^step \d+ of A, step \d+ of B \(3 of \d\)$/.test(await t.page.getByTitle("Show both in full").innerText()), "says which");
  await t.page.waitForFunction((c) => Math.abs(Number(new URLSearchParams(location.hash.split("?")[1]).get("b.from")) - c.from) < 1 + c.scale, later[1]);
  const url = await t.url();
  await t.page.goto("about:blank");
  await t.page.goto(url);
  await t.ready("compare");
  const again = await cameras(t);
  aligned(again, starts(2), "the address", 2);
  close(again[0].from, later[0].from, "the address shows the same", 2);

  await t.page.getByLabel("Linked").uncheck();
  await over(t, 0);
  const [before, alone] = await moving(t, "A alone", () => t.page.mouse.wheel(0, 300));
  same(JSON.stringify(alone[1]), JSON.stringify(before[1]), "B, which is not linked");
  await t.page.getByLabel("Linked").check();
  const joined = await cameras(t);
  same(joined[1].scale, joined[0].scale, "linked again: ns a pixel");
  close(joined[1].from, alone[1].from, "linked where they stand");
  await t.shot("compare-linked");
}

/** Keys are for the timeline under the pointer, or for that with the focus; with neither they are not for any. Nothing stays when the page is left. */
async function keysAndLeaving(t) {
  t.need("plugin");
  await t.open("operators", "plugin");
  await t.page.evaluate(() => {
    const before = window.addEventListener;
    window.listeners = 0;
    window.addEventListener = (type, f, options) => {
      if (/^(key|blur|wheel)/.test(type)) window.listeners++, options?.signal?.addEventListener("abort", () => window.listeners--);
      before.call(window, type, f, options);
    };
  });
  const listeners = () => t.page.evaluate(() => window.listeners);
  await t.open("compare", "plugin", { b: OTHER });
  await drawn(t);
  same(await listeners(), 8, "listeners of two timelines");
  const scales = await t.page.evaluate(() => {
    const canvas = document.querySelector(".tl canvas"), turn = (e) => (e.dispatchEvent(new WheelEvent("wheel", { deltaY: 100, bubbles: true, cancelable: true })), canvas.timeline.camera.scale);
    return [turn(document.querySelector("main")), turn(canvas)];
  });
  same(scales[1], scales[0], "ns a pixel, when the page was being scrolled");
  await t.page.getByLabel("Linked").uncheck();
  await t.page.locator("main h1").click();
  const there = JSON.stringify(await cameras(t));
  await t.page.keyboard.press("0");
  await t.page.keyboard.press("w");
  same(JSON.stringify(await cameras(t)), there, "keys beside the timelines");
  await over(t, 1);
  const [, b] = await moving(t, "0 over B", () => t.page.keyboard.press("0"), 1);
  same(JSON.stringify(b[0]), JSON.stringify(JSON.parse(there)[0]), "A, when B is under the pointer");
  await t.page.mouse.move(5, 5);
  await t.page.locator(".tl canvas").first().focus();
  const [, a] = await moving(t, "0 in A", () => t.page.keyboard.press("0"), 0);
  same(JSON.stringify(a[1]), JSON.stringify(b[1]), "B, when A has the focus");
  await t.open("operators", "plugin");
  same(await listeners(), 0, "listeners when the page has been left");
  await t.page.keyboard.press("w");
}

/** One recording twice; no steps on a side; no timeline on a side. */
async function otherSides(t) {
  t.need("plugin");
  await t.open("operators", "plugin");
  const info = await infoOf(t, "plugin"), { steps } = info;
  await t.open("compare", "plugin", { b: INPUTS.plugin.key, a_steps: String(steps[1].number), b_steps: `${steps[3].number}..` });
  aligned(await cameras(t), [steps[1].start, steps[3].start], "two steps of one recording");
  // Steps that another op marks begin elsewhere than those that the timeline's ruler has.
  const op = "aten::nll_loss", key = { key_op: op, steps: "all" }, table = await t.page.evaluate((url) => fetch(url).then((r) => r.json()), `api/report/steps?${new URLSearchParams({ input: INPUTS.plugin.key, ...key })}`);
  const at = (id) => table.columns.findIndex((x) => x.id === id), marked = table.rows.filter((r) => r[at("whole")]).map((r) => r[at("start_ns")] - Number(info.first_ns));
  assert(marked.length > 2 && !steps.some((s) => s.start === marked[0]), "steps by another op");
  await t.open("compare", "plugin", { b: INPUTS.plugin.key, key_op: op, b_steps: "2.." });
  aligned(await cameras(t), [marked[0], marked[1]], "steps by an op", 1000); // these times are beyond 2^53 ns
  t.need("dlprof");
  await t.open("compare", "plugin", { b: INPUTS.dlprof.key });
  const work = (i) => Math.min(...i.tracks.filter((x) => x.device && x.slices).map((x) => x.first));
  aligned(await cameras(t), [work(info), work(await infoOf(t, "dlprof"))], "no steps: the first device work");
  await t.open("compare", "dlprof", { b: INPUTS.own.key });
  aligned(await cameras(t), [0, 0], "nor device work on both sides: the begin of the recordings");
  const [, all] = await moving(t, "all, of B, which is shorter", () => t.page.locator(".tl").nth(1).getByRole("button", { name: "Fit all" }).click(), 1);
  close(all[1].scale * all[1].room, 1.02 * (await infoOf(t, "dlprof")).length, "all of B is all of both");
  aligned(all, [0, 0], "all of both");
  await t.page.route(/api\/timeline\?.*worker0%2F2/, (r) => r.fulfill({ headers: { "X-Opscope-Status": "422" }, json: { error: "No timeline today." } }));
  await t.open("compare", "plugin", { b: OTHER });
  assert((await t.page.locator("main .empty").innerText()) === "B: No timeline today.", "the refusal stands in the place of B");
  const [alone] = await cameras(t);
  close(alone.from, steps[0].start - 0.02 * (steps[0].end - steps[0].start), "A alone shows its first step");
}

async function kernelsStandOut(t) {
  t.need("plugin");
  await t.open("compare", "plugin", { b: OTHER, by: "kernel" });
  const row = (await t.rows("diff")).map((r) => new Map(r.map(([c, whole]) => [c, whole]))), table = diff(INPUTS.plugin.path, SPAN_2(), "--by=kernel"), at = (id) => table.columns.findIndex((c) => c.id === id);
  const i = table.rows.findIndex((r) => r[at("kind")] === "compute"), name = table.rows[i][at("full_name")] || table.rows[i][at("name")];
  same(row[i].get(at("name")), table.rows[i][at("name")], "the row");
  await t.page.locator('[data-table="diff"] .tabulator-row').nth(i).click();
  for (const [side, of] of [[0, "plugin"], [1, OTHER]]) {
    const found = await t.page.evaluate((url) => fetch(url).then((r) => r.json()), `api/timeline/find?${new URLSearchParams({ input: KEYS(of), text: name, limit: 1 })}`);
    assert(found.found > 0, name);
    await t.until(`hits on side ${side}`, async () => (await t.page.locator(".tl .found").nth(side).innerText()).startsWith(`${found.found.toLocaleString("en-US")},`));
  }
}

/** The note names the colours of the kinds that are shown, and no others, and says of the axis what is so. */
async function colours(t) {
  t.need("plugin");
  const words = { compute: "blue: computation", comm: "orange: communication that nothing hides", wait: "pink: of it waiting for other ranks", copy: "green: copies", idle: "grey: no work", host: "light blue: the host" };
  for (const device of [undefined, "cpu"]) {
    await t.open("compare", "plugin", { b: OTHER, ...(device ? { device } : {}) });
    const want = diff(INPUTS.plugin.path, SPAN_2(), ...(device ? [`--device=${device}`] : [])), at = (id) => want.columns.findIndex((c) => c.id === id);
    const kinds = new Set(want.rows.filter((r) => r[at("delta_ns")]).slice(0, 10).map((r) => r[at("kind")])), chart = await t.chart("From A to B");
    const note = (await t.page.locator("main p.note").allInnerTexts()).find((x) => /: (computation|the host|no work)/i.test(x)) ?? "";
    for (const [kind, word] of Object.entries(words)) same(note.toLowerCase().split(/; |\. ?/).includes(word), kinds.has(kind), `${device ?? "all GPUs"}: "${word}" in "${note}"`);
    same(note.includes("The axis does not begin at 0."), chart.series[0].data[0][0] > 0, `the axis, in "${note}"`);
  }
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
    const diffs = t.page.locator('[data-table="diff"]'), wide = await diffs.evaluate((e) => Object.fromEntries(e.tabulator.getColumns().filter((c) => c.isVisible()).map((c) => [c.getDefinition().title, c.getWidth()])));
    assert(wide.Name >= 300, `the names have room: ${JSON.stringify(wide)}`);
    const [inner, outer] = await diffs.locator(".tabulator-tableholder").evaluate((e) => [e.scrollWidth, e.clientWidth]);
    assert(inner <= outer, `the table is not moved sideways: ${inner} of ${outer} pixels, ${JSON.stringify(wide)}`);
    const empty = await diffs.evaluate((e) => e.tabulator.getColumns().filter((c) => c.isVisible() && e.tabulator.getRows().every((r) => [null, ""].includes(r.getData().cells[Number(c.getField().split(".")[1])]))).map((c) => c.getDefinition().title));
    same(empty.join(), "", "columns that are empty");
    const [bar, a, b] = await t.page.evaluate(() => ["header", ".tl", ".tl ~ .tl"].map((x) => document.querySelector(x).getBoundingClientRect().toJSON()));
    same(Math.round(b.height), Math.round(a.height), "heights of the timelines");
    assert(b.bottom - a.top + bar.height <= height, `both timelines are in sight at ${height}: ${b.bottom - a.top}`);
    await t.shot(`compare-${width}`);
  }
}

export const tests = [["two spans", twoSpans], ["rows and steps", rowsAndSteps], ["tree of modules", treeOfModules], ["two models", refused], ["colours", colours], ["in two sizes", narrow],
  ["linked timelines", linked], ["keys, and leaving", keysAndLeaving], ["timelines of one recording, and without steps", otherSides], ["a kernel stands out in both timelines", kernelsStandOut]];
