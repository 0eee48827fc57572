// The whole run in a strip above the tracks: how busy its GPUs were, and what part of it is in view. Dragging in it moves the view.
import { get } from "../api";
import { h } from "../dom";
import type { Context } from "../view";
import { GUTTER } from "./layout";
import { rangesOf, zoomOf, type Counters, type Info, type Origin, type Window } from "./model";
import { BUSY, DUR, ITEM, START, type Answer, unpack } from "./tiles";

const SVG = "http://www.w3.org/2000/svg", HEIGHT = 22, POINTS = 1000;

/** Adds `value` to the parts from one place to another, to each as much as lies in it. */
function spread(sums: number[], from: number, to: number, value: number): void {
  for (let i = Math.max(0, Math.floor(from)); i < Math.min(sums.length, to); i++) sums[i] += (value * (Math.min(to, i + 1) - Math.max(from, i))) / (to - from);
}

export class Minimap {
  private readonly picture = document.createElementNS(SVG, "svg");
  private readonly busy = document.createElementNS(SVG, "path");
  private readonly steps = document.createElementNS(SVG, "path");
  private readonly seen = h("div", { class: "seen" });
  readonly place = h("div", { class: "minimap", title: "The whole run. Drag: move the view; double click: show all" }, this.picture, this.seen);
  private values: number[] = []; // shares of time with work, of as many equal parts
  private width = 0;

  constructor(private readonly c: Context, private readonly info: Info, private readonly origin: Origin, to: { center(ns: number): void; fitAll(): void }) {
    let held = false;
    this.picture.setAttribute("aria-hidden", "true"); // keys do the same
    this.picture.setAttribute("preserveAspectRatio", "none");
    this.busy.setAttribute("class", "busy");
    this.steps.setAttribute("class", "steps");
    this.picture.append(this.busy, this.steps);
    const go = (e: PointerEvent) => to.center((e.offsetX * info.length) / Math.max(1, this.width));
    this.picture.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      held = true;
      this.picture.setPointerCapture(e.pointerId);
      go(e);
    });
    this.picture.addEventListener("pointermove", (e) => held && go(e));
    for (const end of ["pointerup", "pointercancel"] as const) this.picture.addEventListener(end, () => (held = false));
    this.picture.addEventListener("dblclick", () => to.fitAll());
  }

  /** Once: what the strip shows. */
  async load(): Promise<void> {
    try {
      this.values = this.origin.ranks ? await this.busyRanks(this.origin.ranks) : await this.busyDevices();
      this.draw();
    } catch {
      // It shows steps and what is in view.
    }
  }

  private async busyDevices(): Promise<number[]> {
    const v = await get<Counters>("/api/timeline/counters", { input: this.c.input, points: POINTS }, this.c.signal);
    return Array.from({ length: v.points }, (_x, i) => Math.max(0, ...v.devices.map((d) => d.utilization[i] ?? 0)));
  }

  /** The mean over the ranks, of which there are no counters: from what is drawn of them at this zoom. */
  private async busyRanks(ranks: number): Promise<number[]> {
    const { info, origin } = this, part = Math.max(1, info.length / POINTS), zoom = zoomOf(info, part), wide = info.tile_pixels * 2 ** zoom, sums = new Array<number>(POINTS).fill(0);
    for (let index = 0; index * wide < info.length; index++) {
      const tile = await get<Answer>(`${origin.path}/tile`, { ...origin.args, zoom, index, tracks: rangesOf(info.tracks.filter((t) => t.device).map((t) => t.track)) }, this.c.signal);
      for (const lane of tile.tracks.flatMap((t) => t.lanes.map(unpack))) for (let i = 0; i < lane.length; i += ITEM) if (lane[i + START] >= index * wide) spread(sums, lane[i + START] / part, (lane[i + START] + Math.max(1, lane[i + DUR])) / part, lane[i + BUSY] / part);
    }
    return sums.map((v) => Math.min(1, v / ranks));
  }

  resize(width: number): void {
    if (width === this.width) return;
    this.width = width;
    this.place.style.marginLeft = `${GUTTER}px`;
    this.place.style.width = `${width}px`;
    this.draw();
  }

  private draw(): void {
    const { width, info, values } = this, n = values.length, bars: string[] = [], lines: string[] = [];
    this.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    for (const [i, busy] of values.entries()) {
      if (busy > 0) bars.push(`M${((i * width) / n).toFixed(1)} ${HEIGHT}v${(-busy * (HEIGHT - 3)).toFixed(1)}h${(width / n).toFixed(2)}V${HEIGHT}z`);
    }
    if (info.steps.length * 4 < width) for (const s of info.steps) lines.push(`M${((s.start * width) / Math.max(1, info.length)).toFixed(1)} 0v5`);
    this.busy.setAttribute("d", bars.join(""));
    this.steps.setAttribute("d", lines.join(""));
  }

  /** What is in view. */
  show(w: Window): void {
    const x = (ns: number) => (Math.max(0, Math.min(this.info.length, ns)) * this.width) / Math.max(1, this.info.length), from = x(w.from);
    this.seen.style.left = `${Math.min(from, this.width - 3)}px`;
    this.seen.style.width = `${Math.max(3, x(w.to) - from)}px`;
  }
}
