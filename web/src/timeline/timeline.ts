// The timeline: what is in view and chosen, and how that changes. The address has all of it:
//   from, to   what is in view        ev   "gpu:12" or "span:7"       win, tracks   the chosen window
//   q, hit     the search             shut what is folded             by            colours
//   Where a page has several timelines, each has a word of its own before these names.
//   look       "A..B" on the clock of the recording, as tables have times: chosen as a window, with what is around it
import { file, get, source, type Args, type Report } from "../api";
import { add, button, clear, h, save, select } from "../dom";
import { time, timePoint } from "../format";
import * as place from "../place";
import { stepRange } from "../steps";
import type { Context } from "../view";
import { theme } from "./colors";
import { Curves } from "./curves";
import { EXPORT_TITLE, showDetails, showTotals, type Panel } from "./details";
import { Painter, tickText, topOf, type Colours, type Scene } from "./draw";
import { Input, type Target } from "./input";
import { GUTTER, Layout, type Band } from "./layout";
import { fromRanges, rangesOf, zoomOf, type Camera, type Details, type Info, type Origin, type Slice, type Window } from "./model";
import { keyList } from "./keys";
import { Legend } from "./legend";
import { Search } from "./search";
import { Ties } from "./ties";
import { BUSY, COUNT, DUR, ITEM, NAME, ROW, START, Tiles, firstBehind } from "./tiles";

const SCALE_MIN = 0.02; // ns a pixel

/** Of one of several timelines of a page. */
export interface Beside {
  title: HTMLElement;
  /** Stands before its names in the address. */
  prefix: string;
  /** Told what is in view whenever the user has changed that. */
  onView(camera: Camera): void;
}

export interface Options {
  origin?: Origin;
  beside?: Beside;
}

interface Hit {
  band: Band;
  lane: number; // of the track
  item: Float64Array; // ITEM numbers
}

function coloursOf(word: string | undefined): Colours {
  return word === "name" || word === "category" ? word : "role";
}

export class Timeline implements Target {
  private readonly canvas = h("canvas", { tabindex: 0, role: "application", "aria-label": "Timeline; keys: w s a d, arrows, comma and full stop, n, f, 0, Escape" });
  private readonly spacer = h("div", { class: "room" });
  private readonly view = h("div", { class: "view" }, this.spacer, this.canvas);
  private readonly tip = h("div", { class: "tip", hidden: true, role: "tooltip" });
  private readonly panelPlace = h("div", { class: "panel", tabindex: -1 });
  private readonly where = h("span", { class: "where" });
  private readonly trouble = h("p", { class: "error", hidden: true, role: "alert" });
  private readonly painter: Painter;
  private readonly tiles: Tiles;
  private readonly layout: Layout;
  private readonly curves: Curves;
  private readonly ties?: Ties;
  private readonly search: Search;
  private readonly legend: Legend;
  private readonly panel: Panel;
  private readonly input: Input;
  private readonly scene: Scene;
  private readonly origin: Origin;
  private readonly beside?: Beside;
  private reach: Window;
  private pending = 0;
  private lastFrame = 0;
  private noteTimer = 0;
  private asked = 0;
  /** For those who measure: pictures drawn, and ms that the last took. */
  readonly stats = { frames: 0, ms: 0, idle: false };

  constructor(page: HTMLElement, private readonly c: Context, private readonly info: Info, { origin = { path: "/api/timeline", args: { input: c.input } }, beside }: Options = {}) {
    this.origin = origin;
    this.beside = beside;
    this.reach = { from: 0, to: info.length };
    this.painter = new Painter(this.canvas.getContext("2d", { alpha: false })!);
    this.tiles = new Tiles(origin, info, c.signal, () => this.invalidate());
    this.layout = new Layout(info);
    this.curves = new Curves(c, info, () => this.curvesCame());
    if (origin.ranks) this.ties = new Ties(origin, origin.ranks, c.signal, () => this.invalidate());
    this.search = new Search(c, origin, { jump: (e) => this.jump(e), searched: (text) => this.searched(text) });
    this.panel = { info, key: `${beside?.prefix ?? ""}selection`, save: origin.ranks ? undefined : () => this.exportWindow(), jump: (e) => this.jump(e), find: (t) => this.search.start(t), close: () => this.escape() };
    this.scene = { info, layout: this.layout, tiles: this.tiles, camera: { from: 0, scale: 1 }, width: 800, height: 400, scroll: 0, theme: theme(),
      colours: coloursOf(this.said("by")), search: "" };
    this.legend = new Legend(this.tiles);
    const frame = this.frame();
    add(page, frame);
    this.input = new Input(this.canvas, frame, this, c.signal, !beside);
    this.view.addEventListener("scroll", () => this.invalidate(), { signal: c.signal });
    const sized = new ResizeObserver(() => this.resize());
    sized.observe(this.view);
    c.signal.addEventListener("abort", () => (sized.disconnect(), cancelAnimationFrame(this.pending), clearTimeout(this.noteTimer)));
    Object.assign(this.canvas, { timeline: this });
  }

