// The curves above the tracks.
import { bytes } from "../format";
import { roleColor } from "./colors";
import { GUTTER, type Band } from "./layout";
import type { Counters, Sampled } from "./model";
import { xOf, type Scene } from "./scene";

const EXPOSED = "#d55e00"; // communication that no computation hides

/** Memory that was read and written: shares of the bandwidth. */
function both(v: Sampled): (number | null)[] {
  return (v.dram_read ?? []).map((x, i) => {
    const y = v.dram_write ? v.dram_write[i] : 0;
    return x === null || y === null ? null : Math.min(1, x + y);
  });
}

export class CurvePainter {
  constructor(private readonly ctx: CanvasRenderingContext2D) {}

  curve(s: Scene, b: Band): void {
    const { ctx } = this, c = s.counters, height = b.h - 6;
    if (!b.curve) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(GUTTER, b.y, s.width - GUTTER, b.h);
    ctx.clip();
    const { kind, device } = b.curve, y = b.y + 3, u = c?.devices.find((d) => d.device === device), q = c?.queues?.find((d) => d.device === device);
    if (kind === "roles") this.roles(s, y, height);
    else if (kind === "use" && u) this.shares(s, c!, [[u.utilization, s.theme.used], [u.sm_efficiency, s.theme.efficient]], y, height);
    else if (kind === "sm" || kind === "dram") {
      const v = c?.sampled?.find((d) => d.device === device);
      if (v) this.shares(s, c!, kind === "sm" ? [[v.sm_active ?? [], s.theme.used], [v.tensor_active ?? [], s.theme.efficient]] : [[both(v), s.theme.used], [v.dram_write ?? [], s.theme.efficient]], y, height);
    } else if (kind === "communication" && u?.communication) this.shares(s, c!, [[u.communication, s.theme.communication], [u.exposed_communication!, EXPOSED]], y, height);
    else if (kind === "queue" && q) this.queue(s, c!, q.longest, y, height);
    else if (kind === "memory") {
      const m = c?.memory.find((d) => d.device === device);
      if (m) this.steady(s, m.time, m.allocated, m.most, `up to ${bytes(m.most)}`, s.theme.memory, y, height);
    } else if (kind === "sample") {
      const x = c?.samples?.find((d) => d.device === device && b.curve!.title.endsWith(d.title)), most = Math.max(0, ...(x?.value ?? []));
      if (x) this.steady(s, [...x.time, s.info.length], [...x.value, 0], most, `up to ${Number(most.toPrecision(4))} ${x.unit}`, s.theme.sampled, y, height);
    }
    ctx.restore();
    ctx.fillStyle = s.theme.line;
    ctx.fillRect(GUTTER, b.y + 3 + height, s.width - GUTTER, 1);
  }

  /** Shares of time, 0 to 1, one over the other. */
  private shares(s: Scene, c: Counters, list: [(number | null)[], string][], y: number, height: number): void {
    const piece = (c.to - c.from) / c.points;
    for (const [values, color] of list) {
      this.ctx.fillStyle = color;
      for (let i = 0; i < values.length; i++) {
        const v = values[i], x0 = Math.round(xOf(s, c.from + i * piece)), x1 = Math.round(xOf(s, c.from + (i + 1) * piece));
        if (!v || x1 < GUTTER || x0 > s.width) continue;
        this.ctx.fillRect(x0, y + height * (1 - v), Math.max(1, x1 - x0), height * v);
      }
    }
  }

  private queue(s: Scene, c: Counters, longest: number[], y: number, height: number): void {
    const most = Math.max(1, ...longest);
    this.shares(s, c, [[longest.map((v) => v / most), s.theme.sampled]], y, height);
    this.upTo(s, `up to ${most}`, y);
  }

  /** Values that hold until the next one. */
  private steady(s: Scene, times: number[], values: number[], most: number, text: string, color: string, y: number, height: number): void {
    const { ctx } = this, all = Math.max(1, most);
    ctx.fillStyle = color;
    for (let i = 0; i + 1 < times.length; i++) {
      const x0 = Math.round(xOf(s, times[i])), x1 = Math.round(xOf(s, times[i + 1])), h = (height * values[i]) / all;
      if (x1 >= GUTTER && x0 <= s.width) ctx.fillRect(x0, y + height - h, Math.max(1, x1 - x0), h);
    }
    this.upTo(s, text, y);
  }

  private upTo(s: Scene, text: string, y: number): void {
    const { ctx } = this;
    ctx.fillStyle = s.theme.text;
    ctx.textAlign = "right";
    ctx.fillText(text, s.width - 6, y + 7);
    ctx.textAlign = "left";
  }

  /** Each step's time by role, in the order of the report from below. */
  private roles(s: Scene, y: number, height: number): void {
    for (const r of s.roles) {
      const x0 = Math.round(xOf(s, r.start)), x1 = Math.round(xOf(s, r.start + r.length));
      if (x1 < GUTTER || x0 > s.width) continue;
      let at = y + height;
      for (const p of r.parts) {
        const h = (height * p.ns) / Math.max(1, r.length);
        this.ctx.fillStyle = roleColor(p.title) ?? s.theme.line;
        this.ctx.fillRect(x0, at - h, Math.max(1, x1 - x0 - 1), h);
        at -= h;
      }
    }
  }
}
