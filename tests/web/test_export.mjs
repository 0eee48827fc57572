// Exported reports, opened from the disk: every page shows what the server's page shows, nothing leaves, and what is made of parts of the data is
// what the server makes of them.
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Absent, assert, INPUTS, near, same } from "./harness.mjs";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", ".."), BUNDLED = join(ROOT, "tests/data/torch214_cpu_resnet.json.gz"), CPU = "/torch214_cpu_resnet/default";

/** The report of a directory like the plugin's, with a small second span, and of the bundled trace, made once. */
function exported(t) {
  const out = join(t.folder, "report.html"), folder = join(t.folder, "plugin"), [run] = INPUTS.plugin.key.split("/");
  t.need("plugin");
  if (!existsSync(out)) {
    mkdirSync(join(folder, run), { recursive: true });
    copyFileSync(INPUTS.plugin.path, join(folder, run, basename(INPUTS.plugin.path)));
    copyFileSync(join(ROOT, "tests/data/synthetic/training_gpu.json"), join(folder, run, "worker0.1623143566756.pt.trace.json"));
    execFileSync(process.env.OPSCOPE, ["serve", `--export=${out}`, folder, BUNDLED], { stdio: "ignore" });
  }
  return pathToFileURL(out).href;
}

/** The op graph of a report is the server's. */
async function opGraph(t) {
  const file = join(process.env.OPSCOPE_DATA, "more/nsys/2026.3_gpt_small_a100/forward.sqlite"), input = "/forward/default";
  if (!existsSync(file)) throw new Absent(`no ${file}`);
  const { StaticTimeline } = await compiled(t, "static/timeline.ts"), server = await t.serve([file]), info = await ask(server, "timeline", { input });
  const events = await ask(server, "timeline/events", { input }), selection = await ask(server, "timeline/select", { input, limit: 1 }), s = new StaticTimeline(info, { events, selection });
  let edges = 0;
  for (const row of some(40, events.span.start.length)) {
    const got = s.answer("event", { kind: "span", row });
    same(sorted(got), sorted(await ask(server, "timeline/event", { input, kind: "span", row })), `span ${row}`);
    edges += got.graph?.edges.length ?? 0;
  }
  assert(edges > 100, `${edges} edges`);
}

/** What becomes a link to the reader's editor, and that nothing of a recording becomes another part of it. */
async function editors(t) {
  const { editorLink, faultOf, setServersEditor } = await compiled(t, "editor.ts");
  let kept = "{}";
  const choose = (editor, folders = []) => (kept = JSON.stringify({ editor, folders }));
  Object.defineProperty(globalThis, "localStorage", { configurable: true, value: { getItem: () => kept } });
  const href = (text) => (globalThis.forgetEditor(), editorLink(text)?.href);
  same(href("/repo/train.py(12): step"), "vscode://file/repo/train.py:12", "VS Code");
  same(href("C:\\repo\\train.py(12): step"), "vscode://file/C:/repo/train.py:12", "a drive");
  same(href('File "/repo/a b.py", line 3, in f'), "vscode://file/repo/a%20b.py:3", "as Python writes it");
  same(href("/repo/kernel.cu:7"), "vscode://file/repo/kernel.cu:7", "as compilers write it");
  for (const text of ["torch/nn/modules/linear.py(114): forward", "<string>(1): <module>", "nn.Module: Linear_0", "void f<int>(3)", "aten::mm", "/repo/train.py", "/repo/notes(3): x", "\ud800/x.py(1): f", "/\ud800.py(1): f"])
    same(href(text), undefined, text);
  same(href("/r/a#b?c&line=9&d=%2e\"'<i>.py(1): f"), "vscode://file/r/a%23b%3Fc%26line%3D9%26d%3D%252e%22'%3Ci%3E.py:1", "what is special in addresses");
  choose("pycharm");
  same(href("/r/a&line=9.py(2): f"), "pycharm://open?file=/r/a%26line%3D9.py&line=2", "PyCharm");
  choose("", [["/cluster/job", "/home/me/repo"], ["/cluster", "/elsewhere/"], ["", "/venv/site-packages"]]);
  same(href("/cluster/job/x.py(1): f"), "vscode://file/home/me/repo/x.py:1", "the longest folder that fits");
  same(href("/cluster/jobs/x.py(1): f"), "vscode://file/elsewhere/jobs/x.py:1", "whole names of folders alone");
  same(href("torch/x.py(1): f"), "vscode://file/venv/site-packages/torch/x.py:1", "paths without a folder");
  same(href("/other/x.py(1): f"), "vscode://file/other/x.py:1", "others stay");
  choose("none");
  same(href("/repo/train.py(12): step"), undefined, "no editor");
  for (const bad of ["javascript://%0aalert({file})", "JavaScript://x/{file}", "javascript:alert('{file}')", "data://text/html,{file}", "https://evil.example/{file}", "http://x/{file}", "file:///{file}", "vbscript://{file}", "blob://{file}", "ms-msdt://{file}",
    "vscode://file/x", "{file}://x", "vscode://file/{file} x", "x", "://{file}", " vscode://{file}"]) {
    choose(bad);
    same([href("/repo/train.py(12): step"), !!faultOf(bad)].join(), ",true", bad);
  }
  choose("zed://file/{file}:{line}");
  same(href("/repo/train.py(12): step"), "zed://file/repo/train.py:12", "another editor");
  choose("");
  setServersEditor("cursor");
  same(href("/repo/train.py(12): step"), "cursor://file/repo/train.py:12", "what the server says");
  setServersEditor("javascript://{file}");
  same(href("/repo/train.py(12): step"), undefined, "nothing else");
}

