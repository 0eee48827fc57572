// Measures the viewer's page in headless Chromium: page.mjs ADDRESS INPUT [SECONDS]. Called by bench/serve.py; writes one line of JSON:
//
//   paint_ms, timeline_paint_ms  lists: from the start of the navigation to the first contentful paint, of the first page and of the timeline
//   ready_ms, timeline_ready_ms  lists: until the page has its data and drew it
//   interval_ms   times between pictures while the timeline is panned and zoomed by keys for SECONDS: requestAnimationFrame to the next
//   draw_ms       what the page's script took for each of them
//   page_bytes    most memory, sampled meanwhile: PSS of the page's renderer process (script, DOM, canvas, its share of the program), the largest
//   all_bytes     the same of all renderer processes of this browser: it keeps spare ones
//   heap_bytes    the JavaScript heap and its arrays at the end, before they are cleared up
//
// Every opening is by a new context: nothing is cached. There is no GPU: Chromium draws in software, on the cores that the server uses.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const OPENINGS = 7, WIDTH = 1920, HEIGHT = 1080;
const [address, input, seconds] = [process.argv[2], process.argv[3], Number(process.argv[4] ?? 20)];
const here = dirname(fileURLToPath(import.meta.url));
const { chromium } = await import(join(here, "../web/node_modules/playwright-core/index.mjs"));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const system = await browser.newBrowserCDPSession();

/** PSS of each renderer process. */
async function rendererBytes() {
  const bytes = [];
  for (const p of (await system.send("SystemInfo.getProcessInfo")).processInfo)
    if (p.type === "renderer")
      try {
        bytes.push(1024 * Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${p.id}/smaps_rollup`, "utf8"))[1]));
      } catch (e) {
        if (e.code !== "ENOENT" && e.code !== "ESRCH") throw e; // it ended meanwhile
      }
  return bytes;
}

/** Opens a view in a new context. */
async function open(view) {
  const context = await browser.newContext({ viewport: { width: WIDTH, height: HEIGHT } }), page = await context.newPage();
  page.setDefaultTimeout(180000);
  await page.goto(`${address}#${view}?${new URLSearchParams({ input })}`);
  await page.waitForSelector(`main[data-ready="${view}"]`);
  const ready = await page.evaluate(() => performance.now());
  const paint = await page.evaluate(() => new Promise((done) => new PerformanceObserver((list, all) => {
    const first = list.getEntries().find((x) => x.name === "first-contentful-paint");
    if (first) all.disconnect(), done(first.startTime);
  }).observe({ type: "paint", buffered: true })));
  return { context, page, paint, ready };
}

async function openings(view) {
  const paint = [], ready = [];
  for (let i = 0; i < OPENINGS; i++) {
    const o = await open(view);
    paint.push(o.paint);
    ready.push(o.ready);
    await o.context.close();
  }
  return [paint, ready];
}

/** In the page: remembers each picture until window.pictures.stop. */
function watch() {
  const t = document.querySelector(".tl canvas").timeline, seen = (window.pictures = { interval: [], draw: [], stop: false });
  let before = 0, frames = t.stats.frames;
  const next = (now) => {
    if (before && t.stats.frames > frames) {
      seen.interval.push(now - before);
      seen.draw.push(t.stats.ms);
    }
    frames = t.stats.frames;
    before = now;
    if (!seen.stop) requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}

/** Held keys, in rounds: nearer, right, left, farther, so that places come into view that were not there before. */
async function pan() {
  const { context, page } = await open("timeline"), canvas = page.locator(".tl canvas"), box = await canvas.boundingBox();
  const cdp = await context.newCDPSession(page), end = Date.now() + 1000 * seconds, keys = ["w", "d", "w", "d", "a", "s", "d", "w", "a", "s"];
  let most = 0, all = 0;
  await canvas.focus();
  await page.evaluate(watch);
  for (let i = 0; Date.now() < end; i++) {
    await page.mouse.move(box.x + box.width * (0.25 + 0.6 * ((i * 0.618) % 1)), box.y + 200);
    await page.keyboard.down(keys[i % keys.length]);
    await page.waitForTimeout(700);
    await page.keyboard.up(keys[i % keys.length]);
    const bytes = await rendererBytes();
    most = Math.max(most, ...bytes);
    all = Math.max(all, bytes.reduce((a, b) => a + b, 0));
  }
  const pictures = await page.evaluate(() => ((window.pictures.stop = true), window.pictures));
  const heap = await cdp.send("Runtime.getHeapUsage");
  await context.close();
  return { interval_ms: pictures.interval, draw_ms: pictures.draw, page_bytes: most, all_bytes: all, heap_bytes: heap.usedSize + heap.backingStorageSize };
}

try {
  const [paint_ms, ready_ms] = await openings("overview"), [timeline_paint_ms, timeline_ready_ms] = await openings("timeline");
  console.log(JSON.stringify({ width: WIDTH, height: HEIGHT, paint_ms, ready_ms, timeline_paint_ms, timeline_ready_ms, ...(await pan()) }));
} finally {
  await browser.close();
}
