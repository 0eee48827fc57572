// The timeline: zoom, search, windows, details, curves, export; its numbers are the reports'.
import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Absent, assert, INPUTS, near, same } from "./harness.mjs";
import { compiled } from "./test_export.mjs";

const GUTTER = 196;

/** Of the timeline on the page: `f` gets it and `arg`. */
const ask = (t, f, arg) => t.page.evaluate(`(${f})(document.querySelector(".tl canvas").timeline, ${JSON.stringify(arg ?? null)})`);
export const camera = (t) => ask(t, (x) => ({ ...x.scene.camera, width: x.scene.width, height: x.scene.height }));
export const selected = (t) => ask(t, (x) => x.scene.selected?.event);
export const settled = (t) => t.page.waitForFunction(() => document.querySelector(".tl canvas").timeline.stats.idle);
const api = (t, path, args) => t.page.evaluate((url) => fetch(url).then((r) => r.json()), `${path}?${new URLSearchParams(args)}`);
const box = (t) => t.page.locator(".tl canvas").boundingBox();
const input = (name) => INPUTS[name].key;

/** The chosen event's row is in sight, however much room the panel and the curves have taken. */
const inSight = (t) => t.page.waitForFunction(() => {
  const x = document.querySelector(".tl canvas").timeline, e = x.scene.selected?.event, y = e && x.layout.yOf(e) - x.view.scrollTop;
  return e && document.querySelector(".tl .panel h3") && y >= 0 && y + 16 <= x.view.clientHeight - (x.info.steps.length ? 42 : 24);
});

function column(table, id) {
  return table.columns.findIndex((c) => c.id === id);
}

/** Where an event is on the canvas. */
function placeOf(t, e) {
  return ask(t, (x, ev) => ({ x: 196 + (ev.start + ev.dur / 2 - x.scene.camera.from) / x.scene.camera.scale,
    y: x.layout.yOf(ev) + 8 - x.view.scrollTop + (x.info.steps.length ? 42 : 24) }), e);
}

/** A window over everything has what `report kernels` has. */
async function totals(t, name) {
  await t.open("timeline", name);
  const info = await api(t, "api/timeline", { input: input(name) });
  await t.open("timeline", name, { win: `0..${info.length}` });
  await t.page.waitForSelector(".tl .panel .tabulator-row");
  const want = t.report("kernels", name), nameAt = column(want, "name"), calls = column(want, "calls"), total = column(want, "total_ns");
  const shown = await t.rows("selection");
  const kernels = shown.map((r) => new Map(r)).filter((r) => r.get(1) === "kernel");
  same(kernels.length, want.rows.length, "kernels");
  const byName = new Map(kernels.map((r) => [r.get(0).replace(/\s+/g, " "), r]));
  for (const r of want.rows) {
    const row = byName.get(String(r[nameAt]).trim().replace(/\s+/g, " "));
    assert(row, `no row for ${r[nameAt]}`);
    near(row.get(2), r[calls], `calls of ${r[nameAt]}`);
    near(row.get(3), r[total], `time of ${r[nameAt]}`);
  }
}

/** Halves of the window add up to the whole. */
async function halves(t) {
  await t.open("timeline", "plugin");
  const { length } = await api(t, "api/timeline", { input: input("plugin") }), middle = Math.floor(length / 3);
  const sum = async (from, to) => {
    const r = await api(t, "api/timeline/select", { input: input("plugin"), from, to }), at = column(r, "total_ns");
    return r.rows.reduce((n, x) => n + x[at], 0);
  };
  same((await sum(0, middle)) + (await sum(middle, length)), await sum(0, length), "total time");
  const r = await api(t, "api/timeline/select", { input: input("plugin"), from: 0, to: middle }), of = (x, id) => x[column(r, id)];
  for (const device of [true, false]) {
    const shares = r.rows.filter((x) => /^(kernel|mem)/.test(of(x, "kind")) === device && of(x, "share_pct") !== null).map((x) => of(x, "share_pct"));
    assert(Math.abs(shares.reduce((a, b) => a + b, 0) - 100) < 1e-6, "shares of time of their own add up");
  }
  assert(r.rows.every((x) => of(x, "self_ns") >= 0 && of(x, "self_ns") <= of(x, "total_ns")), "no time is negative");
}