  private frame(): HTMLElement {
    const perfetto = this.origin.ranks ? null : button("Perfetto", () => this.exportWindow(), { title: source.off ?? EXPORT_TITLE, disabled: !!source.off });
    const made = this.info.times ? null : h("p", { class: "note" }, "This input holds durations and an order, but no times: starts and gaps are made up.");
    const deep = this.info.too_deep ? h("p", { class: "note" }, `${this.info.too_deep} events are nested too deep to have rows of their own: they share the last.`) : null;
    const zero = !this.beside && this.info.times && this.info.first_ns !== "0"
      ? h("p", { class: "note" }, `Times here count from the first event; on the clock of the ${this.origin.ranks ? "job" : "recording, which tables show"}, that is ${timePoint(BigInt(this.info.first_ns))}.`) : null;
    return h("div", { class: this.beside ? "tl half" : "tl" },
      h("div", { class: "tools" }, this.beside?.title, ...this.search.parts, h("span", { class: "space" }), this.where,
        select("Colours", [["role", "by role"], ["name", "by name"], ["category", "by category"]], this.scene.colours, (v) => this.colourBy(v)),
        button("All", () => this.fitAll(), { title: "Show all of it (0)" }), this.deviceButton(), perfetto, keyList()),
      made, deep, this.trouble, this.legend.place, h("div", { class: "view-frame", style: "display:contents" }, this.view), this.panelPlace, zero);
  }

  /** What the address says of this timeline. */
  private said(name: string): string | undefined {
    return this.c.args[(this.beside?.prefix ?? "") + name];
  }

  /** `first`: what is shown where the address does not say. */
  async start(first?: Window): Promise<void> {
    const look = this.said("look"), looked = look ? this.within(look) : undefined, tracks = this.said("tracks"), q = this.said("q"), ev = this.said("ev"), placed = this.said("from") !== undefined;
    for (const key of (this.said("shut") ?? "").split(" ")) if (key) this.layout.shut.add(key);
    this.layout.build();
    add(this.view, this.tip);
    this.resize();
    if (looked) this.show(looked.from - (looked.to - looked.from), looked.to + (looked.to - looked.from));
    else this.startCamera(first);
    const [from, to] = looked ? [looked.from, looked.to] : (this.said("win") ?? "").split("..").map(Number);
    if (to > from) this.choose({ from, to, tracks: tracks ? fromRanges(tracks) : undefined });
    if (q) await this.search.restore(q, Number(this.said("hit") ?? 0), !placed);
    if (ev) {
      const [kind, row] = ev.split(":");
      await this.open(kind, Number(row), !placed);
    }
    this.invalidate();
    await this.settled();
  }

  /** Until the first picture is whole. */
  private async settled(): Promise<void> {
    const end = performance.now() + 3000;
    while (!this.c.signal.aborted && !(this.stats.idle && this.stats.frames > 1) && performance.now() < end) await new Promise((done) => setTimeout(done, 20));
  }

  private startCamera(first?: Window): void {
    const from = this.said("from"), to = this.said("to"), { steps } = this.c.args, length = this.info.length;
    const chosen = steps && steps !== "all" ? this.stepsBetween(steps) : undefined;
    if (from !== undefined && to !== undefined && Number(to) > Number(from)) this.show(Number(from), Number(to));
    else if (first) this.show(first.from, first.to);
    else if (chosen) this.show(chosen.from - (chosen.to - chosen.from) * 0.02, chosen.to + (chosen.to - chosen.from) * 0.02);
    else this.show(-length * 0.01, length * 1.01);
  }

