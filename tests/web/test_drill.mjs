// From a row to what belongs to it: each drill-down shows the right rows, and its address shows them again.
import { assert, near, same } from "./harness.mjs";

const at = (table, id) => table.columns.findIndex((c) => c.id === id);
const sum = (rows, column) => rows.reduce((s, r) => s + Number(r[column] ?? 0), 0);

/** The page as its address shows it to somebody else. */
async function again(t, view) {
  const url = await t.url();
  await t.page.goto("about:blank");
  await t.page.goto(url);
  await t.ready(view);
}

async function totals(rows, column, want, what) {
  const got = rows.map((r) => new Map(r).get(column)).reduce((s, text) => s + Number(text.replace(/,/g, "")), 0);
  same(got, want, what);
}

/** Lines of the table of stacks, and the stacks below each. */
const stackRows = (t) => t.page.locator('[data-table="stacks"]').evaluate((e) => e.tabulator.getData().map((r) => ({ cells: r.cells, below: (r._children ?? []).map((k) => k.cells) })));

async function callStacks(t) {
  const own = t.report("operators", "plugin", "--group-by=stack"), name = "aten::cudnn_convolution_backward_input", want = own.rows.filter((r) => r[0] === name);
  await t.open("operators", "plugin");
  await t.choose("operators", '[data-table="stacks"] .tabulator-row', t.row("operators", name));
  const lines = await stackRows(t), single = lines.flatMap((l) => (l.below.length ? l.below : [l.cells]));
  same(new Set(lines.map((l) => l.cells[0])).size, lines.length, "lines differ");
  same(single.length, want.length, "stacks");
  for (const list of [lines.map((l) => l.cells), single]) same(sum(list, 2), sum(want, at(own, "calls")), "calls");
  for (const l of lines) if (l.below.length) same(sum(l.below, 3), l.cells[3], `device time at ${l.cells[0]}`);
  const shown = async () => (await t.page.locator(".frames li").allInnerTexts()).join(";"), stacks = want.map((r) => r[at(own, "call_stack")] ?? "");
  assert(stacks.includes(await shown()), "frames of the first line's first stack");
  assert(/\.py\(\d+\): /.test(await shown()), "a frame has file and line");
  const first = await shown();
  await t.page.locator('[data-table="stacks"] .tabulator-row').last().click();
  await t.until("other frames", async () => (await shown()) !== first);
  assert(stacks.includes(await shown()), "frames of the last");
  await t.shot("drill-operators");
  await again(t, "operators");
  same((await stackRows(t)).length, lines.length, "lines of the same address");
  assert(await t.page.locator('[data-table="operators"] .chosen', { hasText: name }).count(), "the row is marked");
  await t.open("operators", "h100"); // whose layers run the same lines
  await t.choose("operators", '[data-table="stacks"] .tabulator-row', t.row("operators", "aten::addmm"));
  const layers = (await stackRows(t)).flatMap((l) => l.below);
  assert(layers.length > 10, `${layers.length} stacks`);
  same(new Set(layers.map((r) => r[0] + r[1])).size, layers.length, "rows that differ, by the module if by nothing else");
}