/** However far out: every event is in some item. */
async function nothingDropped(t) {
  await t.open("timeline", "h100");
  const info = await api(t, "api/timeline", { input: input("h100") });
  for (const zoom of [8, 12, 23]) {
    const width = 1024 * 2 ** zoom, counts = new Map();
    for (let index = 0; index * width <= info.length; index++) {
      const tile = await api(t, "api/timeline/tile", { input: input("h100"), zoom, index });
      for (const k of tile.tracks)
        for (const lane of k.lanes)
          for (let i = 0, start = 0; i < lane.length; start += lane[i + 1], i += 7)
            if ((start += lane[i]) >= index * width && start < (index + 1) * width) counts.set(k.track, (counts.get(k.track) ?? 0) + lane[i + 3]);
    }
    for (const k of info.tracks) same(counts.get(k.track), k.slices, `track ${k.track} at zoom ${zoom}`);
  }
}

async function zoom(t) {
  await t.open("timeline", "plugin");
  await settled(t);
  const before = await camera(t), b = await box(t), x = 700, under = (c) => c.from + (x - GUTTER) * c.scale;
  await t.page.mouse.move(b.x + x, b.y + 260);
  for (let i = 0; i < 30; i++) await t.page.mouse.wheel(0, -100);
  await t.until("30 turns of the wheel", async () => Math.abs((await camera(t)).scale / (before.scale * Math.exp(-0.22 * 30)) - 1) < 1e-6);
  await settled(t);
  const after = await camera(t);
  assert(Math.abs(under(after) - under(before)) < before.scale, "the time under the pointer stays");
  await t.page.mouse.down();
  await t.page.mouse.move(b.x + x - 150, b.y + 260, { steps: 6 });
  await t.page.mouse.up();
  const moved = await camera(t);
  assert(Math.abs(moved.from - after.from - 150 * after.scale) < 2 * after.scale, "dragged by 150 pixels");
  // The address follows when the picture rests.
  await t.page.waitForFunction((c) => Math.abs(Number(new URLSearchParams(location.hash.split("?")[1]).get("from")) - c.from) < 2 + c.scale, moved);
  await t.shot("timeline-near");
  const url = await t.url();
  await t.page.goto("about:blank");
  await t.page.goto(url);
  await t.ready("timeline");
  const again = await camera(t);
  assert(Math.abs(again.from - moved.from) < 2 + moved.scale && Math.abs(again.scale / moved.scale - 1) < 0.01, "the address shows the same");
}

/** What makes a picture quick: slices are written into memory, and calls of the canvas are for names and labels, however many slices there are. */
async function fewCalls(t) {
  await t.open("timeline", "plugin", { shut: "c" });
  await settled(t);
  const { length } = await api(t, "api/timeline", { input: input("plugin") });
  const pictures = await t.page.evaluate(async (all) => {
    const x = document.querySelector(".tl canvas").timeline, out = [], proto = CanvasRenderingContext2D.prototype, before = proto.fillRect;
    let calls = 0;
    proto.fillRect = function (...a) {
      calls++;
      return before.apply(this, a);
    };
    for (let part = 1; part < 2000; part *= 3) {
      x.show(all * 0.4, all * (0.4 + 0.5 / part));
      while (!x.stats.idle || x.pending) await new Promise((done) => requestAnimationFrame(done));
      calls = 0;
      const frames = x.stats.frames;
      x.invalidate();
      while (x.stats.frames === frames) await new Promise((done) => requestAnimationFrame(done));
      const { bands } = x.layout;
      out.push({ calls, room: 8 * bands.length + 200 });
    }
    proto.fillRect = before;
    return out;
  }, length);
  for (const p of pictures) assert(p.calls > 0 && p.calls < p.room, `${p.calls} rectangles, expected fewer than ${p.room}`);
}

async function keyboard(t) {
  await t.open("timeline", "h100");
  await settled(t);
  await t.page.locator(".tl canvas").focus();
  /** Holds a key until the picture has changed as it should, and then rests. */
  const hold = async (key, changed) => {
    const before = await camera(t);
    await t.page.keyboard.down(key);
    await t.until(`${key} moves the picture`, async () => changed(await camera(t), before));
    await t.page.keyboard.up(key);
    await settled(t);
    return camera(t);
  };
  const start = await camera(t), near_ = await hold("w", (now, before) => now.scale < before.scale / 2);
  const right = await hold("d", (now, before) => now.from > before.from);
  same(right.scale, near_.scale, "d moves, and no more");
  await hold("a", (now, before) => now.from < before.from);
  await hold("ArrowRight", (now, before) => now.from > before.from);
  await hold("s", (now, before) => now.scale > before.scale);
  const strip = await t.page.locator(".tl .minimap svg").boundingBox();
  assert((await t.page.locator(".tl .minimap .busy").getAttribute("d")).length > 100, "the strip shows when the GPU was busy");
  await t.page.mouse.click(strip.x + strip.width * 0.75, strip.y + 10);
  const { length } = await ask(t, (x) => x.info), there = await camera(t), middle = there.from + ((there.width - GUTTER) / 2) * there.scale;
  assert(Math.abs(middle / length - 0.75) < 0.02, `a click in the strip shows ${middle} of ${length}`);
  await t.page.locator(".tl canvas").focus();
  await t.page.keyboard.press("0");
  await t.page.waitForFunction((s) => Math.abs(document.querySelector(".tl canvas").timeline.scene.camera.scale / s - 1) < 1e-6, start.scale);
}

