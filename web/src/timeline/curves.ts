// The curves above the tracks. Windows are cut to pixels of powers of two, so that panning asks for little and nothing trembles.
import { columnOf, get, numberAt, type Report } from "../api";
import { bytes, count, time } from "../format";
import type { Context } from "../view";
import type { Curve } from "./layout";
import { zoomOf, type Counters, type Info, type StepRoles } from "./model";

const POINTS_MAX = 4096;

/** Columns of the report on steps, from below to above. */
const ROLES = ["kernel", "communication", "memcpy", "memset", "runtime", "dataloader", "cpu_exec", "other"];

export class Curves {
  values?: Counters;
  roles: StepRoles[] = [];
  list: Curve[] = [];
  private wanted = "";
  private timer = 0;
  private busy = false;

  constructor(private readonly c: Context, private readonly info: Info, private readonly changed: () => void) {
    c.signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  /** Once: what the time of each step went to. */
  async load(): Promise<void> {
    if (!this.info.steps.length) return;
    try {
      this.roles = this.rolesOf(await get<Report>("/api/report/steps", { input: this.c.input }, this.c.signal));
      if (this.roles.length) this.extend([{ key: "r", kind: "roles", device: null, title: "Steps by role" }]);
      this.changed();
    } catch {
      // As above: an addition.
    }
  }

  private rolesOf(t: Report): StepRoles[] {
    const known = ROLES.filter((id) => columnOf(t, `${id}_ns`) >= 0), start = columnOf(t, "start_ns"), first = BigInt(this.info.first_ns);
    const title = (id: string) => t.columns[columnOf(t, `${id}_ns`)].title;
    return t.rows.map((r) => ({ start: Number(BigInt(r[start] as number | bigint) - first), length: numberAt(t, r, "total_ns") ?? 0, number: numberAt(t, r, "step") ?? 0,
      parts: known.map((id) => ({ title: title(id), ns: numberAt(t, r, `${id}_ns`) ?? 0 })) }));
  }

  /** Those that were met stay, whatever is in view. */
  private extend(list: Curve[]): void {
    const order = (c: Curve) => ["roles", "use", "sm", "dram", "communication", "memory", "queue", "sample"].indexOf(c.kind) + (c.minor ? 10 : 0), kept = new Map(this.list.map((c) => [c.key, c]));
    for (const c of list) kept.set(c.key, c);
    this.list = [...kept.values()].sort((a, b) => order(a) - order(b));
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
      this.extend(this.listOf(this.values));
    } catch {
      // The tracks show what there is; curves are an addition.
    }
    this.busy = false;
    if (this.c.signal.aborted) return;
    this.changed();
    if (key !== this.wanted) this.timer = window.setTimeout(() => this.fetch(), 60);
  }

  private listOf(v: Counters): Curve[] {
    const gpu = (d: number | null) => (d === null ? "GPU ?" : d < 0 ? "Host" : `GPU ${d}`);
    const known = (d: Counters["devices"][number]) => d.sm_efficiency.some((x) => x !== null && x > 0);
    const memory = [...v.memory].sort((a, b) => Number(a.device < 0) - Number(b.device < 0) || a.device - b.device);
    return [
      ...v.devices.map((d) => ({ key: `u${d.device}`, kind: "use" as const, device: d.device, title: `${gpu(d.device)}: kernels${known(d) ? ", SM efficiency" : ""}` })),
      ...v.devices.filter((d) => d.communication).map((d) => ({ key: `x${d.device}`, kind: "communication" as const, device: d.device, title: `${gpu(d.device)}: communication` })),
      ...(v.sampled ?? []).filter((m) => m.sm_active).map((m) => ({ key: `s${m.device}`, kind: "sm" as const, device: m.device, title: `${gpu(m.device)}: ${m.tensor_active ? "SMs, Tensor Cores" : "SMs active"}` })),
      ...(v.sampled ?? []).filter((m) => m.dram_read).map((m) => ({ key: `d${m.device}`, kind: "dram" as const, device: m.device, title: `${gpu(m.device)}: memory bandwidth` })),
      ...memory.map((m) => ({ key: `m${m.device}`, kind: "memory" as const, device: m.device, title: `${gpu(m.device)}: memory allocated`, minor: m.device < 0 })),
      ...(v.queues ?? []).map((q) => ({ key: `q${q.device}`, kind: "queue" as const, device: q.device, title: `${gpu(q.device)}: launches that wait`, minor: true })),
      ...(v.samples ?? []).map((s) => ({ key: `${s.title}${s.device}`.replace(/ /g, "_"), kind: "sample" as const, device: s.device, title: `${gpu(s.device)}: ${s.title}`, minor: true })),
    ];
  }