/** Frames open the editor that the reader has chosen; what was chosen stays. */
async function editor(t) {
  const hrefs = () => t.page.locator(".frames a").evaluateAll((list) => list.map((a) => [a.textContent, a.getAttribute("href")]));
  const settle = async (which, more = async () => {}) => {
    await t.page.click('header button[aria-label="Editor"]');
    const box = t.page.locator("dialog.settings");
    await box.locator("select").selectOption(which);
    await more(box);
    await box.getByText("Save").click();
    if (await box.isVisible()) return (await box.locator("[role=alert]").innerText());
    await t.ready("operators");
    await t.page.locator(".frames li").first().waitFor();
    return "";
  };
  await t.open("operators", "plugin");
  await t.choose("operators", ".frames li", t.row("operators", "aten::cudnn_convolution_backward_input"));
  const frames = await t.page.locator(".frames li").allInnerTexts(), whole = frames.map((f) => /^(\/.*\.py)\((\d+)\): /.exec(f)).filter((m) => m);
  assert(whole.length > 0 || frames.some((f) => /\.py\(\d+\): /.test(f)), "frames have lines");
  same(JSON.stringify((await hrefs()).map((x) => x[1])), JSON.stringify(whole.map((m) => `vscode://file${m[1]}:${m[2]}`)), "VS Code at first");
  same(await settle("pycharm", (box) => box.locator("textarea").fill(" = /home/me/checkout\n/opt = /usr/opt")), "", "PyCharm");
  const lines = (await hrefs()).filter(([f]) => !f.startsWith("/"));
  for (const [text, href] of lines) {
    const m = /^(.*)\((\d+)\): /.exec(text);
    same(href, `pycharm://open?file=/home/me/checkout/${m[1]}&line=${m[2]}`, "a path without a folder");
  }
  await t.page.reload();
  await t.ready("operators");
  assert(lines.length > 0 && (await hrefs()).every(([, href]) => href.startsWith("pycharm://")), "it stays");
  assert(/no scheme of an editor/.test(await settle("own", (box) => box.getByLabel("Address").fill("javascript://%0aalert(1)//{file}"))), "an address that runs code is refused");
  await t.page.locator("dialog.settings").getByText("Cancel").click();
  same(await settle("none"), "", "none");
  same((await hrefs()).length, 0, "no links");
}

async function groupings(t) {
  for (const by of ["shape", "stack", "line"]) {
    await t.open("operators", "plugin");
    await t.page.locator("label.choice", { hasText: "Group by" }).locator("select").selectOption(by);
    await t.page.waitForFunction((x) => location.hash.includes("by=" + x), by);
    await t.ready("operators");
    await t.sameTable("operators", t.report("operators", "plugin", `--group-by=${by}`), ["call_stack"]);
    await t.choose("operators", '[data-table="stacks"] .tabulator-row');
  }
}

async function kernelLaunches(t) {
  const own = t.report("kernels", "plugin", "--group-by=op"), names = t.report("kernels", "plugin"), name = names.rows[0][0];
  await t.open("kernels", "plugin");
  await t.choose("kernels", '[data-table="kernel-op"] .tabulator-row');
  await t.until("what was opened is in sight", () => t.page.locator('[data-detail="row"]').evaluate((e) => e.getBoundingClientRect().top >= 0 && e.querySelector(".tabulator-row").getBoundingClientRect().bottom <= innerHeight));
  const rows = await t.rows("kernel-op"), want = own.rows.filter((r) => r[0] === name);
  same(rows.length, want.length, "ops that launched it");
  await totals(rows, at(own, "calls"), names.rows[0][at(names, "calls")], "calls");
  await t.shot("drill-kernels");
}

const instances = (t, input) => {
  const k = t.report("kernels", input, "--group-by=instance", "--limit=0");
  return { rows: k.rows, step: at(k, "step"), op: at(k, "op_id"), direction: at(k, "direction"), dur: at(k, "dur_ns"), name: at(k, "kernel_name") };
};

async function opsKernels(t) {
  const k = instances(t, "plugin"), ops = t.report("ops", "plugin"), [id, direction] = [ops.rows[0][at(ops, "op_id")], ops.rows[0][at(ops, "direction")]];
  const want = k.rows.filter((r) => r[k.op] === id && r[k.direction] === direction);
  await t.open("ops-kernels", "plugin");
  await t.choose("ops", '[data-table="kernels"] .tabulator-row');
  const rows = await t.rows("kernels");
  same(rows.length, new Set(want.map((r) => r[k.name])).size, "kernels");
  await totals(rows, 2, want.length, "calls");
  const names = t.report("kernels", "plugin"), short = new Map(names.rows.map((r) => [r[at(names, "name")].replace(/\s+/g, " "), r[at(names, "short_name")]]));
  for (const r of rows) same(r[0][2], short.get(r[0][1].replace(/\s+/g, " ")), `the short name of ${r[0][1]}`);
  await t.tidy("kernels");
  await t.shot("drill-ops-kernels");
  await again(t, "ops-kernels");
  same((await t.rows("kernels")).length, rows.length, "kernels of the same address");
}