/** The address has what was typed, also where the page is shown anew before it would be written. */
async function searchAndTheme(t) {
  await t.open("timeline", "plugin");
  for (const [text, key] of [["SGEMM", "Enter"], ["relu", ""]]) {
    await t.page.keyboard.press("/");
    await t.page.keyboard.press("Control+a");
    await t.page.keyboard.type(text);
    if (key) await t.page.keyboard.press(key);
    const canvas = await t.page.locator(".tl canvas").elementHandle();
    await t.page.getByRole("button", { name: "Light or dark" }).evaluate((b) => b.click());
    await t.page.waitForFunction((old) => document.querySelector(".tl canvas") && document.querySelector(".tl canvas") !== old && /of|in all/.test(document.querySelector(".tl .found").textContent), canvas);
    same(await t.page.getByLabel("Search events by name").inputValue(), text, "the search is kept");
    same(await t.page.evaluate(() => document.querySelector(".tl canvas").timeline.scene.search), text.toLowerCase(), "and drawn");
  }
}

async function search(t) {
  await t.open("timeline", "plugin");
  const k = t.report("kernels", "plugin"), nameAt = column(k, "name"), calls = column(k, "calls"), total = column(k, "total_ns");
  const rows = k.rows.filter((r) => r[nameAt].toLowerCase().includes("sgemm")), n = rows.reduce((s, r) => s + r[calls], 0);
  await t.page.keyboard.press("/");
  await t.page.keyboard.type("SGEMM");
  await t.page.keyboard.press("Enter");
  const said = t.page.locator(".tl .found").first();
  await t.page.waitForFunction(() => /^1 of/.test(document.querySelector(".tl .found").textContent));
  const text = await said.innerText();
  near(text.replace(/^1 of ([\d,]+),.*/, "$1"), n, "hits");
  near(text.replace(/^.*, ([\d.]+ \w+) in all.*/, "$1"), rows.reduce((s, r) => s + r[total], 0), "their time");
  await t.page.waitForFunction(() => document.querySelector(".tl canvas").timeline.scene.selected);
  const first = await selected(t);
  assert(/sgemm/i.test(first.name), first.name);
  await t.page.getByRole("button", { name: "Next hit" }).click();
  await t.page.waitForFunction((row) => document.querySelector(".tl canvas").timeline.scene.selected?.event.row !== row, first.row);
  const second = await selected(t);
  assert(second.start >= first.start && /^2 of/.test(await said.innerText()), "the next one comes later");
  const c = await camera(t), x = (second.start - c.from) / c.scale;
  assert(x >= 0 && x < c.width - GUTTER && second.dur / c.scale > 3, "it is in view");
  await t.page.getByRole("button", { name: "Previous hit" }).click();
  await t.page.waitForFunction((row) => document.querySelector(".tl canvas").timeline.scene.selected?.event.row === row, first.row);
  await t.page.waitForFunction((row) => location.hash.includes(`ev=gpu%3A${row}`), first.row);
  await t.shot("timeline-search");
  const url = await t.url();
  await t.page.goto("about:blank");
  await t.page.goto(url);
  await t.ready("timeline");
  same((await selected(t)).row, first.row, "the address keeps what is chosen");
  assert(/^1 of/.test(await said.innerText()), "and the search");
}