  /** "A..B" on the recording's clock; undefined: no part of the timeline. Such times may be more than a number can hold. */
  private within(text: string): Window | undefined {
    const m = /^(-?\d+)\.\.(-?\d+)$/.exec(text);
    if (!m) return undefined;
    const [from, to] = [m[1], m[2]].map((t) => Number(BigInt(t) - BigInt(this.info.first_ns)));
    return to > from && to > 0 && from < this.info.length ? { from, to } : undefined;
  }

  /** "3..5" as times of the steps with these numbers. */
  private stepsBetween(text: string): Window | undefined {
    const [low, high] = stepRange(text), list = this.info.steps.filter((s) => s.number >= low && s.number <= high);
    return list.length ? { from: list[0].start, to: Math.max(...list.map((s) => s.end)) } : undefined;
  }

  // The camera

  private get room(): number {
    return Math.max(50, this.scene.width - GUTTER);
  }

  show(from: number, to: number): void {
    this.scene.camera = this.bounded({ from, scale: (to - from) / this.room });
    this.moved();
  }

  get camera(): Camera {
    return { ...this.scene.camera };
  }

  /** Shows what another timeline has chosen. */
  set camera(c: Camera) {
    this.scene.camera = { ...c };
    this.drawAndNote();
  }

  get seen(): Window {
    const { from, scale } = this.scene.camera;
    return { from, to: from + scale * this.room };
  }

  /** How far it can be moved: as far as it has events, and as another one has that moves with it. */
  reachTo(from: number, to: number): void {
    this.reach = { from: Math.min(0, from), to: Math.max(this.info.length, to) };
  }

  private scaled(scale: number): number {
    return Math.max(SCALE_MIN, Math.min((Math.max(1, this.reach.to - this.reach.from) * 4) / this.room, scale));
  }

  /** Neither beyond what there is, nor closer than a nanosecond can be seen. */
  private bounded(c: Camera): Camera {
    const scale = this.scaled(c.scale), span = scale * this.room;
    return { scale, from: Math.max(this.reach.from - span * 0.8, Math.min(this.reach.to - span * 0.2, c.from)) };
  }

  private moved(): void {
    this.drawAndNote();
    this.beside?.onView(this.camera);
  }

  private drawAndNote(): void {
    this.invalidate();
    clearTimeout(this.noteTimer);
    this.noteTimer = window.setTimeout(() => this.note(), 250);
  }

  private note(): void {
    const { camera, window: w, selected } = this.scene, to = camera.from + camera.scale * this.room;
    const names: Record<string, string | undefined> = {
      look: undefined, from: camera.from.toFixed(camera.scale < 10 ? 1 : 0), to: to.toFixed(camera.scale < 10 ? 1 : 0),
      ev: selected && `${selected.event.kind}:${selected.event.row}`, win: w && `${Math.round(w.from)}..${Math.round(w.to)}`,
      tracks: w?.tracks && rangesOf(w.tracks), shut: [...this.layout.shut].join(" "), by: this.scene.colours === "role" ? "" : this.scene.colours, ...this.search.place,
    };
    place.note(Object.fromEntries(Object.entries(names).map(([name, value]) => [(this.beside?.prefix ?? "") + name, value])));
  }

  zoom(factor: number, x: number): void {
    const c = this.scene.camera, at = Math.max(0, x - GUTTER), scale = this.scaled(c.scale * factor);
    this.scene.camera = this.bounded({ scale, from: c.from + at * (c.scale - scale) });
    this.moved();
  }

  pan(dx: number, dy: number): void {
    const c = this.scene.camera;
    if (dy) this.view.scrollTop -= dy;
    if (!dx) return;
    this.scene.camera = this.bounded({ scale: c.scale, from: c.from - dx * c.scale });
    this.moved();
  }

  fitAll(): void {
    const { from, to } = this.reach, room = (to - from) * 0.01;
    this.show(from - room, to + room);
  }