async function unused(t) {
  await t.open("ops-kernels", "plugin", { pick: "unused" });
  const ops = t.report("ops", "plugin"), want = ops.rows.filter((r) => r[at(ops, "tc_eligible")] === true && r[at(ops, "tc_used")] === "no");
  assert(want.length > 0, "some do not use Tensor Cores");
  same((await t.rows("ops")).length, want.length, "ops that could use Tensor Cores, but do not");
}

async function byIteration(t) {
  const k = instances(t, "plugin"), steps = [...new Set(k.rows.map((r) => r[k.step]))];
  await t.open("kernels-iteration", "plugin");
  const list = await t.rows("iterations");
  same(list.length, steps.length, "iterations");
  for (const r of list) {
    const of = k.rows.filter((x) => String(x[k.step]) === r[0][1]);
    near(r[1][1], of.length, `kernels of step ${r[0][1]}`);
    near(r[3][1], sum(of, k.dur), `GPU time of step ${r[0][1]}`);
  }
  await t.row("iterations", "7").click();
  await t.page.waitForSelector('[data-table="kernels"] .tabulator-row');
  await totals(await t.rows("kernels"), 5, k.rows.filter((r) => r[k.step] === 7).length, "kernels of step 7");
  await t.shot("drill-kernels-iteration");
}

const byOp = (input, step) => async (t) => {
  const k = instances(t, input), of = k.rows.filter((r) => r[k.step] === step);
  await t.open("kernels-op", input);
  await t.row("iterations", step === null ? "outside all steps" : String(step)).click();
  await t.page.waitForSelector('[data-table="step-ops"] .tabulator-row');
  const ops = await t.rows("step-ops"), first = new Map(ops[0]);
  same(ops.length, new Set(of.map((r) => JSON.stringify([r[k.op], r[k.direction]]))).size, "ops");
  await totals(ops, 4, of.length, "kernels of all ops");
  await t.choose("step-ops", '[data-table="kernels"] .tabulator-row');
  await totals(await t.rows("kernels"), 2, Number(first.get(4)), "kernels of the first op");
  await t.shot(`drill-kernels-op-${input}`);
  await again(t, "kernels-op");
  await totals(await t.rows("kernels"), 2, Number(first.get(4)), "kernels by the same address");
};

async function topOps(t) {
  await t.open("overview", "plugin");
  const id = await t.page.locator('[data-table="ops"] .tabulator-row').first().locator(".tabulator-cell").first().innerText();
  await t.choose("ops", 'main[data-ready="ops-kernels"]');
  await t.ready("ops-kernels");
  assert((await t.page.locator('[data-detail="op"] h3').first().innerText()).includes(id), "the op's kernels are shown");
}

/** A bar of a step opens the timeline there. */
async function stepBar(t) {
  const s = t.report("overview", "plugin").sections.find((x) => x.name === "steps"), [start, total] = ["start_ns", "total_ns"].map((id) => s.columns.findIndex((c) => c.id === id)), row = s.rows[2];
  await t.open("overview", "plugin");
  const bar = t.page.locator('[role="img"][aria-label="Steps"]'), [x, y] = await bar.evaluate((e) => e.chart.convertToPixel({ seriesIndex: 0 }, [2, e.chart.getOption().series[0].data[2] / 2]));
  await bar.click({ position: { x, y } });
  await t.ready("timeline");
  const w = await t.page.evaluate(() => { const { scene, info } = document.querySelector(".tl canvas").timeline; return { ...scene.window, first: info.first_ns }; });
  assert(Math.abs(Number(BigInt(w.first) + BigInt(Math.round(w.from))) - row[start]) <= 512, `the window begins at ${w.from}`);
  assert(Math.abs(w.to - w.from - row[total]) <= 512, `the window is ${w.to - w.from} ns long, the step ${row[total]}`);
}