async function views(t) {
  return t.page.locator("nav a").evaluateAll((list) => list.map((a) => a.getAttribute("href").slice(1).split("?")[0]));
}

/** What a page says: texts, tables with all their cells, and what charts were given. */
function content(t) {
  return t.page.locator("main").evaluate((main) => ({
    figures: [...main.querySelectorAll(".figure, .finding, .empty, .error:not([hidden]), .frames li")].map((e) => e.innerText.trim()),
    tables: [...main.querySelectorAll("[data-table]")].map((e) => [e.dataset.table, [...e.querySelectorAll(".tabulator-row")].map((r) => r.innerText)]),
    charts: [...main.querySelectorAll('[role="img"]')].map((e) => [e.getAttribute("aria-label"), e.chart.getOption().series.map((s) => JSON.stringify(s.data))]),
  }));
}

/** Of which pages the content is not the server's, by design. */
const OWN = ["sql", "system", "job", "ranks-timeline", "compare"];

/** The plugin's trace: drill-downs and choices. */
const DEEPER = [
  ["operators", { row: "0" }], ["operators", { by: "line", row: "0" }], ["kernels", { by: "op", row: "0" }], ["kernels", { "kernels.per": "step" }], ["operators", { by: "shape", "operators.per": "step" }], ["kernels-iteration", { step: "6" }],
  ["memory", { from: "100000000", to: "300000000", device: "0" }], ["reports", { report: "operators", by: "shape" }],
];

async function contentOf(t, base, view, input, args) {
  await t.open(view, input, args, base);
  return content(t);
}

/** Each of [[view, args], ...] in the exported report is what the server shows. One after the other, since the browser then loads each of the two once. */
async function samePages(t, base, places, input) {
  const all = [];
  for (const [view, args] of places) all.push(await contentOf(t, base, view, input, args));
  for (const [i, [view, args]] of places.entries()) {
    if (OWN.includes(view)) continue;
    const got = all[i], want = await contentOf(t, t.base, view, input, args), name = `${view} ${JSON.stringify(args)}`;
    same(JSON.stringify(got.figures), JSON.stringify(want.figures), `${name}: figures`);
    for (const [j, [key, rows]] of want.tables.entries()) same(JSON.stringify(got.tables[j]), JSON.stringify([key, rows]), `${name}: table ${key}`);
    same(got.tables.length, want.tables.length, `${name}: tables`);
    same(JSON.stringify(got.charts), JSON.stringify(want.charts), `${name}: charts`);
  }
}