  /** Shows from the first device work to the last, where that is a part of the whole. */
  private deviceButton(): HTMLElement | null {
    const tracks = this.info.tracks.filter((t) => t.device && t.slices), from = Math.min(...tracks.map((t) => t.first)), to = Math.max(...tracks.map((t) => t.last));
    if (!tracks.length || to - from > this.info.length * 0.8) return null;
    const room = (to - from) * 0.02 + 1;
    return button("GPU work", () => this.show(from - room, to + room), { title: "From the first device work to the last" });
  }

  fitChosen(): void {
    const e = this.scene.selected?.event, w = this.scene.window ?? (e && { from: e.start, to: e.start + e.dur });
    if (w) this.show(w.from - (w.to - w.from) * 0.05 - 1, w.to + (w.to - w.from) * 0.05 + 1);
    else this.fitAll();
  }

  private timeAt(x: number): number {
    return this.scene.camera.from + (x - GUTTER) * this.scene.camera.scale;
  }

  // Pictures

  private resize(): void {
    const ratio = devicePixelRatio, width = this.view.clientWidth, height = this.view.clientHeight, { camera } = this.scene, before = this.room;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.getContext("2d")!.setTransform(ratio, 0, 0, ratio, 0, 0);
    Object.assign(this.scene, { width, height });
    this.scene.camera = { from: camera.from, scale: (camera.scale * before) / this.room };
    this.sized();
    this.invalidate();
  }

  private sized(): void {
    this.spacer.style.height = `${this.layout.height + topOf(this.info) + 8}px`;
  }

  invalidate(): void {
    if (!this.pending && !this.c.signal.aborted) this.pending = requestAnimationFrame((now) => this.picture(now));
  }

  private picture(now: number): void {
    const begin = performance.now();
    this.pending = 0;
    if (this.input.advance(Math.min(50, this.lastFrame ? now - this.lastFrame : 16))) this.lastFrame = now;
    else this.lastFrame = 0;
    const s = this.scene, c = s.camera, to = c.from + this.room * c.scale;
    s.scroll = this.view.scrollTop;
    const shown = this.layout.between(s.scroll, s.scroll + s.height).flatMap((b) => (b.track ? [b.track.track] : []));
    this.tiles.want(zoomOf(this.info, c.scale), c.from, to, shown);
    if (this.ties) {
      this.ties.want(c.from, to);
      s.ties = this.ties.list;
    } else {
      this.curves.want(c.from, to, c.scale);
      s.counters = this.curves.values;
    }
    this.painter.draw(s);
    this.legend.update(s.colours === "role");
    this.where.textContent = `${time(this.room * c.scale)} in view`;
    this.say(this.tiles.error);
    this.stats.frames++;
    this.stats.ms = performance.now() - begin;
    this.stats.idle = this.tiles.idle && !this.input.holds && this.ties?.idle !== false;
  }

  private say(error: string): void {
    this.trouble.hidden = !error;
    if (error && this.trouble.textContent !== error) this.trouble.textContent = error;
  }

  private curvesCame(): void {
    if (this.curves.list.length !== this.layout.curves.length) {
      this.layout.curves = this.curves.list;
      this.layout.build();
      this.sized();
      if (this.scene.selected) this.bringUp(this.scene.selected.event); // they stand above it
    }
    this.invalidate();
  }

  private colourBy(v: string): void {
    this.scene.colours = coloursOf(v);
    this.moved();
  }

  // What is under the pointer

  inRuler(y: number): boolean {
    return y < topOf(this.info);
  }

  private bandAt(y: number): Band | undefined {
    return this.layout.at(y - topOf(this.info) + this.view.scrollTop);
  }

  private hitAt(x: number, y: number): Hit | undefined {
    const band = this.bandAt(y), at = y - topOf(this.info) + this.view.scrollTop;
    if (!band?.track || x < GUTTER || this.inRuler(y)) return undefined;
    const lane = this.layout.laneAt(band, at), { scale } = this.scene.camera, from = this.timeAt(x - 1.5), to = this.timeAt(x + 1.5), ns = this.timeAt(x);
    let best: Float64Array | undefined, far = Infinity;
    if (lane < 0) return undefined;
    for (const p of this.tiles.pieces(zoomOf(this.info, scale), from, to, band.track.track)) {
      const items = p.lanes[lane];
      if (!items) continue;
      for (let i = firstBehind(items, from); i < items.length && items[i + START] < to; i += ITEM) {
        const off = Math.max(0, items[i + START] - ns, ns - items[i + START] - items[i + DUR]);
        if (off < far) [far, best] = [off, items.subarray(i, i + ITEM)];
      }
    }
    return best && { band, lane, item: best };
  }