async function evidence(t) {
  await t.open("overview", "plugin");
  const want = t.program(["advise"], "plugin"), cards = t.page.locator(".finding");
  same(await cards.count(), want.rows.length, "findings");
  await cards.first().locator("summary").click();
  assert((await cards.first().innerText()).includes(want.rows[0][at(want, "evidence")]), "the evidence is shown");
  await cards.first().locator("a").first().click();
  await t.ready("iterations");
}

/** From a finding to the moment where it is seen best. */
async function moment(t) {
  const found = t.program(["advise"], "plugin"), at_ = (id) => at(found, id), row = found.rows.find((r) => r[at_("from_ns")] !== null);
  await t.open("overview", "plugin");
  const card = t.page.locator(`.finding[data-detector="${row[at_("detector")]}"]`);
  await card.locator("summary").click();
  await card.locator("a", { hasText: "Timeline" }).click();
  await t.page.waitForSelector('[data-table="selection"] .tabulator-row');
  const s = await t.page.evaluate(() => { const { scene, info, room } = document.querySelector(".tl canvas").timeline; return { window: scene.window, camera: scene.camera, first: info.first_ns, length: info.length, room }; });
  // The test's numbers are rounded: times of this trace need 61 bits.
  for (const [name, want] of [["from", row[at_("from_ns")]], ["to", row[at_("to_ns")]]]) {
    const got = Number(BigInt(s.first) + BigInt(s.window[name]));
    assert(Math.abs(got - want) <= 512, `${name}: the window is at ${got}, expected ${want}`);
  }
  assert(s.camera.from >= -1 && s.camera.from + s.camera.scale * s.room <= s.length + 1 + s.camera.scale, "nothing outside the recording");
  assert(s.camera.from < s.window.from && s.camera.from + s.camera.scale * s.room > s.window.to, "the window is in view, with what is around it");
  assert(s.camera.scale * s.room < 4 * (s.window.to - s.window.from), "and large");
  await t.page.waitForFunction(() => /win=\d/.test(location.hash) && !/look=/.test(location.hash));
}

async function modules(t) {
  const m = t.report("modules", "h100"), depth = at(m, "depth"), name = at(m, "module");
  await t.open("modules", "h100");
  const grid = t.page.locator('[data-table="modules"]');
  await grid.locator(".tabulator-data-tree-control").first().click();
  same(await grid.locator(".tabulator-row").count(), m.rows.filter((r) => r[depth] === 0).length, "roots alone, folded");
  await grid.locator(".tabulator-data-tree-control").first().click();
  assert((await grid.locator(".tabulator-row").count()) > 1, "unfolded");
  await grid.locator(".tabulator-row").first().focus();
  await t.page.keyboard.press("ArrowLeft");
  same(await grid.locator(".tabulator-row").count(), m.rows.filter((r) => r[depth] === 0).length, "folded by a key");
  await t.page.keyboard.press("ArrowRight");
  assert((await grid.locator(".tabulator-row").count()) > 1, "unfolded by a key");
  const flame = (await t.chart("Modules by device time, forward and backward")).series[0].data;
  assert(flame.length > 20, `${flame.length} boxes`);
  await t.page.locator('[role="img"] canvas').first().click({ position: { x: 200, y: 34 } });
  await t.page.waitForFunction(() => location.hash.includes("at="));
  assert(decodeURIComponent(await t.url()).includes(m.rows[0][name] + "/" + m.rows[1][name]), "the box that was clicked stands in the address");
  await t.shot("drill-modules");
  await t.page.getByRole("button", { name: "Show all" }).click();
  const boxes = () => t.page.locator('[role="img"]').first().evaluate((e) => e.chart.getZr().storage.getDisplayList().filter((x) => x.type === "tspan" || x.type === "text").map((x) => x.style.text));
  assert((await boxes()).some((x) => /….*_\d+$/.test(x)), `names lose their middle, not their number: ${await boxes()}`);
  await t.page.getByLabel("Order").selectOption("time");
  await t.page.waitForFunction(() => /order=time/.test(location.hash));
  await t.ready("modules");
  const below = (await t.page.locator('[role="img"]').first().evaluate((e) => e.chart.boxes)).filter((b) => b.depth === 1).map((b) => b.width);
  assert(below.length > 1 && below.every((w, i) => i === 0 || w <= below[i - 1]), `by time: ${below}`);
  same((await t.chart("Modules by device time, forward and backward")).series[0].data.length, flame.length, "all boxes again");
  await t.open("modules", "plugin");
  const lines = t.report("layers", "plugin", "--group-by=line");
  await t.sameTable("layers", lines);
  near(await t.figure("Backward, device work"), sum(lines.rows, at(lines, "backward_gpu_ns")), "backward");
  await t.open("modules", "own"); // without a GPU the same of the host
  const layers = t.report("layers", "own");
  await t.sameTable("layers", layers);
  for (const [title, column] of [["Forward", "forward_host_ns"], ["Backward", "backward_host_ns"], ["Optimizer", "optimizer_host_ns"]])
    near(await t.figure(`${title}, on the host`), sum(layers.rows, at(layers, column)), column);
  await t.sameTable("modules", t.report("modules", "own"));
}

