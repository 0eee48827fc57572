// The timeline: what is in view and chosen, and how that changes. The address has all of it:
//   from, to   what is in view        ev   "gpu:12" or "span:7"       win, tracks   the chosen window
//   q, hit     the search             shut what is folded             by            colours
//   pin        tracks that stay in view     order  what was moved      rows          only tracks with this in their name
//   python     1: with Python frames  marks times with notes, as marks.ts has them
//   Where a page has several timelines, each has a word of its own before these names.
//   look       "A..B" on the clock of the recording, as tables have times: chosen as a window, with what is around it
import { source } from "../api";
import { add, button, h, select } from "../dom";
import { time } from "../format";
import * as place from "../place";
import type { Context } from "../view";
import { Chosen } from "./chosen";
import { theme } from "./colors";
import { Curves } from "./curves";
import { EXPORT_TITLE, type Panel } from "./details";
import { Painter } from "./draw";
import { topOf, type Colours, type Scene } from "./scene";
import { Input, type Target } from "./input";
import { GUTTER, Layout } from "./layout";
import { fromRanges, rangesOf, zoomOf, type Camera, type Info, type Origin, type Slice, type Window } from "./model";
import { keyList } from "./keys";
import { Legend } from "./legend";
import { MarkForm, marksOf, marksText, type Mark } from "./marks";
import { closeMenus, tracksMenu } from "./menus";
import { Minimap } from "./minimap";
import { PanelFrame } from "./panel";
import { Pointer } from "./pointer";
import { Search } from "./search";
import { Ties } from "./ties";
import { DUR, ROW, START, Tiles } from "./tiles";
import { deviceWork, lookedAt, saveTrace, stepsBetween } from "./windows";

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

function coloursOf(word: string | undefined): Colours {
  return word === "name" || word === "category" ? word : "role";
}