  hover(x: number, y: number): void {
    this.scene.hover = { x };
    const hit = this.hitAt(x, y), text = hit ? this.describe(hit) : this.describePlace(x, y);
    this.tip.hidden = !text;
    if (text) {
      this.tip.textContent = text;
      const right = x > this.scene.width / 2;
      this.tip.style.left = right ? "" : `${x + 14}px`;
      this.tip.style.right = right ? `${this.scene.width - x + 14}px` : "";
      this.tip.style.top = `${Math.min(y + 16, this.scene.height - 74) + this.view.scrollTop}px`;
    }
    this.canvas.style.cursor = x < GUTTER ? "pointer" : hit ? "pointer" : "crosshair";
    this.invalidate();
  }

  private describe(hit: Hit): string {
    const i = hit.item, name = this.tiles.names.get(i[NAME]) ?? "", start = tickText(i[START], Math.max(1, this.scene.camera.scale));
    if (i[COUNT] === 1) return `${name}\n${time(i[BUSY])} from ${start}${i[BUSY] > i[DUR] ? "; drawn up to the next in its row" : ""}`;
    const busy = i[DUR] > 0 ? `, busy ${((100 * i[BUSY]) / i[DUR]).toFixed(1)} % of ${time(i[DUR])}` : "";
    return `${i[COUNT]} events${busy}, from ${start}\nthe longest: ${name}`;
  }

  private describePlace(x: number, y: number): string {
    if (x < GUTTER) {
      const b = this.inRuler(y) ? undefined : this.bandAt(y);
      return b ? [b.title, b.track ? `${b.track.slices.toLocaleString("en-US")} events, ${b.track.lanes} rows` : b.note].filter((t) => t).join("\n") : "";
    }
    if (this.inRuler(y)) return "";
    const b = this.bandAt(y);
    return b?.curve ? this.curves.describe(b.curve.kind, b.curve.device, this.timeAt(x)) : "";
  }

  leave(): void {
    this.tip.hidden = true;
    this.scene.hover = undefined;
    this.invalidate();
  }

  // Choosing

  click(x: number, y: number): void {
    if (this.inRuler(y)) {
      const ns = this.timeAt(x), step = this.info.steps.find((s) => ns >= s.start && ns < s.end);
      if (step && y > topOf(this.info) - 18 && x > GUTTER) this.choose({ from: step.start, to: step.end });
      return;
    }
    const band = this.bandAt(y), hit = this.hitAt(x, y);
    if (band && (band.kind === "process" || x < GUTTER) && band.key) {
      this.layout.toggle(band.key);
      this.sized();
      this.moved();
    } else if (hit) this.open(hit.band.track!.device ? "gpu" : "span", hit.item[ROW], false);
  }

  fitAt(x: number, y: number): void {
    const hit = this.hitAt(x, y);
    if (x < GUTTER || this.inRuler(y)) return;
    if (hit) this.show(hit.item[START] - hit.item[DUR] * 0.1 - 1, hit.item[START] + hit.item[DUR] * 1.1 + 1);
    else this.fitAll();
  }

  choosing(x0: number, y0: number, x1: number, y1: number, done: boolean): void {
    const [from, to] = [this.timeAt(Math.max(GUTTER, Math.min(x0, x1))), this.timeAt(Math.max(x0, x1))].map(Math.round);
    const top = topOf(this.info), at = (y: number) => y - top + this.view.scrollTop;
    const bands = this.inRuler(y0) ? undefined : this.layout.between(at(Math.min(y0, y1)), at(Math.max(y0, y1)) + 1).flatMap((b) => (b.track ? [b.track.track] : []));
    const w = { from: Math.max(0, from), to: Math.min(Math.max(to, from + 1), Math.max(1, this.info.length)), tracks: bands?.length ? bands : undefined };
    if (done && w.to > w.from) this.choose(w);
    else this.scene.window = w;
    this.invalidate();
  }