async function everyPage(t) {
  const base = exported(t);
  await t.open("overview", "plugin", {}, base);
  const all = await views(t);
  assert(all.length >= 17, `only ${all.length} pages`);
  await samePages(t, base, all.map((view) => [view, {}]), "plugin");
  for (const view of process.env.OPSCOPE_SCREENSHOTS ? all : []) {
    await t.open(view, "plugin", {}, base);
    await t.shot(`export-${view}`);
  }
}

async function deeper(t) {
  const base = exported(t);
  await samePages(t, base, DEEPER, "plugin");
  // From an iteration to an op to its kernels, by clicks.
  await t.open("kernels-op", "plugin", {}, base);
  for (const key of ["iterations", "step-ops"]) await t.page.locator(`[data-table="${key}"] .tabulator-row`).first().click();
  await t.page.locator('[data-table="kernels"] .tabulator-row').first().waitFor();
  const args = Object.fromEntries(new URLSearchParams((await t.url()).split("?")[1]));
  assert(args.step && args.op, `the address has no step and op: ${await t.url()}`);
  await samePages(t, base, [["kernels-op", { step: args.step, op: args.op }]], "plugin");
}

/** Numbers of the trace that is in the repository, against the program; its server is another one. */
async function bundled(t) {
  const base = exported(t);
  await t.open("overview", CPU, {}, base);
  await t.sameTable("overview", t.report("overview", BUNDLED));
  for (const view of await views(t)) {
    await t.open(view, CPU, {}, base);
    const wrong = (await t.page.locator("main .error:not([hidden])").allInnerTexts()).filter((x) => x.trim());
    assert(!wrong.length, `${view}: ${wrong}`);
    assert(await t.page.locator("main").locator(".tabulator, canvas, .finding, .empty").count(), `${view}: nothing is shown`);
  }
  await t.open("operators", CPU, {}, base);
  await t.sameTable("operators", t.report("operators", BUNDLED));
}

/** Of some steps: every page is about them, and says so. */
async function someSteps(t) {
  const out = join(t.folder, "steps.html"), base = pathToFileURL(out).href;
  execFileSync(process.env.OPSCOPE, ["serve", `--export=${out}`, "--steps=3..4", BUNDLED], { stdio: "ignore" });
  await t.open("operators", CPU, {}, base);
  await t.sameTable("operators", t.report("operators", BUNDLED, "--steps=3..4"));
  same(await t.page.getByLabel("Steps", { exact: true }).first().inputValue(), "3..4", "the bar's steps");
  await t.page.locator("nav a", { hasText: "Overview" }).click();
  await t.ready("overview");
  await t.sameTable("overview", t.report("overview", BUNDLED, "--steps=3..4"));
  await t.open("system", CPU, {}, base);
  assert(/for steps 3\.\.4 alone/.test(await t.page.locator("main").innerText()), "the page does not say which steps it holds");
}

async function expectedNumbers(t) {
  const base = exported(t), steps = t.expected("overview").performance;
  await t.open("overview", "plugin", {}, base);
  near(await t.figure("Average step"), Number(steps.find((x) => x.name === "Average Step Time").value) * 1e3, "average step");
}

/** What needs a server is off and says so. */
async function off(t) {
  const base = exported(t), said = async (view, selector) => (await t.open(view, "plugin", {}, base), (await t.page.locator(selector).allInnerTexts()).join(" "));
  assert(/opscope serve/.test(await said("sql", "main .empty")) && !(await t.page.locator("textarea").count()), "SQL is not off");
  assert(/Re-aggregate.*opscope serve/.test(await said("iterations", "main .note")) && !(await t.page.locator("main form").count()), "Iterations has its form");
  assert(await t.page.getByLabel("Steps", { exact: true }).first().isDisabled(), "steps can be chosen");
  assert(/holds all 44,666 events/.test(await said("timeline", "main .note")), "the timeline does not say what it holds");
  assert(await t.page.getByRole("button", { name: "Perfetto" }).isDisabled(), "a window can be exported");
  assert(/function-events: .* MB/.test(await said("system", "main li")), "what is left out is not said");
  await t.open("operators", "plugin", { steps: "6" }, base);
  const why = (await t.page.locator("main .empty").allInnerTexts()).join(" ");
  assert(/does not hold report\/operators\?.*steps=6/.test(why), `steps in the address: ${why}`);
  await t.open("overview", "nothing/there", {}, base);
  assert(/no input nothing\/there/.test(await t.page.locator("main").innerText()), "an input that is not there");
}