/** In a window of a laptop the launch of a kernel and the kernel are both in sight; the panel keeps the height that it was given. */
async function bothEnds(t) {
  await t.page.setViewportSize({ width: 1366, height: 768 });
  await t.open("timeline", "h100", { q: "gemm" });
  await inSight(t);
  const ends = () => ask(t, (x) => {
    const { event, call } = x.scene.selected, view = x.view.clientHeight - 42, at = (e) => x.layout.yOf(e, x.view.scrollTop) - x.view.scrollTop;
    return { y: [event, call].map(at), view, x: [event, call].map((e) => (e.start - x.scene.camera.from) / x.scene.camera.scale), wide: x.scene.width - 196 };
  });
  const shown = ({ y, view }) => y.every((v) => v >= 0 && v + 16 <= view) && Math.abs(y[0] - y[1]) >= 16;
  assert(shown(await ends()), `rows: ${JSON.stringify(await ends())}`);
  const first = await ends();
  await ask(t, (x) => x.show(x.scene.selected.event.start - 500, x.scene.selected.event.start + 5000));
  assert((await ends()).x[1] < 0, "its launch is not in view");
  await t.page.getByRole("button", { name: "Show both ends" }).click();
  const both = await ends();
  assert(shown(both) && both.x.every((v) => v >= 0 && v < both.wide), `both ends: ${JSON.stringify([first, both])}`);
  await t.shot("timeline-both-ends");
  const grip = await t.page.locator(".tl .grip").boundingBox(), height = () => t.page.locator(".tl .panel-frame").evaluate((e) => e.clientHeight), before = await height();
  await t.page.mouse.move(grip.x + 200, grip.y + 3);
  await t.page.mouse.down();
  await t.page.mouse.move(grip.x + 200, grip.y + 83, { steps: 3 });
  await t.page.mouse.up();
  const after = await height();
  assert(Math.abs(before - after - 80) < 3, `the panel is ${before}, then ${after} high`);
  await t.open("overview", "h100");
  await t.open("timeline", "h100", { q: "gemm" });
  await inSight(t);
  same(await height(), after, "height, the next time");
  await t.page.getByRole("button", { name: "Fold" }).last().click();
  assert((await height()) < 60, "folded");
}

/** Tracks are pinned, moved, filtered; hits are listed; marks have notes: all of it is in the address. */
async function arranged(t) {
  await t.open("timeline", "h100", { q: "gemm" });
  await t.page.waitForSelector(".tl .panel .jump");
  await t.page.locator(".tl summary", { hasText: "List" }).click();
  const hits = t.page.locator(".tl .menu .jump");
  await hits.nth(10).waitFor();
  await hits.nth(4).click();
  await t.page.waitForFunction(() => /^5 of/.test(document.querySelector(".tl .found").textContent));
  await t.page.locator(".tl .keys summary").click();
  await t.page.keyboard.press("Escape");
  assert(!(await t.page.locator(".tl details.keys").getAttribute("open")) && (await t.page.locator(".tl .panel h3").count()) === 1, "Escape closes the list of keys, and no more");
  await t.page.locator(".tl canvas").focus();
  await t.page.keyboard.press("m");
  await t.page.keyboard.type("slow one");
  await t.page.keyboard.press("Enter");
  await t.page.locator(".tl summary", { hasText: "Tracks" }).click();
  await t.page.getByLabel("Pin stream 7", { exact: true }).click();
  await t.page.getByLabel("Move Host · python3 (19392) up").click();
  await t.page.getByLabel("Only tracks with this in their name").fill("python3");
  const seen = () => ask(t, (x) => ({ stuck: x.layout.stuck.map((b) => b.title), heads: x.layout.bands.filter((b) => b.kind === "process").map((b) => b.title), marks: x.scene.marks, at: x.scene.selected.event.start }));
  const want = await seen();
  assert(want.stuck.includes("stream 7") && want.heads.join() === "Host · python3 (19392)", JSON.stringify(want));
  same(want.marks[0].note, "slow one", "note");
  same(want.marks[0].at, want.at, "the mark's place");
  await t.page.waitForFunction(() => /pin=t\d/.test(location.hash) && /rows=python3/.test(location.hash) && /slow/.test(location.hash) && /order=p/.test(location.hash));
  const url = await t.url();
  await t.page.goto("about:blank");
  await t.page.goto(url);
  await t.ready("timeline");
  await t.page.waitForFunction(() => document.querySelector(".tl canvas").timeline.scene.selected);
  const again = await seen();
  same(JSON.stringify([again.heads, again.marks]), JSON.stringify([want.heads, want.marks]), "from the address");
  assert(again.stuck.includes("stream 7"), "pinned");
}