  private async choose(w: Window): Promise<void> {
    const mine = ++this.asked;
    this.scene.window = w;
    this.scene.selected = undefined;
    this.moved();
    const args = { ...this.origin.args, from: Math.round(w.from), to: Math.round(w.to), tracks: w.tracks && rangesOf(w.tracks) };
    await this.fill(mine, async () => {
      const r = await get<Report>(`${this.origin.path}/select`, args, this.c.signal);
      return () => showTotals(this.panelPlace, this.panel, { ...w, from: args.from, to: args.to }, r);
    });
  }

  private async open(kind: string, row: number, jump: boolean): Promise<void> {
    const mine = ++this.asked;
    await this.fill(mine, async () => {
      const d = await get<Details>(`${this.origin.path}/event`, { ...this.origin.args, kind, row }, this.c.signal);
      return () => {
        this.scene.selected = d;
        if (jump) this.reveal(d.event);
        showDetails(this.panelPlace, this.panel, d);
        this.bringUp(d.event); // the panel takes room
        this.moved();
      };
    });
  }

  /** Fills the panel, unless something else has been asked for meanwhile. */
  private async fill(mine: number, ask: () => Promise<() => void>): Promise<void> {
    try {
      const show = await ask();
      if (mine === this.asked && !this.c.signal.aborted) show();
    } catch (e) {
      if (this.c.signal.aborted || mine !== this.asked) return;
      clear(this.panelPlace);
      add(this.panelPlace, h("p", { class: "error", role: "alert" }, e instanceof Error ? e.message : String(e)));
    }
  }

  escape(): void {
    this.asked++;
    if (this.scene.selected || this.scene.window) {
      this.scene.selected = undefined;
      this.scene.window = undefined;
      clear(this.panelPlace);
    } else this.search.clear();
    this.moved();
  }

  /** Brings an event into view, and large enough to be seen. */
  private reveal(e: Slice): void {
    const c = this.scene.camera, x0 = (e.start - c.from) / c.scale, x1 = (e.start + e.dur - c.from) / c.scale, wide = x1 - x0;
    this.layout.open(e);
    this.sized();
    if (wide < 4 || wide > this.room) this.show(e.start - e.dur * 4 - 10, e.start + e.dur * 5 + 10);
    else if (x0 < 0 || x1 > this.room) this.show(e.start + e.dur / 2 - (this.room / 2) * c.scale, e.start + e.dur / 2 + (this.room / 2) * c.scale);
    this.bringUp(e);
    this.moved();
  }

  /** Scrolls to an event's row if it is out of sight. */
  private bringUp(e: Slice): void {
    const y = this.layout.yOf(e), room = this.view.clientHeight - topOf(this.info);
    if (y < this.view.scrollTop || y > this.view.scrollTop + room - 40) this.view.scrollTop = Math.max(0, y - room / 2);
  }

  jump(e: Slice): void {
    this.scene.window = undefined;
    this.reveal(e);
    this.open(e.kind, e.row, false);
  }

  /** Makes events of this name stand out, wherever they are. */
  mark(name: string): void {
    void this.search.restore(name, -1, false);
  }

  hit(step: number): void {
    this.search.walk(step);
  }

  private searched(text: string): void {
    this.scene.search = text.toLowerCase();
    this.moved();
  }

  /** To the event beside the chosen one in its row. */
  neighbour(step: number): void {
    const d = this.scene.selected, e = step > 0 ? d?.after : d?.before;
    if (e) this.jump(e);
  }

  private exportWindow(): void {
    const { camera, window: w } = this.scene, from = Math.max(0, Math.floor(w?.from ?? camera.from)), to = Math.ceil(w?.to ?? camera.from + this.room * camera.scale);
    void this.saveTrace(from <= 0 && to >= this.info.length ? {} : { from, to });
  }

  /** A refusal is said on the page, which stays. */
  private async saveTrace(part: Args): Promise<void> {
    try {
      const trace = await file("/api/export/chrome", { input: this.c.input, ...part }, this.c.signal);
      save(`${this.c.input.replace(/[^\w.-]+/g, "_")}.trace.json.gz`, trace);
    } catch (e) {
      if (!this.c.signal.aborted) this.say(e instanceof Error ? e.message : String(e));
    }
  }
}
