// The whole run in a strip above the tracks: how busy its GPUs were, and what part of it is in view. Dragging in it moves the view.
import { get } from "../api";
import { h } from "../dom";
import type { Context } from "../view";
import { GUTTER } from "./layout";
import type { Counters, Info, Origin, Window } from "./model";

const SVG = "http://www.w3.org/2000/svg", HEIGHT = 22, POINTS = 1000;

export class Minimap {
  private readonly picture = document.createElementNS(SVG, "svg");
  private readonly busy = document.createElementNS(SVG, "path");
  private readonly steps = document.createElementNS(SVG, "path");
  private readonly seen = h("div", { class: "seen" });
  readonly place = h("div", { class: "minimap", title: "The whole run. Drag: move the view; double click: show all" }, this.picture, this.seen);
  private values?: Counters;
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
    if (this.origin.ranks) return;
    try {
      this.values = await get<Counters>("/api/timeline/counters", { input: this.c.input, points: POINTS }, this.c.signal);
      this.draw();
    } catch {
      // It shows steps and what is in view.
    }
  }

  resize(width: number): void {
    if (width === this.width) return;
    this.width = width;
    this.place.style.marginLeft = `${GUTTER}px`;
    this.place.style.width = `${width}px`;
    this.draw();
  }

  private draw(): void {
    const { width, info, values: v } = this, n = v?.points ?? 0, bars: string[] = [], lines: string[] = [];
    this.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    for (let i = 0; v && i < n; i++) {
      const busy = Math.max(0, ...v.devices.map((d) => d.utilization[i] ?? 0));
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
