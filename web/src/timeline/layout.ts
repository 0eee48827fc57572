// Where tracks stand: those that are pinned above all others, then by process, then thread or stream; each can be shut, moved, and left out.
import type { Info, Slice, Track } from "./model";

export const GUTTER = 196; // labels
export const TOP_RULER = 24, TOP_STEPS = 18;
export const LANE = 16;
const HEAD = 22, GAP = 5, CURVE = 30, CURVE_MINOR = 20;
/** The group of curves that is shut unless this is among what is "shut". */
const MORE = "more";
/** Rows of a track that stays in view, at most. */
const PINNED = 8;

export interface Curve {
  key: string;
  kind: "roles" | "use" | "sm" | "dram" | "communication" | "memory" | "queue" | "sample";
  device: number | null;
  title: string;
  minor?: boolean; // takes less room
}

export interface Band {
  kind: "process" | "track" | "curve";
  key: string; // of what can be shut: "p…", "t…", "c"
  y: number; // of those that are stuck from the top of what is in view, else from the top of all
  h: number;
  title: string;
  note: string;
  shut: boolean;
  track?: Track;
  lanes: number; // that are shown
  lane: number; // the first of them
  curve?: Curve;
  stuck?: "pin" | "peek";
}

/** A process, with all that can be shown of it. */
export interface Group {
  key: string;
  title: string;
  tracks: Track[];
}

export function trackTitle(t: Track): string {
  const title = t.thread.trim() || (/^\d*$/.test(t.tid) ? `${t.device ? "stream" : "thread"} ${t.tid}` : t.tid);
  return t.python ? `Python · ${title}` : title;
}

/** A process of the timeline of a job. */
function isRank(process: string): boolean {
  return /^rank \d+$/.test(process);
}

/** "GPU 0"; "python3 (1234)" of the host. */
function processTitle(t: Track): string {
  if (isRank(t.process) || /^GPU \d+$/.test(t.labels)) return isRank(t.process) ? t.process : t.labels;
  const parts = [t.labels === "CPU" ? "Host" : t.labels, t.process].filter((x) => x);
  return parts.length ? parts.join(" · ") + (t.process ? ` (${t.pid})` : "") : /^\d*$/.test(t.pid) ? `process ${t.pid}` : t.pid;
}

/** Ranges of the user's, shown on a stream, say so; threads of one name say their number. */
export function titleIn(g: Group, t: Track): string {
  const title = trackTitle(t), ranges = !t.device && g.tracks.some((x) => x.device && x.tid === t.tid);
  const twice = !ranges && t.tid && !title.includes(t.tid) && g.tracks.some((x) => x !== t && x.tid !== t.tid && trackTitle(x) === title);
  return ranges ? `${title}: ranges` : twice ? `${title} (${t.tid})` : title;
}

/** Some traces file a thread of the host under a GPU: it stands by itself. Ranges of the user's that are shown on a stream stay there. */
function processKey(info: Info, t: Track): string {
  const own = !t.device && /^GPU/.test(t.labels) && /^(Python · )?thread /.test(trackTitle(t)) && !info.tracks.some((x) => x.device && x.pid === t.pid && x.tid === t.tid);
  return own ? `${t.pid}-host` : t.pid;
}

/** Numbers in names are compared as numbers. */
const byNumber = new Intl.Collator("en", { numeric: true });

/** Processes with device work first, by number, in them device work first. */
function processes(info: Info): Group[] {
  const out = new Map<string, Group>();
  for (const t of info.tracks) {
    const key = processKey(info, t), p = out.get(key) ?? { key: "p" + key, title: key === t.pid ? processTitle(t) : `Host · ${t.process} (${t.pid})`, tracks: [] };
    out.set(key, p);
    p.tracks.push(t);
  }
  const list = [...out.values()], rank = (p: Group) => (p.tracks.some((t) => t.device) ? 0 : /^Host/.test(p.title) ? 1 : 2);
  const main = (t: Track) => Number(t.tid === t.pid);
  for (const p of list)
    p.tracks.sort((a, b) => Number(b.device) - Number(a.device) || main(b) - main(a) || byNumber.compare(a.tid, b.tid) || Number(a.python) - Number(b.python) || a.track - b.track);
  return list.sort((a, b) => rank(a) - rank(b) || byNumber.compare(a.title, b.title));
}

export class Layout {
  bands: Band[] = [];
  /** They stay in view, above all others. */
  stuck: Band[] = [];
  stuckHeight = 0;
  height = 0;
  /** Of the tracks, without what stands above them. */
  room = 1e9;
  readonly shut = new Set<string>();
  pins: string[] = [];
  /** Keys that were moved, in the order in which they shall stand. */
  order: string[] = [];
  /** Only tracks with this in their title, or that of their process. */
  filter = "";
  python = false;
  readonly firstLane: number[] = [];
  curves: Curve[] = [];
  private peeks: Pick<Slice, "track" | "lane">[] = [];
  private readonly groups: Group[];
  private readonly bandOf = new Map<number, Band>();
  private readonly stuckOf = new Map<number, Band>();

