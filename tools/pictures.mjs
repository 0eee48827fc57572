// Makes the pictures of docs/viewer.md from the traces that come with the sources: pictures.mjs [BUILD] writes docs/pictures/NAME.png.
// Needs Chromium (tests/web/browsers.mjs). Those that look the same but for the browser's version need not be committed anew.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";

const root = join(dirname(fileURLToPath(import.meta.url)), ".."), folder = join(root, "docs/pictures"), LARGEST_BYTES = 150000;
process.env.OPSCOPE_ROOT = root;
process.env.OPSCOPE_DATA ??= join(root, "tests/data");
process.env.OPSCOPE ??= join(resolve(process.argv[2] ?? join(root, "build")), "src/cli/opscope");
const { launch } = await import(join(root, "tests/web/browsers.mjs")), { Harness } = await import(join(root, "tests/web/harness.mjs"));

const cpu = "/torch214_cpu_resnet/default", gpu = "/gpt_bf16/default", ranks = "ddp_gloo_late_backward/rank0/default";
const settled = (page) => page.waitForFunction(() => document.querySelector(".tl canvas").timeline.stats.idle);

/** The first event of that name in the input. */
async function first(name, input) {
  const found = await (await fetch(`${t.base}api/timeline/find?${new URLSearchParams({ input, text: name })}`)).json(), e = found.events.find((x) => x.name === name);
  return `${e.kind}:${e.row}`;
}

/** [name, view, input, what stands in the address (or what gives it), what is done before the picture is taken] */
const PICTURES = [
  ["runs", "runs", "", { open: '["job ddp_gloo_late_backward"]' }, (page) => page.waitForFunction(() => [...document.querySelectorAll("td[data-column=kind]")].every((e) => e.textContent))],
  ["overview", "overview", gpu],
  ["timeline", "timeline", gpu, async () => ({ ev: await first("aten::_foreach_lerp_", gpu), from: "14000000", to: "18000000" }), settled],
  ["window", "timeline", gpu, { win: "8000000..15000000" }, settled],
  ["operators", "operators", gpu],
  ["modules", "modules", gpu],
  ["memory", "memory", gpu],
  ["iterations", "iterations", cpu, { steps: "3..4" }],
  ["job", "job", ranks],
  ["roofline", "roofline", gpu],
  ["kernels", "kernels", gpu, { row: "0" }],
  ["sql", "sql", cpu, { q: "SELECT name, input_dims, count(*) AS calls, sum(dur_ns) AS total_ns\nFROM ops_raw GROUP BY name, input_dims ORDER BY total_ns DESC LIMIT 10" }],
];

function crc32(bytes) {
  let crc = -1;
  for (const b of bytes) {
    crc ^= b;
    for (let k = 0; k < 8; k++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function chunk(type, data) {
  const b = Buffer.alloc(12 + data.length);
  b.writeUInt32BE(data.length);
  b.write(type, 4, "latin1");
  data.copy(b, 8);
  b.writeUInt32BE(crc32(b.subarray(4, 8 + data.length)), 8 + data.length);
  return b;
}

const parts = (p) => [p >> 16, (p >> 8) & 255, p & 255];
const apart = (p, q) => (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + (p[2] - q[2]) ** 2;

/** Up to 256 colours: each next is the one that is furthest from those there are, for as many pixels as it has; and the place of each colour among them. */
function paletteOf(count) {
  const colors = [...count].map(([p, n]) => ({ p, n, rgb: parts(p), far: Infinity, at: 0 })), palette = [];
  for (let next = colors.reduce((a, b) => (b.n > a.n ? b : a)); palette.length < 256 && next.far > 0; ) {
    for (const c of colors) {
      const far = apart(c.rgb, next.rgb);
      if (far < c.far) [c.far, c.at] = [far, palette.length];
    }
    palette.push(next.rgb);
    next = colors.reduce((a, b) => (b.far * b.n > a.far * a.n ? b : a));
  }
  return { palette, index: new Map(colors.map((c) => [c.p, c.at])) };
}

/** A PNG of 256 colours: a third of the browser's. `pixels`: 0xrrggbb, row by row. */
function palettePng(pixels, width) {
  const count = new Map(), height = pixels.length / width, rows = Buffer.alloc(height * (width + 1));
  for (const p of pixels) count.set(p, (count.get(p) ?? 0) + 1);
  const { palette, index } = paletteOf(count);
  pixels.forEach((p, i) => (rows[Math.floor(i / width) * (width + 1) + 1 + (i % width)] = index.get(p)));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8);
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), data = deflateSync(rows, { level: 9, memLevel: 9 });
  return Buffer.concat([signature, chunk("IHDR", head), chunk("PLTE", Buffer.from(palette.flat())), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

/** The window as it is shown. */
async function picture(page, blank) {
  const shot = (await page.screenshot()).toString("base64");
  const { width, pixels } = await blank.evaluate(async (text) => {
    const image = new Image();
    image.src = "data:image/png;base64," + text;
    await image.decode();
    const c = new OffscreenCanvas(image.width, image.height).getContext("2d");
    c.drawImage(image, 0, 0);
    const d = c.getImageData(0, 0, image.width, image.height).data, list = [];
    for (let i = 0; i < d.length; i += 4) list.push((d[i] << 16) | (d[i + 1] << 8) | d[i + 2]);
    return { width: image.width, pixels: list };
  }, shot);
  return palettePng(pixels, width);
}

const browser = await launch("chromium"), t = new Harness(browser);
try {
  t.base = (await t.serve([join(root, "tests/data/torch214_cpu_resnet.json.gz"), join(root, "tests/data/h200/gpt_bf16.json.gz"), join(root, "tests/data/h200/ddp_gloo_late_backward")])).base;
  const blank = await browser.newPage();
  mkdirSync(folder, { recursive: true });
  for (const [name, view, input, args = {}, before] of PICTURES) {
    const path = join(folder, `${name}.png`);
    await t.fresh(name === "window" ? "dark" : "light");
    await t.open(view, input, typeof args === "function" ? await args() : args);
    await before?.(t.page);
    await t.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))); // sizes have settled
    const png = await picture(t.page, blank);
    if (t.problems.length) throw new Error(`${name}: ${t.problems.join("\n")}`);
    if (png.length > LARGEST_BYTES) throw new Error(`${path}: ${png.length} bytes, at most ${LARGEST_BYTES} were expected`);
    writeFileSync(path, png);
    console.log(path);
  }
  const shown = readFileSync(join(root, "docs/viewer.md"), "utf8");
  for (const file of readdirSync(folder)) if (!PICTURES.some(([name]) => file === `${name}.png`)) rmSync(join(folder, file));
  for (const [name] of PICTURES) if (!shown.includes(`pictures/${name}.png`)) console.error(`docs/viewer.md does not show ${name}.png`);
} finally {
  await browser.close();
  t.stop();
}
