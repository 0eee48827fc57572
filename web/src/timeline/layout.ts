// Where tracks stand: by process, then thread or stream; each can be shut.
import type { CurveKind, Info, Slice, Track } from "./model";

export const GUTTER = 196; // labels
export const TOP_RULER = 24, TOP_STEPS = 18;
export const LANE = 16;
const HEAD = 22, GAP = 5, CURVE = 34;

export interface Band {
  kind: "process" | "track" | "curve";
  key: string; // of what can be shut: "p…", "t…", "c"
  y: number;
  h: number;
  title: string;
  note: string;
  shut: boolean;
  track?: Track;
  lanes: number; // that are shown
  curve?: { kind: CurveKind; device: number | null };
}

interface Process {
  key: string;
  title: string;
  tracks: Track[];
}

export function trackTitle(t: Track): string {
  return t.thread.trim() || (/^\d*$/.test(t.tid) ? `${t.device ? "stream" : "thread"} ${t.tid}` : t.tid);
}

/** A process of the timeline of a job. */
function isRank(process: string): boolean {
  return /^rank \d+$/.test(process);
}

function processTitle(t: Track): string {
  const parts = [t.labels, t.process].filter((x) => x);
  if (isRank(t.process)) return t.process;
  return parts.length ? `${parts.join(" · ")} (${t.pid})` : t.pid || "process";
}

/** Some traces file a thread of the host under a GPU: it stands by itself. Ranges of the user's that are shown on a stream stay there. */
function processKey(info: Info, t: Track): string {
  const own = !t.device && /^GPU/.test(t.labels) && /^thread /.test(trackTitle(t)) && !info.tracks.some((x) => x.device && x.pid === t.pid && x.tid === t.tid);
  return own ? `${t.pid}-host` : t.pid;
}

/** Processes with device work first, in them device work first; ranks in their order. */
function processes(info: Info): Process[] {
  const out = new Map<string, Process>();
  for (const t of info.tracks) {
    const key = processKey(info, t), p = out.get(key) ?? { key: "p" + key, title: key === t.pid ? processTitle(t) : `Host · ${t.process} (${t.pid})`, tracks: [] };
    out.set(key, p);
    p.tracks.push(t);
  }
  const list = [...out.values()], has = (p: Process) => Number(p.tracks.some((t) => t.device));
  for (const p of list) p.tracks.sort((a, b) => Number(b.device) - Number(a.device) || a.track - b.track);
  return list.sort((a, b) => has(b) - has(a) || (isRank(a.title) && isRank(b.title) ? Number(a.title.slice(5)) - Number(b.title.slice(5)) : 0));
}

export class Layout {
  bands: Band[] = [];
  height = 0;
  readonly shut = new Set<string>();
  readonly firstLane: number[] = [];
  curves: { kind: CurveKind; device: number | null; title: string }[] = [];
  private readonly processes: Process[];
  private readonly bandOf = new Map<number, Band>();

  constructor(private readonly info: Info) {
    this.processes = processes(info);
    let lane = 0;
    for (const t of info.tracks) {
      this.firstLane.push(lane);
      lane += t.lanes;
    }
  }

  private push(b: Omit<Band, "y">): void {
    this.bands.push({ ...b, y: this.height });
    this.height += b.h;
  }

  build(): void {
    this.bands = [];
    this.bandOf.clear();
    this.height = 0;
    if (this.curves.length) {
      const shut = this.shut.has("c");
      this.push({ kind: "process", key: "c", h: HEAD, title: "Use of the GPUs and memory", note: "", shut, lanes: 0 });
      for (const c of shut ? [] : this.curves) this.push({ kind: "curve", key: "", h: CURVE + GAP, title: c.title, note: "", shut: false, lanes: 0, curve: c });
    }
    for (const p of this.processes) this.addProcess(p);
  }

  private addProcess(p: Process): void {
    const shut = this.shut.has(p.key);
    this.push({ kind: "process", key: p.key, h: HEAD, title: p.title, note: p.tracks.length > 1 ? `${p.tracks.length} tracks` : "", shut, lanes: 0 });
    const head = this.bands[this.bands.length - 1];
    for (const t of p.tracks) {
      if (shut) {
        this.bandOf.set(t.track, head);
        continue;
      }
      const key = "t" + t.track, closed = this.shut.has(key), lanes = closed ? 1 : t.lanes;
      const note = closed && t.lanes > 1 ? `1 of ${t.lanes} rows` : t.device ? "device" : "";
      const beside = !t.device && p.tracks.some((x) => x.device && x.tid === t.tid); // ranges of the user's, shown on a stream
      this.push({ kind: "track", key, h: lanes * LANE + GAP, title: trackTitle(t) + (beside ? ": ranges" : ""), note, shut: closed, lanes, track: t });
      this.bandOf.set(t.track, this.bands[this.bands.length - 1]);
    }
  }

  toggle(key: string): void {
    if (!this.shut.delete(key)) this.shut.add(key);
    this.build();
  }

  /** Bands that show between two heights. */
  between(top: number, bottom: number): Band[] {
    return this.bands.filter((b) => b.y < bottom && b.y + b.h > top);
  }

  at(y: number): Band | undefined {
    return this.bands.find((b) => y >= b.y && y < b.y + b.h);
  }

  /** Top of the row that an event stands on; of its process's when that is shut. */
  yOf(e: Pick<Slice, "track" | "lane">): number {
    const band = this.bandOf.get(e.track);
    if (!band) return 0;
    return band.y + (band.kind === "track" ? Math.min(e.lane - this.firstLane[e.track], band.lanes - 1) * LANE + GAP - 2 : 3);
  }

  /** Opens what hides an event. */
  open(e: Pick<Slice, "track" | "lane">): void {
    const t = this.info.tracks[e.track];
    const changed = this.shut.delete("p" + processKey(this.info, t)), row = e.lane > this.firstLane[e.track] && this.shut.delete("t" + e.track);
    if (changed || row) this.build();
  }

  laneY(b: Band, lane: number): number {
    return b.y + GAP - 2 + lane * LANE;
  }

  /** Which of a track's rows is at this height; -1 = none. */
  laneAt(b: Band, y: number): number {
    const lane = Math.floor((y - b.y - GAP + 2) / LANE);
    return lane >= 0 && lane < b.lanes ? lane : -1;
  }
}