  constructor(private readonly info: Info) {
    this.groups = processes(info);
    let lane = 0;
    for (const t of info.tracks) {
      this.firstLane.push(lane);
      lane += t.lanes;
    }
  }

  get hasPython(): boolean {
    return this.info.tracks.some((t) => t.python);
  }

  /** All of them, in the order in which they stand. */
  get sorted(): Group[] {
    const place = new Map(this.order.map((key, i) => [key, i])), at = (key: string) => place.get(key) ?? -1;
    const inOrder = <T>(list: T[], key: (x: T) => string) => {
      const moved = list.filter((x) => at(key(x)) >= 0).sort((a, b) => at(key(a)) - at(key(b)));
      return moved.length ? list.map((x) => (at(key(x)) >= 0 ? moved.shift()! : x)) : list;
    };
    return inOrder(this.groups, (g) => g.key).map((g) => ({ ...g, tracks: inOrder(g.tracks, (t) => "t" + t.track) }));
  }

  /** Whether a track is one of those that are to be seen, be it that its process is shut. */
  shows(t: Track, group: Group): boolean {
    return (this.python || !t.python) && this.fits(`${group.title} ${titleIn(group, t)}`);
  }

  private fits(title: string): boolean {
    return title.toLowerCase().includes(this.filter.toLowerCase());
  }

  /** Numbers of the tracks that are left out. */
  get left(): Track[] {
    return this.groups.flatMap((g) => g.tracks.filter((t) => !this.shows(t, g) && !this.pins.includes("t" + t.track)));
  }

  private push(b: Omit<Band, "y">): Band {
    const band = { ...b, y: this.height };
    this.bands.push(band);
    this.height += b.h;
    return band;
  }

  private stick(b: Omit<Band, "y">): Band {
    const band = { ...b, y: this.stuckHeight };
    this.stuck.push(band);
    this.stuckHeight += b.h;
    return band;
  }

  build(): void {
    this.bands = [];
    this.stuck = [];
    this.bandOf.clear();
    this.stuckOf.clear();
    this.stuckHeight = 0;
    for (const key of this.pins) this.addPin(key);
    for (const e of this.peeks) this.addPeek(e);
    this.height = this.stuckHeight;
    this.addCurves("c", "Use of the GPUs and memory", this.shut.has("c"), false);
    this.addCurves(MORE, "Use of the GPUs: queues, clocks, memory of the host", !this.shut.has(MORE), true);
    for (const g of this.sorted) this.addGroup(g);
  }

  private addCurves(key: string, title: string, shut: boolean, minor: boolean): void {
    const curves = this.curves.filter((c) => !!c.minor === minor && !this.pins.includes(c.key) && this.fits(c.title));
    if (!curves.length) return;
    this.push({ kind: "process", key, h: HEAD, title, note: curves.length > 1 ? `${curves.length} curves` : "", shut, lanes: 0, lane: 0 });
    for (const c of shut ? [] : curves) this.push(this.curveBand(c));
  }

  private curveBand(c: Curve): Omit<Band, "y"> {
    return { kind: "curve", key: c.key, h: (c.minor ? CURVE_MINOR : CURVE) + GAP, title: c.title, note: "", shut: false, lanes: 0, lane: 0, curve: c };
  }

  private addPin(key: string): void {
    const curve = this.curves.find((c) => c.key === key), t = this.info.tracks[Number(key.slice(1))], g = t && this.groups.find((x) => x.tracks.includes(t));
    if (curve) this.stick({ ...this.curveBand(curve), stuck: "pin" });
    if (!g || key[0] !== "t") return;
    const band = this.trackBand(g, t), lanes = Math.min(band.lanes, PINNED);
    this.stuckOf.set(t.track, this.stick({ ...band, lanes, h: band.h - (band.lanes - lanes) * LANE, note: lanes < t.lanes ? `${lanes} of ${t.lanes} rows, ${g.title}` : g.title, stuck: "pin" }));
  }

  /** The row of an event and the one above it. */
  private addPeek(e: Pick<Slice, "track" | "lane">): void {
    const t = this.info.tracks[e.track], own = e.lane - this.firstLane[e.track], lane = Math.max(0, own - 1);
    if (this.stuckOf.has(e.track)) return;
    this.stuckOf.set(e.track, this.stick({ kind: "track", key: "", h: (own - lane + 1) * LANE + GAP, title: trackTitle(t), note: "the other end", shut: false, lanes: own - lane + 1, lane,
      track: t, stuck: "peek" }));
  }

