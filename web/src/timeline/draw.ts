// The picture. Work is proportional to what is in view: an item at least a pixel and a half wide is drawn by itself with its name; what
// is narrower adds to the pixels it lies on, each of which shows how much of its time was busy as height.
import type { Theme } from "./colors";
import { paintOfName, paintOfRole } from "./colors";
import { ChosenPainter } from "./draw_chosen";
import { CurvePainter } from "./draw_curves";
import { GUTTER, LANE, TOP_RULER, TOP_STEPS, type Band } from "./layout";
import { zoomOf, type Window } from "./model";
import type { Mark } from "./marks";
import { Raster, pixelOf } from "./raster";
import { tickStep, tickText, topOf, xOf, type Scene } from "./scene";
import { BUSY, CATEGORY, COUNT, DUR, ITEM, NAME, START, firstBehind, type Piece } from "./tiles";

const MARK = "#b5367a";
const FONT = "11px system-ui, sans-serif";
const ALONE = 1.5;
const NAME_ROOM = 26;

export class Painter {
  private readonly hues = new Map<number, number>(); // paints by name, and by role
  private readonly hostHues = new Map<number, number>();
  private readonly deviceHues = new Map<number, number>();
  private device = false; // whose lane is drawn
  private readonly hits = new Map<number, boolean>();
  private readonly widths = new Map<number, number>();
  private readonly categoryHues: number[] = [];
  private searched = "";
  private busy = new Float32Array(0);
  private most = new Float32Array(0);
  private hue = new Int16Array(0);
  private tall = new Uint8Array(0);
  private bar = new Uint32Array(0);
  private above = new Uint32Array(0);
  private readonly raster = new Raster();
  private readonly texts: number[] = []; // name, x, y, room, paint (-1: no hit): to be written when the slices stand
  private theme?: Theme;
  private slices = new Uint32Array(0); // pixels of the theme's colours
  private faint = new Uint32Array(0);
  private missed = 0;
  private missedBar = 0;

  private readonly curves: CurvePainter;
  private readonly chosen: ChosenPainter;

  constructor(private readonly ctx: CanvasRenderingContext2D) {
    this.curves = new CurvePainter(ctx);
    this.chosen = new ChosenPainter(ctx);
  }