async function saves(t) {
  await t.open("kernels", "plugin", {}, exported(t));
  const button = t.page.locator("section.table", { has: t.page.locator('[data-table="kernels"]') }).getByRole("button", { name: "CSV" });
  const text = (await t.saved(() => button.click())).bytes.toString(), want = t.report("kernels", "plugin");
  same(text.trim().split("\n").length, want.rows.length + 1, "lines of the CSV");
  same(text.split("\n")[0], want.columns.map((c) => c.id).join(","), "its header");
}

/** A directory, from the disk and from a plain web server. */
async function directory(t) {
  const folder = join(t.folder, "report"), file = pathToFileURL(join(folder, "index.html")).href;
  execFileSync(process.env.OPSCOPE, ["serve", `--export=${folder}`, join(process.env.OPSCOPE_DATA, "tracelens/h100")], { stdio: "ignore" });
  const server = createServer((request, answer) => {
    try {
      const name = new URL(request.url, "http://x").pathname.slice(1) || "index.html";
      answer.writeHead(200, { "Content-Type": name.endsWith(".js") ? "text/javascript" : "text/html; charset=utf-8" }).end(readFileSync(join(folder, name)));
    } catch {
      answer.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  try {
    for (const base of [file, `http://127.0.0.1:${server.address().port}/`]) {
      await t.open("kernels", "h100", {}, base);
      await t.sameTable("kernels", t.report("kernels", "h100"));
      await t.open("timeline", "h100", { ev: "gpu:5" }, base);
      await t.page.locator(".panel h3").waitFor();
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function hostile(t) {
  const name = "</script><script>window.broken=1</script>\u2028<img src=x onerror=window.broken=1>", run = join(t.folder, "r <b>&'\u2028");
  mkdirSync(run);
  writeFileSync(join(run, "w <i>.json"), JSON.stringify({ traceEvents: [
    { ph: "X", cat: "cpu_op", name, pid: 1, tid: 1, ts: 1, dur: 9, args: { [name]: name } },
    { ph: "X", cat: "kernel", name, pid: 0, tid: 7, ts: 2, dur: 5, args: { device: 0, stream: 7 } } ] }));
  const out = join(t.folder, "hostile.html"), base = pathToFileURL(out).href;
  execFileSync(process.env.OPSCOPE, ["serve", `--export=${out}`, run], { stdio: "ignore" });
  for (const view of ["overview", "operators", "kernels", "timeline", "system"]) {
    await t.page.goto("about:blank");
    t.origin = base;
    await t.page.goto(`${base}#${view}${view === "timeline" ? "?ev=gpu:0" : ""}`);
    await t.ready(view);
    assert(!(await t.page.evaluate(() => window.broken)), `${view}: a name ran`);
  }
  assert((await t.page.locator("main").innerText()).includes("r <b>&'"), "the run's name is not on the page");
  await t.page.goto("about:blank");
  await t.page.goto(`${base}#operators`);
  await t.ready("operators");
  const shown = (await t.rows("operators")).map((r) => r[0][1].replace(/\s/g, ""));
  assert(shown.includes(name.replace(/\s/g, "")), `the op's name: ${shown}`);
}

// What is made of parts

export async function compiled(t, file) {
  const { buildSync } = await import(join(ROOT, "web/node_modules/esbuild/lib/main.js")), out = join(t.folder, file.replace(/\W/g, "_") + ".mjs");
  // Only what the module itself computes is wanted: the page around it is not there.
  buildSync({ entryPoints: [join(ROOT, "web/src", file)], bundle: true, format: "esm", platform: "neutral", outfile: out, banner: { js: "const document = { getElementById: () => null, createElement: () => ({ setAttribute() {}, appendChild() {} }) }, addEventListener = (_what, f) => (globalThis.forgetEditor = () => f({ key: null }));" } });
  return import(pathToFileURL(out).href);
}

/** What a note says of an option is said of what the pages have for it. */
async function notes(t) {
  const { note } = await compiled(t, "format.ts");
  same(note("`a` is called 10 times outside them; --key-op='a#b' shows the steps."), "`a` is called 10 times outside them; `a#b` as Key op of the page Iterations shows the steps.", "a key op");
  same(note("So it is. --key-op=NAME says which, --steps=2..3 how many."), "So it is. The field Key op of the page Iterations says which, Steps above: 2..3 how many.", "options");
  same(note("`--group-by=launch` shows them apart; the GPU is not known (--gpu=NAME can say)."), "the page Reports, By launch shows them apart; the GPU is not known (`opscope import --gpu=NAME` can say).", "more options");
  same(note("they sum to 12345678 ns"), "they sum to 12,345,678 ns (12.346 ms)", "a long number");
}

async function ask(t, path, args) {
  const answer = await fetch(`${t.base}api/${path}?${new URLSearchParams(Object.entries(args).filter(([, v]) => v !== undefined))}`), body = await answer.json();
  if (!answer.ok) throw new Error(`${path}: ${body.error}`);
  return body;
}

/** With names and their roles in place of their numbers. */
function named(tile, info) {
  const role = (t, v) => tile.roles[info.tracks[t.track].device ? "gpu" : "span"][v];
  return JSON.stringify(tile.tracks.map((t) => [t.track, t.lanes.map((l) => l.map((v, i) => (i % 7 === 5 ? [tile.names[v], role(t, v)] : i % 7 === 6 ? tile.categories[v] : v)))]));
}

/** Some numbers below n, always the same. */
function* some(count, n) {
  for (let i = 0, x = 12345; i < count; i++) {
    x = (x * 1103515245 + 12345) % 2147483648;
    yield x % n;
  }
}

async function sameTiles(t, s, input, info, zooms) {
  let items = 0;
  for (const zoom of zooms) {
    const last = Math.floor(info.length / (info.tile_pixels * 2 ** zoom));
    for (const index of new Set([0, last, ...some(3, last + 1)])) {
      const want = await ask(t, "timeline/tile", { input, zoom, index }), got = s.answer("tile", { zoom, index });
      same(named(got, info), named(want, info), `tile ${zoom} ${index}`);
      items += want.tracks.reduce((n, k) => n + k.lanes.reduce((m, l) => m + l.length / 7, 0), 0);
    }
  }
  return items;
}

const sorted = (x) => JSON.stringify(x, (_k, v) => (v && typeof v === "object" && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort()) : v));
const unordered = (r) => JSON.stringify([r.columns, r.rows.map((x) => JSON.stringify(x)).sort()]);

/** Shares may differ in their last digit. */
const rounded = (r) => ({ columns: r.columns, rows: r.rows.map((x) => x.map((v) => (typeof v === "number" && !Number.isInteger(v) ? Number(v.toPrecision(9)) : v))) });

const timelineOf = (name) => async (t) => {
  const { StaticTimeline } = await compiled(t, "static/timeline.ts"), input = INPUTS[name].key, info = await ask(t, "timeline", { input });
  const events = await ask(t, "timeline/events", { input }), selection = await ask(t, "timeline/select", { input, limit: 1 }), s = new StaticTimeline(info, { events, selection });
  const top = Math.ceil(Math.log2(info.length / info.tile_pixels));
  assert((await sameTiles(t, s, input, info, [0, 4, 8, 10, 12, 14, 16, top - 1, top].filter((z) => z <= top))) > 1000, "few items");
  for (const kind of ["span", "gpu"])
    for (const row of some(25, events[kind].start.length || 1))
      if (events[kind].start.length) same(sorted(s.answer("event", { kind, row })), sorted(await ask(t, "timeline/event", { input, kind, row })), `${kind} ${row}`);
  for (const text of ["conv", "CUDA", "gemm", "Backward", "nothing at all"])
    same(sorted(s.answer("find", { text, limit: 300 })), sorted(await ask(t, "timeline/find", { input, text, limit: 300 })), `find ${text}`);
  for (const [from, to, tracks] of [[0, info.length], [info.length * 0.3, info.length * 0.31], [info.length * 0.5, info.length * 0.7, "0"], [5, 5]].map(([a, b, c]) => [Math.round(a), Math.round(b), c]))
    same(unordered(rounded(s.answer("select", { from, to, tracks }))), unordered(rounded(await ask(t, "timeline/select", { input, from, to, tracks }))), `select ${from} ${to}`);
};

async function merged(t) {
  const { StaticTimeline } = await compiled(t, "static/timeline.ts"), input = INPUTS.plugin.key, info = await ask(t, "timeline", { input }), whole = await ask(t, "timeline/whole", { input, items: 15000 });
  const s = new StaticTimeline(info, { whole }), top = Math.ceil(Math.log2(info.length / info.tile_pixels));
  assert(whole.zoom > 5 && whole.zoom < top, `zoom ${whole.zoom}`);
  await sameTiles(t, s, input, info, [whole.zoom, whole.zoom + 1, whole.zoom + 3, top + 2]);
  const fine = s.answer("tile", { zoom: whole.zoom - 4, index: 20 });
  assert(fine.tracks.length === info.tracks.length, "no finer tile");
  assert(/merged/.test(s.lacks()[0]), s.lacks()[0]);
  for (const [what, args] of [["event", { kind: "gpu", row: 1 }], ["find", { text: "conv" }], ["select", {}]]) {
    let why = "";
    try {
      s.answer(what, args);
    } catch (e) {
      why = e.message;
    }
    assert(/opscope serve/.test(why), `${what}: ${why}`);
  }
}

async function sums(t) {
  const { instances } = await compiled(t, "static/instances.ts");
  let compared = 0;
  for (const input of [INPUTS.plugin.key, INPUTS.nsys.key]) {
    const all = await ask(t, "instances", { input, by: "all" }), at = (id) => all.columns.findIndex((c) => c.id === id), known = (k, v) => (v === null ? { unknown: k } : { [k]: v });
    const whichs = [{}];
    for (const i of some(6, all.rows.length)) {
      const r = all.rows[i], step = r[at("step")], op = r[at("op_id")], direction = r[at("direction")];
      const ofOp = { ...(op === null ? {} : { op }), ...(direction === null ? {} : { direction }), unknown: [op === null && "op", direction === null && "direction"].filter((x) => x).join(",") || undefined };
      whichs.push(known("step", step), ofOp, { ...ofOp, ...known("step", step), unknown: [ofOp.unknown, step === null && "step"].filter((x) => x).join(",") || undefined });
    }
    for (const by of ["step", "op", "kernel"]) {
      const like = await ask(t, "instances", { input, by });
      for (const which of whichs) {
        const want = await ask(t, "instances", { input, by, ...which }), got = instances(all, like, by, which);
        same(JSON.stringify(got.columns.map((c) => c.id)), JSON.stringify(want.columns.map((c) => c.id)), `${by} ${JSON.stringify(which)}: columns`);
        same(JSON.stringify(got.rows), JSON.stringify(want.rows), `${by} ${JSON.stringify(which)}`);
        compared += want.rows.length;
      }
    }
  }
  assert(compared > 500, `only ${compared} rows`);
}

export const tests = [
  ["every page as the server shows it", everyPage],
  ["drill-downs as the server shows them", deeper],
  ["the bundled trace", bundled],
  ["the plugin's numbers", expectedNumbers],
  ["some steps", someSteps],
  ["what needs a server is off", off],
  ["CSV", saves],
  ["a directory", directory],
  ["hostile names", hostile],
  ["timeline made of events: plugin", timelineOf("plugin")],
  ["timeline made of events: h100", timelineOf("h100")],
  ["timeline made of pieces", merged],
  ["the op graph of a report", opGraph],
  ["addresses of editors", editors],
  ["kernels summed up", sums],
  ["notes", notes],
];