  private trackBand(g: Group, t: Track): Omit<Band, "y"> {
    const key = "t" + t.track, closed = this.shut.has(key), lanes = closed ? 1 : t.lanes;
    return { kind: "track", key, h: lanes * LANE + GAP, title: titleIn(g, t), note: closed && t.lanes > 1 ? `1 of ${t.lanes} rows` : "", shut: closed, lanes, lane: 0,
      track: t };
  }

  private addGroup(g: Group): void {
    const tracks = g.tracks.filter((t) => this.shows(t, g) && !this.pins.includes("t" + t.track)), shut = this.shut.has(g.key);
    if (!tracks.length) return;
    const head = this.push({ kind: "process", key: g.key, h: HEAD, title: g.title, note: tracks.length > 1 ? `${tracks.length} tracks` : "", shut, lanes: 0, lane: 0 });
    for (const t of tracks) this.bandOf.set(t.track, shut ? head : this.push(this.trackBand(g, t)));
  }

  toggle(key: string): void {
    if (!this.shut.delete(key)) this.shut.add(key);
    this.build();
  }

  pin(key: string): void {
    this.pins = this.pins.includes(key) ? this.pins.filter((k) => k !== key) : [...this.pins, key];
    this.build();
  }

  /** Up (-1) or down (1) among those beside it. */
  move(key: string, by: number): void {
    const groups = this.sorted, list = key[0] === "p" ? groups.map((g) => g.key) : groups.map((g) => g.tracks.map((t) => "t" + t.track)).find((l) => l.includes(key)) ?? [];
    const at = list.indexOf(key), to = at + by;
    if (at < 0 || to < 0 || to >= list.length) return;
    [list[at], list[to]] = [list[to], list[at]];
    this.order = [...this.order.filter((k) => !list.includes(k)), ...list];
    this.build();
  }

  /** Shows these rows above all others: the other ends of arrows. */
  peek(ends: Pick<Slice, "track" | "lane">[]): void {
    this.peeks = ends;
    this.build();
  }

  /** Bands that show between two heights, of those that are not stuck. */
  between(top: number, bottom: number): Band[] {
    return this.bands.filter((b) => b.y < bottom && b.y + b.h > top);
  }

  /** What is at a height of what is in view. */
  at(y: number, scroll: number): Band | undefined {
    const stuck = y < this.stuckHeight;
    return (stuck ? this.stuck : this.bands).find((b) => y + (stuck ? 0 : scroll) >= b.y && y + (stuck ? 0 : scroll) < b.y + b.h);
  }

  private inBand(band: Band, e: Pick<Slice, "track" | "lane">): number {
    return band.y + (band.kind === "track" ? Math.max(0, Math.min(e.lane - this.firstLane[e.track] - band.lane, band.lanes - 1)) * LANE + GAP - 2 : 3);
  }

  /** Top of the row that an event stands on; of its process's when that is shut. Of two places the one that is in view. */
  yOf(e: Pick<Slice, "track" | "lane">, scroll = 0): number {
    const band = this.bandOf.get(e.track), stuck = this.stuckOf.get(e.track), y = band ? this.inBand(band, e) : 0;
    if (!stuck || (band && stuck.stuck === "peek" && this.inView(y, scroll))) return y;
    return scroll + this.inBand(stuck, e);
  }

  private inView(y: number, scroll: number): boolean {
    return y >= scroll + this.stuckHeight && y + LANE <= scroll + this.room;
  }

  /** Whether its row is in view. */
  sees(e: Pick<Slice, "track" | "lane">, scroll: number): boolean {
    const y = this.yOf(e, scroll);
    return (this.bandOf.has(e.track) && this.inView(y, scroll)) || this.stuckOf.has(e.track);
  }

  /** Opens what hides an event. */
  open(e: Pick<Slice, "track" | "lane">): void {
    const t = this.info.tracks[e.track], group = this.groups.find((g) => g.tracks.includes(t))!;
    if (t.python) this.python = true;
    if (!this.shows(t, group)) this.filter = "";
    this.shut.delete(group.key);
    if (e.lane > this.firstLane[e.track]) this.shut.delete("t" + e.track);
    this.build();
  }

  laneY(b: Band, lane: number): number {
    return b.y + GAP - 2 + lane * LANE;
  }

  /** Which of a track's rows is at this height of the band; -1 = none. */
  laneAt(b: Band, y: number): number {
    const lane = Math.floor((y - b.y - GAP + 2) / LANE);
    return lane >= 0 && lane < b.lanes ? lane + b.lane : -1;
  }
}