  draw(s: Scene): void {
    const { ctx } = this, top = topOf(s.info);
    this.prepare(s);
    ctx.fillStyle = s.theme.ground;
    ctx.fillRect(0, 0, s.width, s.height);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, top, s.width, s.height - top);
    ctx.clip();
    ctx.translate(0, top - s.scroll);
    this.grid(s);
    this.bands(s, s.layout.between(s.scroll + s.layout.stuckHeight, s.scroll + s.height - top), s.height - top);
    if (s.layout.stuckHeight) this.stuck(s);
    if (s.ties) this.chosen.ties(s, s.ties);
    if (s.window) this.chosen.window(s, s.scroll, s.scroll + s.height);
    this.marks(s, s.scroll, s.height);
    if (s.selected) this.chosen.selected(s, s.selected);
    ctx.restore();
    this.ruler(s, top);
  }

  private bands(s: Scene, bands: Band[], height: number): void {
    this.raster.begin(Math.ceil(s.width - GUTTER), Math.ceil(height));
    for (const band of bands) if (band.kind === "track") this.track(s, band);
    this.raster.show(this.ctx, GUTTER, s.scroll);
    this.writeNames(s);
    for (const band of bands) this.band(s, band);
  }

  /** What stays in view, over the others. */
  private stuck(s: Scene): void {
    const { ctx } = this, height = s.layout.stuckHeight, still = { ...s, scroll: 0 };
    ctx.save();
    ctx.translate(0, s.scroll);
    ctx.beginPath();
    ctx.rect(0, 0, s.width, height);
    ctx.clip();
    ctx.fillStyle = s.theme.ground;
    ctx.fillRect(0, 0, s.width, height);
    this.grid(still);
    this.bands(still, s.layout.stuck, height);
    ctx.fillStyle = s.theme.strong;
    ctx.fillRect(0, height - 2, s.width, 2);
    ctx.restore();
  }

  private prepare(s: Scene): void {
    const columns = Math.max(0, Math.ceil(s.width - GUTTER)) + 2;
    if (this.busy.length < columns) {
      this.busy = new Float32Array(columns);
      this.most = new Float32Array(columns);
      this.hue = new Int16Array(columns);
      this.tall = new Uint8Array(columns);
      this.bar = new Uint32Array(columns);
      this.above = new Uint32Array(columns);
    }
    if (this.theme !== s.theme) {
      this.theme = s.theme;
      this.slices = Uint32Array.from(s.theme.slice, pixelOf);
      this.faint = Uint32Array.from(s.theme.faint, pixelOf);
      this.missed = pixelOf(s.theme.raised);
      this.missedBar = pixelOf(s.theme.line);
    }
    if (this.searched !== s.search) {
      this.searched = s.search;
      this.hits.clear();
    }
  }

  private hueAt(s: Scene, items: Float64Array, i: number): number {
    if (s.colours === "category") {
      const c = items[i + CATEGORY];
      return (this.categoryHues[c] ??= paintOfName(s.tiles.categories[c] ?? ""));
    }
    const name = items[i + NAME], kept = s.colours === "name" ? this.hues : this.device ? this.deviceHues : this.hostHues;
    let h = kept.get(name);
    if (h === undefined) kept.set(name, (h = this.hueOf(s, name)));
    return h;
  }

  private hueOf(s: Scene, id: number): number {
    const name = s.tiles.names.get(id) ?? "";
    return s.colours === "name" ? paintOfName(name) : paintOfRole(this.device, s.tiles.roles[this.device ? "gpu" : "span"].get(id) ?? "", name);
  }

  private isHit(s: Scene, name: number): boolean {
    if (!s.search) return true;
    let hit = this.hits.get(name);
    if (hit === undefined) this.hits.set(name, (hit = (s.tiles.names.get(name) ?? "").toLowerCase().includes(s.search)));
    return hit;
  }

  private grid(s: Scene): void {
    const { ctx } = this, step = tickStep(s.camera.scale, 90), end = s.camera.from + (s.width - GUTTER) * s.camera.scale;
    ctx.fillStyle = s.theme.line;
    ctx.globalAlpha = 0.45;
    for (let t = Math.ceil(s.camera.from / step) * step; t < end; t += step) ctx.fillRect(Math.round(xOf(s, t)), s.scroll, 1, s.height);
    ctx.globalAlpha = 1;
    this.stepLines(s, end);
  }

  /** Where steps begin, through all tracks; none when they would fill the picture. */
  private stepLines(s: Scene, end: number): void {
    const { ctx } = this, list = s.info.steps.filter((x) => x.start >= s.camera.from && x.start < end);
    if (list.length * 12 > s.width) return;
    ctx.fillStyle = s.theme.strong;
    ctx.globalAlpha = 0.5;
    for (const x of list) ctx.fillRect(Math.round(xOf(s, x.start)), s.scroll, 1, s.height);
    ctx.globalAlpha = 1;
  }

  private band(s: Scene, b: Band): void {
    if (b.kind === "curve") this.curves.curve(s, b);
    this.label(s, b);
  }

  private label(s: Scene, b: Band): void {
    const { ctx } = this, head = b.kind === "process";
    ctx.fillStyle = head ? s.theme.raised : s.theme.ground;
    ctx.fillRect(0, b.y, head ? s.width : GUTTER - 1, b.h - (head ? 1 : 0));
    ctx.fillStyle = s.theme.line;
    ctx.fillRect(head ? 0 : GUTTER - 1, head ? b.y + b.h - 1 : b.y, head ? s.width : 1, head ? 1 : b.h);
    const at = Math.min(Math.max(b.y, s.scroll), b.y + b.h - 22) + 11; // long tracks keep their name in view
    ctx.fillStyle = s.theme.text;
    ctx.font = head ? "600 " + FONT : FONT;
    const x = head ? 18 : b.kind === "track" ? 26 : 18;
    if (b.kind !== "curve" && b.stuck !== "peek") this.triangle(x - 10, at, b.shut);
    const tools = !head && s.hover?.band === b && b.stuck !== "peek";
    this.cut(b.title, x, at, (head ? s.width - 140 : GUTTER - (tools || b.stuck ? 22 : 6)) - x);
    if (tools || b.stuck === "pin") this.pinSign(GUTTER - 13, at, b.stuck === "pin");
    ctx.font = FONT;
    if (b.note && (head || b.h > 30)) {
      ctx.fillStyle = s.theme.soft;
      if (head) ctx.textAlign = "right";
      this.cut(b.note, head ? s.width - 8 : x, head ? at : at + 13, 130);
      ctx.textAlign = "left";
    }
  }

  private triangle(x: number, y: number, shut: boolean): void {
    const { ctx } = this;
    ctx.beginPath();
    if (shut) ctx.moveTo(x - 2, y - 4), ctx.lineTo(x + 3, y), ctx.lineTo(x - 2, y + 4);
    else ctx.moveTo(x - 4, y - 2), ctx.lineTo(x + 4, y - 2), ctx.lineTo(x, y + 3);
    ctx.fill();
  }

  private pinSign(x: number, y: number, on: boolean): void {
    const { ctx } = this;
    ctx.beginPath();
    ctx.moveTo(x - 3, y - 5), ctx.lineTo(x + 3, y - 5), ctx.lineTo(x + 2, y - 1), ctx.lineTo(x + 4, y + 1), ctx.lineTo(x - 4, y + 1), ctx.lineTo(x - 2, y - 1), ctx.closePath();
    if (on) ctx.fill();
    else ctx.stroke();
    ctx.fillRect(x - 0.5, y + 1, 1, 5);
  }

  private cut(text: string, x: number, y: number, room: number): void {
    let n = text.length;
    while (n > 1 && this.ctx.measureText(n < text.length ? text.slice(0, n) + "…" : text).width > room) n = Math.min(n - 1, Math.floor(n * 0.85));
    this.ctx.fillText(n < text.length ? text.slice(0, n) + "…" : text, x, y);
  }

  private track(s: Scene, b: Band): void {
    const to = s.camera.from + (s.width - GUTTER) * s.camera.scale, y0 = s.scroll - LANE, y1 = s.scroll + s.height;
    this.device = b.track!.device;
    const pieces = s.tiles.pieces(zoomOf(s.info, s.camera.scale), s.camera.from, to, b.track!.track);
    for (let lane = 0; lane < b.lanes; lane++) {
      const y = s.layout.laneY(b, lane);
      if (y >= y0 && y <= y1) this.lane(s, pieces, b.lane + lane, Math.round(y - s.scroll));
    }
  }

  /** `y`: from the top of what is in view, as in the raster. */
  private lane(s: Scene, pieces: Piece[], lane: number, y: number): void {
    const columns = Math.ceil(s.width - GUTTER);
    let low = columns, high = -1, before = false;
    for (const p of pieces) {
      const items = p.lanes[lane];
      if (items) {
        for (let i = firstBehind(items, Math.max(p.from, s.camera.from)); i < items.length; i += ITEM) {
          const start = items[i + START], end = start + items[i + DUR];
          if (start >= p.to) break;
          if (before && p.exact && start < p.from) continue; // drawn with the piece before
          const x0 = ((p.exact ? start : Math.max(start, p.from)) - s.camera.from) / s.camera.scale;
          const x1 = ((p.exact ? end : Math.min(end, p.to)) - s.camera.from) / s.camera.scale;
          if (x0 >= columns) break;
          if (items[i + COUNT] === 1 && x1 - x0 >= ALONE) {
            this.slice(s, items, i, x0, x1, y);
            continue;
          }
          const first = Math.max(0, Math.floor(x0)), last = Math.min(columns - 1, Math.max(first, Math.ceil(x1) - 1));
          this.gather(s, items, i, x0, x1, first, last);
          if (first < low) low = first;
          if (last > high) high = last;
        }
      }
      before = p.exact;
    }
    if (high >= low) this.columns(low, high, y);
  }

  /** Adds an item's busy time to the pixels it lies on, as shares of a pixel. */
  private gather(s: Scene, items: Float64Array, i: number, x0: number, x1: number, first: number, last: number): void {
    const hue = this.isHit(s, items[i + NAME]) ? this.hueAt(s, items, i) : -1;
    const density = items[i + DUR] > 0 ? Math.min(1, items[i + BUSY] / items[i + DUR]) : 0;
    for (let c = first; c <= last; c++) {
      const share = Math.max(1e-4, density * (Math.min(c + 1, x1) - Math.max(c, x0)));
      this.busy[c] += share;
      if (share >= this.most[c]) {
        this.most[c] = share;
        this.hue[c] = hue;
      }
    }
  }

  private columns(low: number, high: number, y: number): void {
    const full = LANE - 1, { busy, hue, tall, bar, above } = this;
    for (let c = low; c <= high; c++) {
      tall[c] = busy[c] > 0 ? Math.max(3, Math.min(full, Math.round(busy[c] * full))) : 0;
      bar[c] = hue[c] < 0 ? this.missedBar : this.slices[hue[c]];
      above[c] = hue[c] < 0 ? this.missed : this.faint[hue[c]];
    }
    this.raster.bars(low, high, y, full, tall, bar, above);
    this.busy.fill(0, low, high + 1);
    this.most.fill(0, low, high + 1);
  }

  private slice(s: Scene, items: Float64Array, i: number, x0: number, x1: number, y: number): void {
    const left = Math.max(-2, Math.round(x0)), right = Math.min(s.width - GUTTER + 2, Math.max(left + 1, Math.round(x1)));
    const width = right - left - (right - left > 3 ? 1 : 0), hit = this.isHit(s, items[i + NAME]);
    const hue = hit ? this.hueAt(s, items, i) : -1;
    this.raster.rect(left, y, width, LANE - 1, hit ? this.slices[hue] : this.missed);
    if (width >= NAME_ROOM) this.texts.push(items[i + NAME], GUTTER + Math.max(left, 0) + 3, s.scroll + y + LANE / 2, right - Math.max(left, 0) - 7, hue);
  }

  private writeNames(s: Scene): void {
    const { ctx, texts } = this;
    for (let i = 0, last = ""; i < texts.length; i += 5) {
      const color = texts[i + 4] < 0 ? s.theme.soft : s.theme.onSlice[texts[i + 4]];
      if (color !== last) ctx.fillStyle = last = color;
      this.name(s, texts[i], texts[i + 1], texts[i + 2], texts[i + 3]);
    }
    texts.length = 0;
  }

  private name(s: Scene, id: number, x: number, y: number, room: number): void {
    const text = s.tiles.names.get(id) ?? "";
    let width = this.widths.get(id);
    if (width === undefined) this.widths.set(id, (width = this.ctx.measureText(text.slice(0, 400)).width));
    if (width <= room) {
      this.ctx.fillText(text, x, y);
      return;
    }
    const letters = Math.floor((Math.min(text.length, 400) * (room - 6)) / width);
    if (letters >= 2) this.ctx.fillText(text.slice(0, letters) + "…", x, y, room);
  }

  // Curves

  // Above the tracks

  private ruler(s: Scene, top: number): void {
    const { ctx } = this, step = tickStep(s.camera.scale, 110), end = s.camera.from + (s.width - GUTTER) * s.camera.scale;
    ctx.fillStyle = s.theme.raised;
    ctx.fillRect(0, 0, s.width, top);
    ctx.save();
    ctx.beginPath();
    ctx.rect(GUTTER, 0, s.width - GUTTER, top);
    ctx.clip();
    for (let t = Math.max(0, Math.ceil(s.camera.from / step) * step - step); t < Math.min(end, s.info.length + step); t += step) {
      const x = Math.round(xOf(s, t));
      ctx.fillStyle = s.theme.soft;
      ctx.fillRect(x, TOP_RULER - 6, 1, 6);
      ctx.fillText(tickText(t, step), x + 3, TOP_RULER / 2 - 1);
    }
    this.steps(s);
    if (s.window) this.span(s, s.window);
    for (const m of s.marks) this.flag(s, m);
    ctx.restore();
    ctx.fillStyle = s.theme.soft;
    ctx.fillText("Time since the first event", 8, TOP_RULER / 2);
    if (s.info.steps.length) ctx.fillText("Steps", 8, TOP_RULER + TOP_STEPS / 2);
    ctx.fillStyle = s.theme.line;
    ctx.fillRect(0, top - 1, s.width, 1);
    ctx.fillRect(GUTTER - 1, 0, 1, top);
    if (s.hover && s.hover.x > GUTTER) {
      ctx.fillStyle = s.theme.strong;
      ctx.fillRect(Math.round(s.hover.x), 0, 1, top);
    }
  }

  private steps(s: Scene): void {
    const { ctx } = this, end = s.camera.from + (s.width - GUTTER) * s.camera.scale, list = s.info.steps;
    let lo = 0, hi = list.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (list[mid].end < s.camera.from) lo = mid + 1;
      else hi = mid;
    }
    for (let i = lo, drawn = -1; i < list.length && list[i].start < end; i++) {
      const x0 = Math.round(xOf(s, list[i].start)), x1 = Math.round(xOf(s, list[i].end));
      if (x1 <= drawn) continue; // many in one pixel
      ctx.fillStyle = s.theme.line;
      ctx.globalAlpha = i % 2 ? 1 : 0.6;
      ctx.fillRect(Math.max(x0, GUTTER), TOP_RULER, Math.max(1, Math.min(x1, s.width) - Math.max(x0, GUTTER) - 1), TOP_STEPS - 2);
      ctx.globalAlpha = 1;
      ctx.fillStyle = s.theme.text;
      if (x1 - x0 > 40 || ctx.measureText(list[i].name).width < x1 - x0 - 6) this.cut(list[i].name, Math.max(x0, GUTTER) + 4, TOP_RULER + TOP_STEPS / 2, Math.min(x1, s.width) - Math.max(x0, GUTTER) - 6);
      drawn = x1;
    }
  }

  /** Where marks stand, through all tracks. */
  private marks(s: Scene, y: number, height: number): void {
    const { ctx } = this;
    ctx.fillStyle = MARK;
    for (const m of s.marks) {
      const x = Math.round(xOf(s, m.at));
      if (x >= GUTTER && x <= s.width) ctx.fillRect(x, y, 1, height);
    }
  }

  private flag(s: Scene, m: Mark): void {
    const { ctx } = this, x = Math.round(xOf(s, m.at));
    if (x < GUTTER - 200 || x > s.width) return;
    const width = m.note ? ctx.measureText(m.note).width + 8 : 10;
    ctx.fillStyle = MARK;
    ctx.fillRect(x, 2, 1, TOP_RULER);
    ctx.fillRect(x, 2, width, 14);
    ctx.fillStyle = "#ffffff";
    if (m.note) ctx.fillText(m.note, x + 4, 9);
  }

  private span(s: Scene, w: Window): void {
    const { ctx } = this, x0 = Math.max(GUTTER, xOf(s, w.from)), x1 = Math.min(s.width, xOf(s, w.to));
    if (x1 <= x0) return;
    ctx.fillStyle = s.theme.strong;
    ctx.globalAlpha = 0.25;
    ctx.fillRect(x0, 0, x1 - x0, TOP_RULER);
    ctx.globalAlpha = 1;
    const text = tickText(w.to - w.from, Math.max(1, (w.to - w.from) / 1000)), width = ctx.measureText(text).width + 8;
    if (x1 - x0 < width) return;
    ctx.fillRect((x0 + x1 - width) / 2, 2, width, TOP_RULER - 6);
    ctx.fillStyle = s.theme.ground;
    ctx.textAlign = "center";
    ctx.fillText(text, (x0 + x1) / 2, TOP_RULER / 2 - 1);
    ctx.textAlign = "left";
  }
}