/** A tree of rows in pre-order, each level by a column, the largest first. */
function byTime(g, column, depth = at(g, "depth")) {
  const sorted = (rows) => {
    const heads = rows.flatMap((r, i) => (r[depth] === rows[0][depth] ? [i] : [])), parts = heads.map((i, k) => rows.slice(i, heads[k + 1]));
    return parts.sort(([a], [b]) => b[column] - a[column]).flatMap(([head, ...rest]) => [head, ...(rest.length ? sorted(rest) : [])]);
  };
  return { ...g, rows: sorted(g.rows) };
}

async function groups(t) {
  const g = t.report("groups", "plugin");
  await t.open("groups", "plugin");
  await t.sameTable("groups", byTime(g, at(g, "gpu_ns")));
  await t.page.locator('[data-table="groups"] .tabulator-data-tree-control').first().click();
  same(await t.page.locator('[data-table="groups"] .tabulator-row').count(), g.rows.filter((r) => r[0] === 0).length, "the roots alone, folded");
}

async function memoryRange(t) {
  const blocks = t.report("memory", "h100").sections.find((s) => s.name === "events"), made = at(blocks, "allocation_time_ns"), freed = at(blocks, "release_time_ns"), size = at(blocks, "size_bytes");
  await t.open("memory", "h100");
  const box = await t.page.locator('[aria-label="Memory over time"]').boundingBox();
  await t.page.mouse.move(box.x + 300, box.y + 100);
  await t.page.mouse.down();
  await t.page.mouse.move(box.x + 600, box.y + 120, { steps: 8 });
  await t.page.mouse.up();
  await t.page.waitForFunction(() => /from=\d+/.test(location.hash) && document.querySelector("main").innerText.includes("in the range"));
  await t.ready("memory");
  const args = new URLSearchParams((await t.url()).split("?").pop()), [from, to] = ["from", "to"].map((n) => Number(args.get(n))), within = (v) => v !== null && v >= from && v <= to;
  const want = blocks.rows.filter((r) => within(r[made]) || within(r[freed]));
  assert(want.length > 0 && want.length < blocks.rows.length, `the range holds ${want.length} of ${blocks.rows.length} blocks`);
  same((await t.rows("memory-events")).length, want.length, "blocks in the range");
  const rows = await t.rows("memory"), allocations = want.filter((r) => within(r[made]));
  await totals(rows, 1, allocations.length, "allocations in the range");
  const bytes = new Map();
  for (const r of allocations) bytes.set(r[0], (bytes.get(r[0]) ?? 0) + r[size]);
  for (const r of rows) near(r[2][1], bytes.get(r[0][1]) ?? 0, `bytes of ${r[0][1]}`);
  await t.shot("drill-memory");
  await t.page.getByRole("button", { name: "Whole time" }).click();
  await t.page.waitForFunction(() => !location.hash.includes("from="));
  await t.ready("memory");
  same((await t.rows("memory-events")).length, blocks.rows.length, "all blocks again");
}