/** A kernel, its call, the op, and back. */
async function details(t) {
  await t.open("timeline", "plugin", { q: "aten::cudnn_convolution_backward_weight" });
  await inSight(t);
  await t.open("timeline", "plugin", { q: "sgemm" });
  await t.page.waitForSelector(".tl .panel .jump");
  const kernel = await selected(t), panel = t.page.locator(".tl .panel");
  const d = await api(t, "api/timeline/event", { input: input("plugin"), kind: "gpu", row: kernel.row });
  assert((await panel.innerText()).includes(kernel.name.slice(0, 40)), "its name");
  assert((await panel.locator(".stack li").count()) === d.stack.split(";").length, "its stack, frame by frame");
  await panel.locator(".links", { hasText: "Launched by" }).locator(".jump").click();
  await t.page.waitForFunction(() => document.querySelector(".tl canvas").timeline.scene.selected?.event.kind === "span");
  same((await selected(t)).row, d.call.row, "the call");
  await t.page.waitForFunction(() => /For the op/.test(document.querySelector(".tl .panel").innerText));
  await panel.locator(".links", { hasText: "For the op" }).locator(".jump").click();
  await t.page.waitForFunction((row) => document.querySelector(".tl canvas").timeline.scene.selected?.event.row === row, d.op.row);
  const op = await ask(t, (x) => x.scene.selected);
  assert(op.launched.some((k) => k.row === kernel.row), "the op launched the kernel");
  same(op.launched_ns, op.launched.reduce((n, k) => n + k.dur, 0), "device time of the op");
  await t.shot("timeline-details");
  await t.page.locator(".tl canvas").focus();
  await t.page.keyboard.press("Escape");
  same(await panel.locator("h3").count(), 0, "Escape closes");
}

/** What is said of a kernel is what the reports say of it. */
async function kernelFacts(t) {
  await t.open("timeline", "h100", { q: "gemm" });
  await t.page.waitForSelector(".tl .kernel dl");
  const e = await selected(t), info = await api(t, "api/timeline", { input: input("h100") }), k = await api(t, "api/timeline/kernel", { input: input("h100"), row: e.row });
  const r = t.report("kernels", "h100", "--group-by=instance"), start = Number(BigInt(info.first_ns) + BigInt(e.start)), at = column(r, "start_ns");
  const row = r.rows.find((x) => Math.abs(Number(x[at]) - start) < 500), of = (id) => row[column(r, id)];
  for (const [mine, id] of [["tensor_cores", "tensor_cores"], ["limited_by", "limited_by"], ["occupancy_pct", "theoretical_occupancy_pct"], ["op", "operator"]])
    same(typeof k[mine] === "number" ? k[mine].toFixed(2) : k[mine], typeof of(id) === "number" ? of(id).toFixed(2) : of(id), mine);
  assert(Math.abs(k.tflops_per_s - k.flops / e.dur / 1e3) < 1e-3 * k.tflops_per_s && Math.abs(k.peak_pct - (100 * k.tflops_per_s) / k.peak_tflops_per_s) < 1e-3, "the rate is of this kernel");
  const costs = t.report("costs", "h100"), model = costs.rows.find((x) => x[column(costs, "params")] === k.parameters);
  same(k.flops, model[column(costs, "flops")], "FLOPs");
  const text = await t.page.locator(".tl .kernel").innerText();
  const size = await t.page.locator(".tl .legend").first().evaluate((x) => getComputedStyle(x).fontSize);
  assert(parseFloat(size) >= 12, `the legend is written in ${size}`);
  const from = await t.page.locator(".tl .panel dt", { hasText: /^start$/ }).locator("xpath=following-sibling::dd[1]").innerText();
  near(from, e.start, "its start, since the first event");
  for (const word of [k.op, k.module, "TFLOP/s", k.limited_by]) assert(text.includes(word), `no ${word} in ${text}`);
  assert((await t.page.locator(".tl .panel").innerText()).includes("after its call began"), "its launch's delay");
}

/** Processes with device work first, by number, however the recording has them; no track says more than it must. */
async function order(t) {
  const { Layout } = await compiled(t, "timeline/layout.ts"), track = (pid, labels, device, tid, thread) => ({ device, python: false, pid, tid, process: device ? "" : "python", labels, thread, lanes: 1, nested: 0, slices: 1, first: 0, last: 1 });
  const tracks = [track("77", "CPU", false, "77", "thread 77 (python)"), track("10", "GPU 10", true, "7", ""), track("2", "GPU 2", true, "20", ""), track("2", "GPU 2", true, "7", ""), track("0", "GPU 0", true, "7", "")].map((x, i) => ({ ...x, track: i }));
  const layout = new Layout({ tracks, steps: [], length: 10 });
  layout.build();
  same(layout.bands.map((b) => b.title).join(), "GPU 0,stream 7,GPU 2,stream 7,stream 20,GPU 10,stream 7,Host · python (77),thread 77 (python)", "tracks");
}

async function backward(t) {
  await t.open("timeline", "plugin");
  const found = await api(t, "api/timeline/find", { input: input("plugin"), text: "ConvolutionBackward", limit: 20 });
  let d;
  for (const e of found.events) {
    d = await api(t, "api/timeline/event", { input: input("plugin"), kind: "span", row: e.row });
    if (d.forward) break;
  }
  assert(d?.forward, "a backward op has a forward op");
  const f = await api(t, "api/timeline/event", { input: input("plugin"), kind: "span", row: d.forward.row });
  assert(f.backward.some((e) => e.row === d.event.row), "and that has it as backward op");
  await t.open("timeline", "plugin", { ev: `span:${d.event.row}`, from: d.event.start - 1e5, to: d.event.start + 4e5 });
  await inSight(t);
  await t.page.locator(".tl .links", { hasText: "Forward" }).locator(".jump").click();
  await t.page.waitForFunction((row) => document.querySelector(".tl canvas").timeline.scene.selected?.event.row === row, d.forward.row);
}

