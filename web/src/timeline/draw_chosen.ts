// What is chosen, with its arrows; and the arrows through the parts of collectives.
import { GUTTER, LANE } from "./layout";
import type { Details, Slice } from "./model";
import { xOf, type Scene } from "./scene";
import type { Tie } from "./ties";

/** Arrows between the passes: from a forward op to its backward ops. */
const PASSES = "#d55e00";
/** Pixels: an end that is farther away is drawn there. */
const FAR = 20000;
const near = (x: number) => Math.max(-FAR, Math.min(FAR, x));

export class ChosenPainter {
  constructor(private readonly ctx: CanvasRenderingContext2D) {}

  window(s: Scene, top: number, bottom: number): void {
    const { ctx } = this, w = s.window!, x0 = Math.max(GUTTER, xOf(s, w.from)), x1 = Math.min(s.width, xOf(s, w.to));
    if (x1 <= GUTTER || x0 >= s.width) return;
    ctx.fillStyle = s.theme.strong;
    ctx.globalAlpha = 0.14;
    if (!w.tracks) ctx.fillRect(x0, top, x1 - x0, bottom - top);
    else
      for (const b of [...s.layout.between(top + s.layout.stuckHeight, bottom), ...s.layout.stuck])
        if (b.track && w.tracks.includes(b.track.track)) ctx.fillRect(x0, b.stuck ? s.scroll + b.y : b.y, x1 - x0, b.h);
    ctx.globalAlpha = 1;
    ctx.fillRect(x0, top, 1, bottom - top);
    ctx.fillRect(x1 - 1, top, 1, bottom - top);
  }

  selected(s: Scene, d: Details): void {
    const { ctx } = this, e = d.event, y = s.layout.yOf(e, s.scroll);
    this.clip(s);
    ctx.strokeStyle = s.theme.text;
    ctx.lineWidth = 2;
    const x0 = Math.max(GUTTER - 5, xOf(s, e.start)), x1 = Math.min(s.width + 5, Math.max(x0 + 2, xOf(s, e.start + e.dur)));
    ctx.strokeRect(x0, y, x1 - x0, LANE - 1);
    ctx.lineWidth = 1.4;
    const cause = d.call ?? d.op;
    if (e.kind === "gpu" && cause) this.arrow(s, cause, e, s.theme.strong);
    for (const k of (d.launched ?? []).slice(0, 100)) this.arrow(s, e, k, s.theme.strong);
    if (d.forward) this.arrow(s, d.forward, e, PASSES);
    for (const k of d.backward ?? []) this.arrow(s, e, k, PASSES);
    ctx.restore();
  }

  /** From the rank that came first over the others to the one that came last. Those that the chosen event is a part of stand out. */
  ties(s: Scene, list: Tie[]): void {
    const { ctx } = this, chosen = s.selected?.event, of = (t: Tie) => !!chosen && t.parts.some((p) => p.row === chosen.row);
    this.clip(s);
    for (const t of [...list].sort((a, b) => Number(of(a)) - Number(of(b)))) {
      ctx.globalAlpha = chosen && !of(t) ? 0.25 : 0.8;
      ctx.lineWidth = of(t) ? 2 : 1.2;
      for (let i = 1; i < t.parts.length; i++) this.tie(s, t.parts[i - 1], t.parts[i], t.accepted ? s.theme.text : s.theme.soft);
    }
    ctx.restore();
  }

  /** Nothing is drawn over the labels, until ctx.restore(). */
  private clip(s: Scene): void {
    this.ctx.save();
    this.ctx.beginPath();
    this.ctx.rect(GUTTER, s.scroll, s.width - GUTTER, s.height);
    this.ctx.clip();
  }

  private tie(s: Scene, a: Slice, b: Slice, color: string): void {
    const { ctx } = this;
    const x0 = near(xOf(s, a.start)), x1 = near(xOf(s, b.start)), y0 = s.layout.yOf(a, s.scroll) + LANE / 2, y1 = s.layout.yOf(b, s.scroll) + LANE / 2;
    if (Math.max(y0, y1) < s.scroll || Math.min(y0, y1) > s.scroll + s.height) return;
    const length = Math.hypot(x1 - x0, y1 - y0) || 1, [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
    ctx.strokeStyle = ctx.fillStyle = color;
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.lineTo(x1, y1);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 7 * ux - 3.5 * uy, y1 - 7 * uy + 3.5 * ux);
    ctx.lineTo(x1 - 7 * ux + 3.5 * uy, y1 - 7 * uy - 3.5 * ux);
    ctx.fill();
  }

  private arrow(s: Scene, a: Slice, b: Slice, color: string): void {
    const { ctx } = this;
    const x0 = near(xOf(s, a.start)), y0 = s.layout.yOf(a, s.scroll) + LANE / 2, x1 = near(xOf(s, b.start)), y1 = s.layout.yOf(b, s.scroll) + LANE / 2;
    const bend = Math.max(20, Math.min(120, Math.abs(x1 - x0) / 2));
    ctx.strokeStyle = ctx.fillStyle = color;
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 4, y1);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 7, y1 - 4);
    ctx.lineTo(x1 - 7, y1 + 4);
    ctx.fill();
  }
}