/** Texts beside the dots of a chart, and where they are drawn. */
function drawnNames(t, title) {
  return t.page.locator(`[role="img"][aria-label="${title}"]`).evaluate((e) => {
    const labels = e.chart.getZr().storage.getDisplayList(true).filter((x) => x.type === "tspan" && x.parent?.__hostTarget);
    return labels.map((x) => {
      const { x: left, y, width, height } = x.getBoundingRect(), [a, , , d, dx, dy] = x.getComputedTransform() ?? [1, 0, 0, 1, 0, 0];
      return { text: x.style.text, x: left * a + dx, y: y * d + dy, width: width * a, height: height * d };
    });
  });
}

async function roofline(t) {
  const r = t.report("roofline", "h100"), chart = await (await t.open("roofline", "h100"), t.chart("Roofline")), y = at(r, "tflops_per_s");
  const points = chart.series.filter((s) => s.type === "scatter").flatMap((s) => s.data), want = r.rows.filter((x) => x[y] > 0 && x[at(r, "flops_per_byte")] > 0);
  same(points.length, want.length, "points");
  for (const p of points) same(p.value[1], r.rows[p.row][y], `TFLOP/s of ${r.rows[p.row][0]}`);
  const gain = at(r, "gain_ns"), rows = r.rows.filter((x) => x[gain] > 0).sort((a, b) => b[gain] - a[gain]), first = rows[0], total = (await t.figure("Missing to the roof, at most")).split(", ")[0];
  near(total, sum(rows, gain), "what is missing to the roof");
  near((await t.figure(`First: ${first[at(r, "op")]}, ${first[at(r, "direction")]}`)).split(", ")[0], first[gain], "the op with most of it");
  const large = [...points].sort((a, b) => b.share - a.share).slice(0, 8);
  assert(large[0].label.show && points.filter((p) => p.label.show).length >= 3, "the largest points have names");
  const ends = await t.page.locator('[role="img"][aria-label="Roofline"]').evaluate((e) => e.chart.getOption().yAxis.map((x) => [x.min, x.max])[0]), ys = large.map((p) => p.value[1]);
  assert(ends[0] >= Math.min(...ys) / 30 && ends[0] <= Math.min(...ys) && ends[1] >= Math.max(...ys), `the axis from ${ends} fits ${ys}`);
  const roofs = chart.series.filter((s) => s.type === "line");
  same(roofs.map((s) => s.name).sort().join(), [...new Set(r.rows.map((x) => x[at(r, "peak")]).filter((x) => x))].sort().join(), "ceilings");
  for (const s of roofs) near(`${s.data.at(-1)[1].toFixed(1)}`, Number(/([\d.]+) TFLOP\/s/.exec(s.name)[1]), s.name);
  for (const [input, by] of [["h100", "op"], ["plugin", "shape"]]) {
    if (by !== "op") await t.open("roofline", input, { by });
    const names = await drawnNames(t, "Roofline"), meets = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
    assert(names.length >= 3, `${names.length} names beside points, ${by}`);
    for (const [i, a] of names.entries()) for (const b of names.slice(i + 1)) assert(!meets(a, b), `${a.text} covers ${b.text}`);
  }
}

const frames = (page, n) => page.evaluate((k) => new Promise((done) => (function next(left) { left ? requestAnimationFrame(() => next(left - 1)) : done(); })(k)), n);

/** How often a table has made its rows anew from now on. */
async function countRenders(t, key) {
  const grid = t.page.locator(`[data-table="${key}"]`);
  await grid.evaluate((e) => ((e.renders = 0), e.tabulator.on("renderStarted", () => e.renders++)));
  return () => grid.evaluate((e) => e.renders);
}