  describe(curve: Curve, ns: number): string {
    const v = this.values, { kind, device } = curve, share = (x: number | null | undefined) => (x === null || x === undefined ? "unknown" : `${(100 * x).toFixed(1)} %`);
    if (kind === "roles") return this.describeStep(ns);
    if (!v || ns < v.from || ns >= v.to) return "";
    const i = Math.floor(((ns - v.from) * v.points) / (v.to - v.from)), u = v.devices.find((d) => d.device === device);
    if (kind === "use") return u ? `time with kernels: ${share(u.utilization[i])}\nSM efficiency: ${share(u.sm_efficiency[i])}` : "";
    if (kind === "communication") return u?.communication ? `time with kernels of collectives: ${share(u.communication[i])}\nof it exposed, with no other kernel (full colour): ${share(u.exposed_communication?.[i])}` : "";
    if (kind === "sm" || kind === "dram") return this.describeSampled(kind, device, i);
    if (kind === "queue") return `longest queue of a stream: ${count(v.queues?.find((q) => q.device === device)?.longest[i] ?? 0)} launches`;
    if (kind === "memory") return this.describeMemory(device, ns);
    const s = v.samples?.find((x) => x.device === device && curve.title.endsWith(x.title)), at = s ? lastBefore(s.time, ns) : -1;
    return s && at >= 0 ? `${s.value[at]} ${s.unit}, sampled ${time(ns - s.time[at])} before` : "";
  }

  private describeStep(ns: number): string {
    const s = this.roles.find((r) => ns >= r.start && ns < r.start + r.length);
    if (!s) return "";
    return `step ${s.number}: ${time(s.length)}\n${s.parts.filter((p) => p.ns > 0).map((p) => `${p.title}: ${((100 * p.ns) / s.length).toFixed(1)} %`).join("\n")}`;
  }

  private describeSampled(kind: "sm" | "dram", device: number | null, i: number): string {
    const m = this.values!.sampled?.find((d) => d.device === device), line = (name: string, x?: (number | null)[]) => (x ? `${name}: ${x[i] === null ? "unknown" : `${(100 * x[i]!).toFixed(1)} %`}\n` : "");
    if (!m) return "";
    return (kind === "sm" ? line("sampled: SMs active", m.sm_active) + line("Tensor Cores active", m.tensor_active) : line("sampled: memory reads, of its bandwidth", m.dram_read) + line("memory writes", m.dram_write)).trim();
  }

  private describeMemory(device: number | null, ns: number): string {
    const m = this.values!.memory.find((d) => d.device === device), i = m ? lastBefore(m.time, ns) : -1;
    if (!m || i < 0) return "";
    const reserved = m.reserved[i];
    return `allocated: ${bytes(m.allocated[i])}${reserved ? `\nreserved: ${bytes(reserved)}` : ""}`;
  }
}

/** The last of these times that is not after `ns`; -1 = none. */
export function lastBefore(times: number[], ns: number): number {
  let i = -1;
  while (i + 1 < times.length && times[i + 1] <= ns) i++;
  return i;
}