async function click(t) {
  await t.open("timeline", "h100", { q: "gemm" });
  await t.page.waitForFunction(() => document.querySelector(".tl canvas").timeline.scene.selected);
  const kernel = await selected(t);
  await t.page.keyboard.press("Escape");
  await settled(t);
  const at = await placeOf(t, kernel), b = await box(t);
  await t.page.mouse.move(b.x + at.x, b.y + at.y);
  assert((await t.page.locator(".tl .tip").innerText()).startsWith(kernel.name.slice(0, 30)), "the pointer shows the name");
  const tip = await t.page.locator(".tl .tip").boundingBox();
  assert(tip.width > 100 && tip.x + tip.width <= 1280, `it is ${tip.width} px wide, at ${tip.x}`);
  await t.page.locator(".tl .keys summary").click();
  assert(await t.page.locator(".tl .keys dl").evaluate((e) => e.getBoundingClientRect().right <= innerWidth && e.scrollWidth <= e.clientWidth), "the keys have room");
  await t.page.locator(".tl .keys summary").click();
  await t.page.mouse.click(b.x + at.x, b.y + at.y);
  await t.page.waitForFunction((row) => document.querySelector(".tl canvas").timeline.scene.selected?.event.row === row, kernel.row);
  await t.page.locator(".tl canvas").focus();
  await t.page.keyboard.press(".");
  await t.page.waitForFunction((row) => document.querySelector(".tl canvas").timeline.scene.selected?.event.row !== row, kernel.row);
  const next = await selected(t);
  assert(next.start > kernel.start && next.lane === kernel.lane, "the next of the row");
  await t.page.keyboard.press("f");
  const full = await camera(t), wide = full.scale * (full.width - GUTTER);
  assert(full.from < next.start && full.from + wide > next.start + next.dur && wide < 1.2 * next.dur + 10, `f shows ${wide} ns of an event of ${next.dur}`);
}

async function window_(t) {
  await t.open("timeline", "plugin");
  await settled(t);
  const b = await box(t), steps = (await api(t, "api/timeline", { input: input("plugin") })).steps;
  await t.page.keyboard.down("Shift");
  await t.page.mouse.move(b.x + 500, b.y + 140);
  await t.page.mouse.down();
  await t.page.mouse.move(b.x + 640, b.y + 150, { steps: 4 });
  await t.page.mouse.up();
  await t.page.keyboard.up("Shift");
  await t.page.waitForSelector(".tl .panel .tabulator-row");
  const w = await ask(t, (x) => x.scene.window), c = await camera(t);
  assert(Math.abs((w.to - w.from) / c.scale - 140) < 2, "as wide as it was drawn");
  const r = await api(t, "api/timeline/select", { input: input("plugin"), from: w.from, to: w.to, tracks: (w.tracks ?? [0, 1, 2, 3]).join(",") });
  same((await t.rows("selection")).length, r.rows.length, "rows");
  await t.shot("timeline-window");
  const s = steps[1], at = await camera(t);
  await t.page.mouse.click(b.x + GUTTER + ((s.start + s.end) / 2 - at.from) / at.scale, b.y + 33);
  await t.page.waitForFunction((from) => document.querySelector(".tl canvas").timeline.scene.window.from === from, s.start);
  await t.page.waitForFunction((x) => location.hash.includes(`win=${x.start}..${x.end}`), s);
}