/** The table's place gets another width between press and release: the click counts, and the rows are fitted after it. */
async function pressedRow(t) {
  await t.open("operators", "own");
  const row = t.page.locator('[data-table="operators"] .tabulator-row').nth(1), grid = t.page.locator('[data-table="operators"]');
  await row.scrollIntoViewIfNeeded();
  const renders = await countRenders(t, "operators"), b = await row.boundingBox(), { width, height } = t.page.viewportSize(), before = await grid.evaluate((e) => e.clientWidth);
  await t.page.mouse.move(b.x + 100, b.y + b.height / 2);
  await t.page.mouse.down();
  await t.page.setViewportSize({ width: width - 60, height });
  await t.page.waitForFunction(([e, w]) => e.clientWidth < w, [await grid.elementHandle(), before]);
  await frames(t.page, 3);
  same(JSON.stringify((await row.boundingBox()).y), JSON.stringify(b.y), "the row's place");
  same(await renders(), 0, "rows made anew under a button that is held down");
  await t.page.mouse.up();
  await t.page.waitForSelector('[data-table="stacks"] .tabulator-row');
  assert(await row.evaluate((e) => e.classList.contains("chosen")), "the row is marked");
  await t.until("rows that fit the new width", async () => (await renders()) > 0);
}

/** What a page that is being left still has to note does not get into the address of the next one. */
async function leaving(t) {
  await t.open("overview", "own");
  await t.page.evaluate(() => {
    location.hash = location.hash.replace("overview", "operators");
    const search = document.querySelector('main input[type="search"]');
    search.value = "conv";
    search.dispatchEvent(new Event("input"));
  });
  await t.ready("operators");
  assert(!(await t.url()).includes("conv"), `the address has what was typed on the page before: ${await t.url()}`);
}

/** Rows stay what they are when a table comes into sight: who scrolls to it and clicks at once means the row that is there. */
async function intoSight(t) {
  await t.open("overview", "own");
  const grid = t.page.locator('[data-table="ops"]'), renders = await countRenders(t, "ops"), out = await grid.evaluate((e) => e.getBoundingClientRect().top - innerHeight);
  assert(out > 0, `the table is in sight: ${out}`);
  for (const at of ["center", "end"]) {
    await grid.evaluate((e, block) => e.scrollIntoView({ block }), at);
    await frames(t.page, 3);
    await t.page.evaluate(() => scrollTo(0, 0));
    await frames(t.page, 3);
  }
  same(await renders(), 0, "rows made anew");
  // Those of the pages that were left are let go.
  for (const view of ["operators", "overview"]) {
    await t.page.locator("nav a", { hasText: new RegExp(`^${view}$`, "i") }).click();
    await t.ready(view);
  }
  await t.until("no tables but the page's", () => grid.evaluate((e) => e.tabulator.constructor.registry.tables.every((x) => x.element.isConnected)));
  assert(await grid.evaluate((e) => e.tabulator.constructor.registry.tables.length > 0), "a list of tables");
}

/** What a finding says of options is said of the fields that the pages have for them. */
async function fields(t) {
  await t.page.route(/\/api\/advise/, async (route) => {
    const answer = await route.fetch(), body = await answer.json(), at = body.columns?.findIndex((c) => c.id === "advice");
    for (const r of body.rows ?? []) r[at] = "Leave it out (--steps=3..), of `opscope advise`.";
    await route.fulfill({ response: answer, json: body });
  });
  await t.open("advice", "plugin");
  const text = await t.page.locator(".finding").first().innerText();
  assert(text.includes("Leave it out (Steps above: 3..), of The page Advice."), text);
}

export const tests = [
  ["call stacks of an operator", callStacks], ["frames open an editor", editor], ["groupings of operators", groupings], ["what launched a kernel", kernelLaunches], ["kernels of an op", opsKernels],
  ["ops that could use Tensor Cores", unused], ["kernels of an iteration", byIteration], ["kernels of an op of an iteration", byOp("plugin", 6)], ["kernels of an op without iterations", byOp("dlprof", null)],
  ["from the top ops to kernels", topOps], ["from a step to the timeline", stepBar], ["from a finding to its evidence", evidence], ["from a finding to its moment", moment], ["a row that is pressed while the table changes its width", pressedRow],
  ["a table that comes into sight", intoSight], ["a page that is left", leaving], ["modules", modules], ["groups", groups], ["options in a finding", fields], ["a range of memory", memoryRange], ["roofline", roofline],
];
