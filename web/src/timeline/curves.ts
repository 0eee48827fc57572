// The curves above the tracks. Windows are cut to pixels of powers of two, so that panning asks for little and nothing trembles.
import { get } from "../api";
import { bytes } from "../format";
import type { Context } from "../view";
import type { Layout } from "./layout";
import { zoomOf, type Counters, type CurveKind, type Info } from "./model";

const POINTS_MAX = 4096;

export class Curves {
  values?: Counters;
  list: Layout["curves"] = [];
  private wanted = "";
  private timer = 0;
  private busy = false;

  constructor(private readonly c: Context, private readonly info: Info, private readonly changed: () => void) {
    c.signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  /** Asks for what is in view, once it rests for a moment. */
  want(from: number, to: number, scale: number): void {
    const point = 2 * 2 ** zoomOf(this.info, scale), piece = 256 * point, first = Math.max(0, Math.floor(from / piece)), last = Math.max(first + 1, Math.ceil(Math.min(to, this.info.length) / piece));
    const key = `${first * piece} ${last * piece} ${Math.min(POINTS_MAX, (last - first) * 256)}`;
    if (key === this.wanted) return;
    this.wanted = key;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.fetch(), this.values ? 120 : 0);
  }

  private async fetch(): Promise<void> {
    if (this.busy) return;
    const key = this.wanted, [from, to, points] = key.split(" ").map(Number);
    this.busy = true;
    try {
      this.values = await get<Counters>("/api/timeline/counters", { input: this.c.input, from, to, points }, this.c.signal);
      if (!this.list.length) this.list = this.listOf(this.values);
    } catch {
      // The tracks show what there is; curves are an addition.
    }
    this.busy = false;
    if (this.c.signal.aborted) return;
    this.changed();
    if (key !== this.wanted) this.timer = window.setTimeout(() => this.fetch(), 60);
  }

  private listOf(v: Counters): Layout["curves"] {
    const gpu = (d: number | null) => (d === null ? "GPU ?" : d < 0 ? "CPU" : `GPU ${d}`);
    const known = (d: Counters["devices"][number]) => d.sm_efficiency.some((x) => x !== null && x > 0);
    return [
      ...v.devices.map((d) => ({ kind: "use" as const, device: d.device, title: `${gpu(d.device)}: kernels${known(d) ? ", SM efficiency" : ""}` })),
      ...v.sampled.filter((m) => m.sm_active).map((m) => ({ kind: "sm" as const, device: m.device, title: `${gpu(m.device)}: ${m.tensor_active ? "SMs, Tensor Cores" : "SMs active"}` })),
      ...v.sampled.filter((m) => m.dram_read).map((m) => ({ kind: "dram" as const, device: m.device, title: `${gpu(m.device)}: memory bandwidth` })),
      ...v.memory.map((m) => ({ kind: "memory" as const, device: m.device, title: `${gpu(m.device)}: memory allocated` })),
    ];
  }

  describe(kind: CurveKind, device: number | null, ns: number): string {
    const v = this.values, share = (x: number | null) => (x === null ? "unknown" : `${(100 * x).toFixed(1)} %`);
    if (!v || ns < v.from || ns >= v.to) return "";
    if (kind === "use") {
      const u = v.devices.find((d) => d.device === device), i = Math.floor(((ns - v.from) * v.points) / (v.to - v.from));
      return u ? `time with kernels: ${share(u.utilization[i])}\nSM efficiency: ${share(u.sm_efficiency[i])}` : "";
    }
    if (kind === "sm" || kind === "dram") {
      const u = v.sampled.find((d) => d.device === device), i = Math.floor(((ns - v.from) * v.points) / (v.to - v.from)), line = (name: string, x?: (number | null)[]) => (x ? `${name}: ${share(x[i])}\n` : "");
      return u ? (kind === "sm" ? line("sampled: SMs active", u.sm_active) + line("Tensor Cores active", u.tensor_active) : line("sampled: memory reads, of its bandwidth", u.dram_read) + line("memory writes", u.dram_write)).trim() : "";
    }
    const m = v.memory.find((d) => d.device === device);
    if (!m) return "";
    let i = -1;
    while (i + 1 < m.time.length && m.time[i + 1] <= ns) i++;
    if (i < 0) return "";
    const reserved = m.reserved[i];
    return `allocated: ${bytes(m.allocated[i])}${reserved ? `\nreserved: ${bytes(reserved)}` : ""}`;
  }
}