/** The mean of the curves over the steps is what `report devices` says. */
async function curves(t) {
  await t.open("timeline", "h100");
  const info = await api(t, "api/timeline", { input: input("h100") }), s = info.steps;
  const c = await api(t, "api/timeline/counters", { input: input("h100"), from: s[0].start, to: s[s.length - 1].end, points: 2000 });
  const d = t.report("devices", "h100"), mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;
  const percent = (id) => d.rows[0][column(d, id)];
  for (const [values, id] of [[c.devices[0].utilization, "gpu_utilization_pct"], [c.devices[0].sm_efficiency, "sm_efficiency_pct"]]) {
    assert(column(d, id) >= 0, `${id}: ${d.columns.map((x) => x.id)}`);
    assert(Math.abs(100 * mean(values) - percent(id)) < 0.02, `${id}: ${100 * mean(values)}, expected ${percent(id)}`);
  }
  const queues = t.report("queues", "h100"), all = await api(t, "api/timeline/counters", { input: input("h100"), points: 1000 });
  same(Math.max(...all.queues[0].longest), Math.max(...queues.rows.map((r) => r[column(queues, "max_length")])), "the longest queue");
  const parts = (await ask(t, (x) => x.curves.roles))[0];
  same(parts.parts.reduce((n, p) => n + p.ns, 0), parts.length, "roles of the step");
  const peaks = t.report("memory", "h100", "--device=0").sections.find((x) => x.name === "peaks"), gpu = peaks.rows.find((r) => r[0] === "GPU0");
  for (const points of [10, 4000]) {
    const m = (await api(t, "api/timeline/counters", { input: input("h100"), points })).memory.find((x) => x.device === 0);
    same(m.most, gpu[column(peaks, "peak_allocated_bytes")], `most memory, ${points} points`);
  }
  await t.page.waitForFunction(() => document.querySelector(".tl canvas").timeline.layout.curves.length >= 2);
  const titles = () => ask(t, (x) => x.layout.bands.map((k) => [k.kind, k.title]));
  assert(!(await titles()).some(([, title]) => /^Python/.test(title)), "Python frames are folded");
  await t.page.getByLabel("Python frames").check();
  await t.page.waitForFunction(() => location.hash.includes("python=1"));
  const bands = await titles(), thread = bands.findIndex(([, title]) => title === "Python · thread 0 (python3)");
  same(JSON.stringify(bands.filter(([kind, title]) => kind === "process" && !/^Use/.test(title)).map(([, title]) => title).slice(0, 2)), JSON.stringify(["GPU 0", "Host · python3 (0)"]), "processes");
  const curveKinds = await ask(t, (x) => [x.layout.curves.map((c) => c.kind), x.layout.bands.filter((b) => b.kind === "curve").map((b) => b.curve.kind)]);
  assert(curveKinds[0].includes("queue") && !curveKinds[1].includes("queue"), `minor curves are folded: ${JSON.stringify(curveKinds)}`);
  assert(thread > 0 && /^Host/.test(bands.slice(0, thread).filter(([kind]) => kind === "process").pop()[1]), "a thread of the host does not stand under the GPU");
}

async function exports_(t) {
  await t.open("timeline", "h100");
  const file = await t.saved(() => t.page.getByRole("button", { name: "Save for Perfetto" }).click()), path = join(t.folder, "exported.json.gz");
  assert(/\.trace\.json\.gz$/.test(file.name), file.name);
  writeFileSync(path, file.bytes);
  same(file.bytes.subarray(0, 2).toString("hex"), "1f8b", "gzip");
  const read = (p) => JSON.parse(execFileSync(process.env.OPSCOPE, ["report", "kernels", p, "--format=json"], { stdio: ["ignore", "pipe", "ignore"] }));
  const want = t.report("kernels", "h100"), got = read(path);
  for (const id of ["name", "calls", "total_ns"])
    same(JSON.stringify(got.rows.map((r) => r[column(got, id)])), JSON.stringify(want.rows.map((r) => r[column(want, id)])), id);
  const part = await t.page.evaluate((u) => fetch(u).then((r) => r.status), `api/export/chrome?${new URLSearchParams({ input: input("h100"), from: 0, to: 2000000 })}`);
  same(part, 200, "a window");
  const bad = await t.page.evaluate((u) => fetch(u, { cache: "no-store" }).then((r) => r.status).catch(() => 0), `api/timeline?input=${input("h100")}`);
  same(bad, 200, "the server still answers");
}

async function folding(t) {
  await t.open("timeline", "plugin");
  await settled(t);
  const b = await box(t), bands = () => ask(t, (x) => x.layout.bands.map((k) => ({ kind: k.kind, key: k.key, y: k.y, h: k.h, shut: k.shut })));
  const before = await bands(), at = before.find((k) => k.kind === "track" && k.h > 60);
  await t.page.mouse.click(b.x + 60, b.y + 42 + at.y + 10);
  const after = (await bands()).find((k) => k.key === at.key);
  assert(after.shut && after.h < at.h, "a track is folded to a row");
  await t.page.waitForFunction((key) => location.hash.includes(`shut=${key}`), at.key);
  await t.page.mouse.click(b.x + 60, b.y + 42 + at.y + 10);
  same((await bands()).find((k) => k.key === at.key).h, at.h, "and opened");
}