export class Timeline implements Target {
  private readonly canvas = h("canvas", { tabindex: 0, role: "application", "aria-label": "Timeline; keys: w s a d, arrows, comma and full stop, n, m, f, 0, Escape" });
  private readonly spacer = h("div", { class: "room" });
  private readonly view = h("div", { class: "view" }, this.spacer, this.canvas);
  private readonly panelFrame: PanelFrame;
  private readonly markForm = new MarkForm(() => this.moved());
  private readonly pythonBox = h("input", { type: "checkbox", onchange: () => this.showPython(this.pythonBox.checked) });
  private readonly where = h("span", { class: "where" });
  private readonly trouble = h("p", { class: "error", hidden: true, role: "alert" });
  private readonly painter: Painter;
  private readonly tiles: Tiles;
  private readonly layout: Layout;
  private readonly curves: Curves;
  private readonly ties?: Ties;
  private readonly search: Search;
  private readonly legend: Legend;
  private readonly minimap: Minimap;
  private readonly panel: Panel;
  private readonly input: Input;
  private readonly pointer: Pointer;
  private readonly chosen: Chosen;
  private readonly scene: Scene;
  private readonly origin: Origin;
  private readonly beside?: Beside;
  private root!: HTMLElement;
  private reach: Window;
  private pending = 0;
  private lastFrame = 0;
  private noteTimer = 0;
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
    this.minimap = new Minimap(c, info, origin, { center: (ns) => this.center(ns), fitAll: () => this.fitAll() });
    this.panelFrame = new PanelFrame(beside ? "opscope-timeline-half" : "opscope-timeline");
    this.search = new Search(c, info, origin, { jump: (e) => this.jump(e), searched: (text) => this.searched(text) });
    this.panel = { info, key: `${beside?.prefix ?? ""}selection`, save: origin.ranks ? undefined : () => this.exportWindow(), jump: (e) => this.jump(e), find: (t) => this.search.start(t), close: () => this.chosen.nothing(), fold: () => this.panelFrame.fold(),
      both: (d) => this.chosen.showEnds(d) };
    this.scene = { info, layout: this.layout, tiles: this.tiles, camera: { from: 0, scale: 1 }, width: 800, height: 400, scroll: 0, theme: theme(),
      colours: coloursOf(this.said("by")), search: "", roles: [], marks: marksOf(this.said("marks") ?? "") };
    this.legend = new Legend(this.tiles);
    const { scene, layout, tiles, curves, view, canvas, panelFrame, panel } = this;
    this.pointer = new Pointer({ scene, layout, tiles, curves, info, origin, view, canvas });
    this.chosen = new Chosen({ c, info, origin, scene, layout, panelFrame, panel, view, show: (from, to) => this.show(from, to), reveal: (e) => this.reveal(e), bringUp: (e) => this.bringUp(e), sized: () => this.sized(), moved: () => this.moved(),
      tracksChanged: () => this.tracksChanged() });
    const frame = this.frame();
    add(page, frame);
    this.input = new Input(this.canvas, frame, this, c.signal, !beside);
    frame.ownerDocument.addEventListener("pointerdown", (e) => closeMenus(frame, e.target as Node), { signal: c.signal });
    this.view.addEventListener("scroll", () => this.invalidate(), { signal: c.signal });
    const sized = new ResizeObserver(() => this.resize());
    sized.observe(this.view);
    c.signal.addEventListener("abort", () => (sized.disconnect(), this.noteTimer && this.note(), cancelAnimationFrame(this.pending)));
    Object.assign(this.canvas, { timeline: this });
  }

  private frame(): HTMLElement {
    const perfetto = this.origin.ranks ? null : button("Save for Perfetto", () => this.exportWindow(), { title: source.off ?? EXPORT_TITLE, disabled: !!source.off });
    const made = this.info.times ? null : h("p", { class: "note" }, "This input holds durations and an order, but no times: starts and gaps are made up.");
    const deep = this.info.too_deep ? h("p", { class: "note" }, `${this.info.too_deep} events are nested too deep to have rows of their own: they share the last.`) : null;
    const python = this.layout.hasPython ? h("label", { class: "choice", title: "Show the Python frames of each thread" }, this.pythonBox, "Python frames") : null;
    this.root = h("div", { class: this.beside ? "tl half" : "tl" },
      h("div", { class: "tools" }, this.beside?.title, ...this.search.parts, h("span", { class: "space" }), this.where,
        tracksMenu(this.layout, () => this.tracksChanged()), button("Fit all", () => this.fitAll(), { title: "Show all of it (0)" }), this.deviceButton(), perfetto, keyList()),
      h("div", { class: "tools thin" }, select("Colours", [["role", "by role"], ["name", "by name"], ["category", "by category"]], this.scene.colours, (v) => this.colourBy(v)), python, this.legend.place),
      made, deep, this.trouble, this.beside ? null : this.minimap.place, h("div", { class: "view-frame" }, this.view, this.markForm.place), this.panelFrame.place);
    return this.root;
  }

  private tracksChanged(): void {
    this.sized();
    this.moved();
  }

  private showPython(on: boolean): void {
    this.layout.python = on;
    this.layout.build();
    this.tracksChanged();
    const w = this.scene.window;
    if (w) void this.chosen.choose(w); // its totals are of what is shown
  }

  /** A time in the middle of what is in view. */
  private center(ns: number): void {
    const { scale } = this.scene.camera;
    this.scene.camera = this.bounded({ scale, from: ns - (this.room / 2) * scale });
    this.moved();
  }

  /** What the address says of this timeline. */
  private said(name: string): string | undefined {
    return this.c.args[(this.beside?.prefix ?? "") + name];
  }

  /** `first`: what is shown where the address does not say. */
  async start(first?: Window): Promise<void> {
    const look = this.said("look"), looked = look ? lookedAt(this.info, look) : undefined, tracks = this.said("tracks"), q = this.said("q"), ev = this.said("ev"), placed = this.said("from") !== undefined;
    for (const key of (this.said("shut") ?? "").split(" ")) if (key) this.layout.shut.add(key);
    this.layout.pins = (this.said("pin") ?? "").split(" ").filter((k) => k);
    this.layout.order = (this.said("order") ?? "").split(" ").filter((k) => k);
    this.layout.filter = this.said("rows") ?? "";
    this.layout.python = this.pythonBox.checked = this.said("python") === "1";
    this.layout.build();
    void this.minimap.load();
    if (!this.ties && !this.beside) void this.curves.load();
    add(this.view, this.pointer.tip);
    this.resize();
    if (looked) this.show(Math.max(0, 2 * looked.from - looked.to), Math.min(this.info.length, 2 * looked.to - looked.from));
    else this.startCamera(first);
    const [from, to] = looked ? [looked.from, looked.to] : (this.said("win") ?? "").split("..").map(Number);
    if (to > from) void this.chosen.choose({ from, to, tracks: tracks ? fromRanges(tracks) : undefined });
    if (q) await this.search.restore(q, Number(this.said("hit") ?? 0), !placed);
    if (ev) {
      const [kind, row] = ev.split(":");
      await this.chosen.open(kind, Number(row), !placed);
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
    const chosen = steps && steps !== "all" ? stepsBetween(this.info, steps) : undefined;
    if (from !== undefined && to !== undefined && Number(to) > Number(from)) this.show(Number(from), Number(to));
    else if (first) this.show(first.from, first.to);
    else if (chosen) this.show(chosen.from - (chosen.to - chosen.from) * 0.02, chosen.to + (chosen.to - chosen.from) * 0.02);
    else this.show(-length * 0.01, length * 1.01);
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
    clearTimeout(this.noteTimer);
    this.noteTimer = 0;
    const { camera, window: w, selected } = this.scene, to = camera.from + camera.scale * this.room;
    const names: Record<string, string | undefined> = {
      look: undefined, from: camera.from.toFixed(camera.scale < 10 ? 1 : 0), to: to.toFixed(camera.scale < 10 ? 1 : 0),
      ev: selected && `${selected.event.kind}:${selected.event.row}`, win: w && `${Math.round(w.from)}..${Math.round(w.to)}`,
      tracks: w?.tracks && rangesOf(w.tracks), shut: [...this.layout.shut].join(" "), pin: this.layout.pins.join(" "), order: this.layout.order.join(" "), rows: this.layout.filter,
      python: this.layout.python ? "1" : "", marks: marksText(this.scene.marks), by: this.scene.colours === "role" ? "" : this.scene.colours, ...this.search.place,
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

  private deviceButton(): HTMLElement | null {
    const w = deviceWork(this.info);
    return w && button("GPU work", () => this.show(w.from, w.to), { title: "From the first device work to the last" });
  }

  fitChosen(): void {
    const e = this.scene.selected?.event, w = this.scene.window ?? (e && { from: e.start, to: e.start + e.dur });
    if (w) this.show(w.from - (w.to - w.from) * 0.05 - 1, w.to + (w.to - w.from) * 0.05 + 1);
    else this.fitAll();
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
    this.minimap.resize(width - GUTTER);
    const chosen = this.scene.selected?.event, seen = chosen && this.layout.sees(chosen, this.view.scrollTop);
    this.sized();
    if (seen) this.bringUp(chosen);
    this.invalidate();
  }

  private sized(): void {
    this.layout.room = this.view.clientHeight - topOf(this.info);
    this.pythonBox.checked = this.layout.python;
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
    const bands = [...this.layout.between(s.scroll, s.scroll + s.height), ...this.layout.stuck], shown = [...new Set(bands.flatMap((b) => (b.track ? [b.track.track] : [])))];
    this.tiles.want(zoomOf(this.info, c.scale), c.from, to, shown);
    if (this.ties) {
      this.ties.want(c.from, to);
      s.ties = this.ties.list;
    } else {
      this.curves.want(c.from, to, c.scale);
      s.counters = this.curves.values;
      s.roles = this.curves.roles;
    }
    this.painter.draw(s);
    this.minimap.show({ from: c.from, to });
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
    return this.pointer.inRuler(y);
  }

  hover(x: number, y: number): void {
    this.pointer.hover(x, y);
    this.invalidate();
  }

  leave(): void {
    this.pointer.leave();
    this.invalidate();
  }

  // Choosing

  click(x: number, y: number): void {
    if (this.inRuler(y)) {
      const flag = this.markAt(x, y);
      if (flag) {
        this.editMark(flag);
        return;
      }
      const ns = this.pointer.timeAt(x), step = this.info.steps.find((s) => ns >= s.start && ns < s.end);
      if (step && y > topOf(this.info) - 18 && x > GUTTER) void this.chosen.choose({ from: step.start, to: step.end });
      return;
    }
    const band = this.pointer.bandAt(y), hit = this.pointer.hitAt(x, y);
    if (band && band.kind !== "process" && band.key && x < GUTTER && x > GUTTER - 24) {
      this.layout.pin(band.key);
      this.tracksChanged();
    } else if (band && (band.kind === "process" || (x < GUTTER && band.kind === "track")) && band.key) {
      this.layout.toggle(band.key);
      this.tracksChanged();
    } else if (hit) void this.chosen.open(hit.band.track!.device ? "gpu" : "span", hit.item[ROW], false);
  }

  private markAt(x: number, y: number): Mark | undefined {
    if (y > 18 || x < GUTTER) return undefined;
    return this.scene.marks.find((m) => {
      const left = GUTTER + (m.at - this.scene.camera.from) / this.scene.camera.scale;
      return x >= left - 2 && x <= left + 10 + 7 * m.note.length;
    });
  }

  private editMark(m: Mark): void {
    this.markForm.open(this.scene.marks, m, Math.min(GUTTER + (m.at - this.scene.camera.from) / this.scene.camera.scale, this.scene.width - 330));
    this.moved();
  }

  /** At the begin of what is chosen, else where the pointer is, else in the middle. */
  flag(): void {
    const { selected, window: w, hover, camera } = this.scene;
    const at = selected?.event.start ?? w?.from ?? (hover && hover.x > GUTTER ? this.pointer.timeAt(hover.x) : camera.from + (this.room / 2) * camera.scale);
    const m: Mark = { at: Math.round(Math.max(0, Math.min(this.info.length, at))), note: "" };
    this.scene.marks.push(m);
    this.editMark(m);
  }

  fitAt(x: number, y: number): void {
    const hit = this.pointer.hitAt(x, y);
    if (x < GUTTER || this.inRuler(y)) return;
    if (hit) this.show(hit.item[START] - hit.item[DUR] * 0.1 - 1, hit.item[START] + hit.item[DUR] * 1.1 + 1);
    else this.fitAll();
  }

  choosing(x0: number, y0: number, x1: number, y1: number, done: boolean): void {
    const [from, to] = [this.pointer.timeAt(Math.max(GUTTER, Math.min(x0, x1))), this.pointer.timeAt(Math.max(x0, x1))].map(Math.round);
    const top = topOf(this.info), at = (y: number) => Math.max(this.layout.stuckHeight, y - top) + this.view.scrollTop;
    const bands = this.inRuler(y0) ? undefined : this.layout.between(at(Math.min(y0, y1)), at(Math.max(y0, y1)) + 1).flatMap((b) => (b.track ? [b.track.track] : []));
    const w = { from: Math.max(0, from), to: Math.min(Math.max(to, from + 1), Math.max(1, this.info.length)), tracks: bands?.length ? bands : undefined };
    if (done && w.to > w.from) void this.chosen.choose(w);
    else this.scene.window = w;
    this.invalidate();
  }

  /** Closes what is open; then chooses nothing; then ends the search. */
  escape(): void {
    if (closeMenus(this.root)) return;
    if (this.scene.selected || this.scene.window) this.chosen.nothing();
    else this.search.clear();
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
    const { view, layout } = this, room = view.clientHeight - topOf(this.info);
    if (!layout.sees(e, view.scrollTop)) view.scrollTop = Math.max(0, layout.yOf(e, view.scrollTop) - (room + layout.stuckHeight) / 2);
  }

  jump(e: Slice): void {
    this.scene.window = undefined;
    this.reveal(e);
    void this.chosen.open(e.kind, e.row, false);
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
    void saveTrace(this.c, from <= 0 && to >= this.info.length ? {} : { from, to }, (why) => this.say(why));
  }
}