/** How many the picture has, without its labels. */
export const colors = (t) => t.page.evaluate((gutter) => {
  const c = document.querySelector(".tl canvas"), pixels = new Uint32Array(c.getContext("2d").getImageData(gutter, 0, c.width - gutter, c.height).data.buffer);
  return new Set(pixels).size;
}, GUTTER);

/** All kinds of inputs are drawn, in the dark as well. */
async function drawn(t) {
  for (const [name, theme] of [["plugin", "light"], ["h100", "dark"], ["nsys", "light"]]) {
    await t.fresh(theme);
    await t.open("timeline", name);
    await settled(t);
    const seen = await colors(t);
    assert(seen > 20, `${name}: ${seen} colours`);
    assert(await t.page.evaluate(() => document.documentElement.scrollHeight <= innerHeight), "the page fits the window");
    await t.shot(`timeline-${name}-${theme}`);
  }
}

/** An op's inputs and users are those of the report; a link and a box of the drawing lead there. */
async function opGraph(t) {
  const file = join(process.env.OPSCOPE_DATA, "more/nsys/2026.3_gpt_small_a100/forward.sqlite"), key = "/forward/default";
  if (!existsSync(file)) throw new Absent(`no ${file}`);
  const { base } = await t.serve(["--editor=cursor", file]), r = t.report("op-graph", file, "--limit=0"), of = (row, id) => row[column(r, id)];
  const sums = r.rows.filter((x) => of(x, "op") === "aten::div" && of(x, "input") === 1 && of(x, "producer") === "aten::sum")[0], sum = of(sums, "producer_id");
  const [row] = (await (await fetch(`${base}api/sql?${new URLSearchParams({ input: key, query: `SELECT rowid FROM span WHERE op_id = ${sum}` })}`)).json()).rows[0];
  same((await (await fetch(`${base}api/state`)).json()).editor, "cursor", "what --editor said");
  await t.open("timeline", key, { ev: `span:${row}` }, base);
  const panel = t.page.locator(".tl .panel"), texts = (name) => panel.locator(`[data-links="${name}"] .jump span`).allInnerTexts();
  await panel.locator(".neighbours").waitFor();
  const inputs = new Set(r.rows.filter((x) => of(x, "op_id") === sum).map((x) => of(x, "producer_id"))), users = new Set(r.rows.filter((x) => of(x, "producer_id") === sum && of(x, "producer") && !of(x, "passed_on")).map((x) => of(x, "op_id")));
  same((await texts("inputs")).length, inputs.size, "inputs");
  same((await texts("users")).length, users.size, "users");
  same(JSON.stringify(await texts("users")), JSON.stringify(["aten::div"]), "the op that uses it");
  assert(/input 1, \[\d+, \d+, \d+, 1\]/.test(await panel.innerText()), "which input, and its shape");
  await t.shot("timeline-op-graph");
  await panel.locator('[data-links="users"] .jump').click();
  await t.page.waitForFunction(() => document.querySelector(".tl canvas").timeline.scene.selected?.event.name === "aten::div");
  assert((await texts("inputs")).includes("aten::sum"), "and back");
  await t.page.waitForFunction(() => document.querySelector(".tl .neighbours .self text")?.textContent === "aten::div");
  await panel.locator(".neighbours .node", { hasText: "aten::sum" }).first().click();
  await t.page.waitForFunction((want) => document.querySelector(".tl canvas").timeline.scene.selected?.event.row === want, Number(row));
  await t.open("timeline", "own", { q: "aten::conv2d" });
  await panel.locator("h3").first().waitFor();
  same(await panel.locator(".neighbours, [data-links]").count(), 0, "a recording that does not state it");
}

export const tests = [
  ["a window over all has the kernels of the report, H100", (t) => totals(t, "h100")],
  ["a window over all has the kernels of the report, ResNet", (t) => totals(t, "plugin")],
  ["windows side by side add up", halves],
  ["no event is dropped at any zoom", nothingDropped],
  ["zoom at the pointer, drag, the address", zoom],
  ["a picture takes few calls", fewCalls],
  ["keyboard", keyboard],
  ["search, next and previous", search],
  ["a theme switched after a search", searchAndTheme],
  ["both ends of an arrow, height of the panel", bothEnds],
  ["pins, order, filter, marks, list of hits", arranged],
  ["from kernel to call to op", details],
  ["op, module, rate and occupancy of a kernel", kernelFacts],
  ["processes by number", order],
  ["from backward to forward", backward],
  ["the op graph around an op", opGraph],
  ["pointer, click, next of the row", click],
  ["a window by hand, a step by click", window_],
  ["curves agree with the devices", curves],
  ["export for Perfetto", exports_],
  ["tracks fold", folding],
  ["every kind of input, light and dark", drawn],
];
