// The timeline of an exported report: answers of /api/timeline/... from all events of a recording or, of a long one, from what was to be drawn
// of it at one zoom. As src/analysis/timeline/timeline_levels.c and src/serve/timeline_*.c answer.
import { ApiError, type Args, type Cell, type Report } from "../api";
import { count, time } from "../format";
import { fromRanges, type Details, type Found, type GraphEdge, type Info, type Kind, type Slice } from "../timeline/model";

/** What a text is as the name of a range, and of device work. */
type Roles = Record<Kind, Record<string, string>>;

interface Rows {
  start: number[];
  dur: number[];
  name: number[];
  category: number[];
  kind: number[];
  args: number[];
  op: number[];
}

/** Of /api/timeline/events. Unpacked, columns hold the values themselves; -1 = none. */
export interface Events {
  lanes: { track: number; rows: number[] }[];
  span: Rows & { parent: number[]; stack: number[] };
  gpu: Rows & { call: number[]; launch: number[] };
  arg_first: number[];
  arg_name: number[];
  arg_value: number[];
  launches: Record<string, number>[];
  stack_up: number[];
  stack_frame: string[];
  backward: number[];
  forward: number[];
  /** Edges of the op graph by `to`; from -1: not in the recording. */
  graph?: { to: number[]; from: number[]; input: number[]; output: number[]; passed_on: number[]; shape: string[] };
  categories: string[];
  roles: Roles;
  span_kinds: string[];
  gpu_kinds: string[];
  texts: string[];
}

/** Of /api/timeline/whole. */
export interface Whole {
  zoom: number;
  lanes: { track: number; start: number[]; dur: number[]; idle: number[]; count: number[]; row: number[]; longest: number[]; name: number[]; category: number[] }[];
  categories: string[];
  roles: Roles;
  texts: string[];
}

/** What may be drawn in a lane, in order: slices, or items of slices. */
interface Lane {
  track: number;
  start: Float64Array;
  end: Float64Array; // drawn: ends never decrease
  busy: Float64Array; // of a single slice its whole duration, drawn or not
  count: Uint32Array;
  longest: Float64Array; // duration of the slice that `row`, `name` and `category` are of
  row: Uint32Array;
  name: Uint32Array;
  category: Uint32Array;
}

/** Totals of a name. */
interface Sum {
  kind: Kind;
  name: string;
  word: string; // what they are
  shares: boolean; // stands inside or beside others, rather than describe them
  n: number;
  total: number;
  self: number;
}

/** As span_nests. */
const NESTING = ["op", "user", "python", "call", "marker"];
const AROUND = 200, LAUNCHED = 200, GRAPH_MAX = 48, GRAPH_LEVELS = 2, GRAPH_EDGES_OWN = 200, GRAPH_EDGES = 400;

/** Differences back to values. */
function summed(list: number[]): number[] {
  let sum = 0;
  return list.map((d) => (sum += d));
}

function empty(track: number, n: number): Lane {
  return { track, start: new Float64Array(n), end: new Float64Array(n), busy: new Float64Array(n), count: new Uint32Array(n), longest: new Float64Array(n), row: new Uint32Array(n),
    name: new Uint32Array(n), category: new Uint32Array(n) };
}

function laneOfWhole(k: Whole["lanes"][number]): Lane {
  const n = k.start.length, l = empty(k.track, n), start = summed(k.start), row = summed(k.row);
  for (let i = 0; i < n; i++) {
    l.start[i] = start[i];
    l.end[i] = start[i] + k.dur[i];
    l.busy[i] = k.dur[i] - k.idle[i];
  }
  l.count.set(k.count);
  l.longest.set(k.longest);
  l.row.set(row);
  l.name.set(k.name);
  l.category.set(k.category);
  return l;
}

function laneOfRows(track: number, rows: number[], v: Rows): Lane {
  const l = empty(track, rows.length);
  rows.forEach((r, i) => {
    const end = v.start[r] + v.dur[r], next = i + 1 < rows.length ? v.start[rows[i + 1]] : Infinity;
    l.start[i] = v.start[r];
    l.end[i] = Math.min(end, next);
    l.busy[i] = v.dur[r];
    l.longest[i] = l.end[i] - l.start[i];
    l.count[i] = 1;
    l.row[i] = r;
    l.name[i] = v.name[r];
    l.category[i] = v.category[r];
  });
  return l;
}

/** Whether item i is drawn by itself at pixels of that many ns. */
function alone(l: Lane, i: number, pixel: number): boolean {
  return l.count[i] === 1 && l.end[i] - l.start[i] >= pixel;
}

function busyDrawn(l: Lane, i: number): number {
  return Math.min(l.busy[i], l.end[i] - l.start[i]);
}

/** What is to be drawn of a lane in [from, to): seven numbers an item, as `unpack` of timeline/tiles.ts takes them. */
function itemsOf(l: Lane, from: number, to: number, zoom: number): number[] {
  const pixel = 2 ** zoom, out: number[] = [], n = l.start.length, at = (i: number) => Math.floor(l.start[i] / pixel);
  let i = firstFrom(l, from), before = 0, row = 0;
  if (i < n && !alone(l, i, pixel)) while (i > 0 && !alone(l, i - 1, pixel) && at(i - 1) === at(i)) i--;
  while (i < n && l.start[i] < to) {
    const first = i++;
    let best = first, busy = busyDrawn(l, first), slices = l.count[first];
    if (!alone(l, first, pixel))
      for (; i < n && !alone(l, i, pixel) && at(i) === at(first); i++) {
        if (l.longest[i] > l.longest[best]) best = i;
        busy += busyDrawn(l, i);
        slices += l.count[i];
      }
    const dur = l.end[i - 1] - l.start[first];
    out.push(l.start[first] - before, dur, dur - (slices > 1 ? busy : l.busy[first]), slices, l.row[best] - row, l.name[best], l.category[best]);
    before = l.end[i - 1];
    row = l.row[best];
  }
  return out;
}

/** The first that ends behind `ns`, or begins there or later. */
function firstFrom(l: Lane, ns: number): number {
  let lo = 0, hi = l.start.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (l.end[mid] > ns || l.start[mid] >= ns) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

const lower = (s: string) => s.replace(/[A-Z]/g, (c) => c.toLowerCase());

export class StaticTimeline {
  private readonly lanes: Lane[];
  private readonly texts: string[];
  private readonly categories: string[];
  private readonly events?: Events;
  private readonly whole?: Whole;
  private readonly selection?: Report;
  private readonly laneOf: Record<Kind, Uint32Array> = { span: new Uint32Array(), gpu: new Uint32Array() };
  private readonly placeOf: Record<Kind, Uint32Array> = { span: new Uint32Array(), gpu: new Uint32Array() };

  constructor(private readonly info: Info, from: { events: Events; selection: Report } | { whole: Whole }) {
    if ("whole" in from) {
      this.whole = from.whole;
      this.lanes = from.whole.lanes.map(laneOfWhole);
      ({ texts: this.texts, categories: this.categories } = from.whole);
      return;
    }
    const e = (this.events = unpacked(from.events));
    this.selection = from.selection;
    ({ texts: this.texts, categories: this.categories } = e);
    this.lanes = e.lanes.map((l) => laneOfRows(l.track, l.rows, this.rowsOf(l.track)));
    for (const kind of ["span", "gpu"] as const) {
      this.laneOf[kind] = new Uint32Array(e[kind].start.length);
      this.placeOf[kind] = new Uint32Array(e[kind].start.length);
    }
    this.lanes.forEach((l, k) => l.row.forEach((r, i) => {
      const kind = this.kindOf(l.track);
      this.laneOf[kind][r] = k;
      this.placeOf[kind][r] = i;
    }));
  }

  private kindOf(track: number): Kind {
    return this.info.tracks[track].device ? "gpu" : "span";
  }

  private rowsOf(track: number): Rows {
    return this.events![this.kindOf(track)];
  }

  lacks(): string[] {
    const curves = "Its curves have at most 4,096 values over the whole recording.";
    if (!this.whole) return [`This exported report holds all ${count(this.info.slices)} events. ${curves}`];
    return [`This exported report holds the timeline of these ${count(this.info.slices)} events in pieces: what is shorter than ${time(2 ** this.whole.zoom)} stands merged with its neighbours, with their number and the time that they were busy, also when zoomed in. Search, details and totals of a window need \`opscope serve\` with the recording. ${curves}`];
  }

  answer(what: string, args: Args): unknown {
    if (what === "tile") return this.tile(Number(args.zoom), Number(args.index), args.tracks as string | undefined);
    if (!this.events) throw new ApiError(422, "This exported report holds the events of this long recording merged, not one by one. `opscope serve` with the recording has them.");
    if (what === "event") return this.details(args.kind as Kind, Number(args.row));
    if (what === "find") return this.find(String(args.text), Number(args.limit ?? 500));
    if (what === "select") return this.select(Number(args.from ?? 0), Number(args.to ?? this.info.length), args.tracks as string | undefined);
    return undefined;
  }

  private tile(zoom: number, index: number, tracks?: string): object {
    const width = this.info.tile_pixels * 2 ** zoom, from = index * width, to = from + width, names: Record<string, string> = {};
    const all = (this.events ?? this.whole!).roles, roles: Roles = { span: {}, gpu: {} };
    const chosen = tracks ? fromRanges(tracks) : this.info.tracks.map((t) => t.track), out = chosen.map((track) => ({ track, lanes: [] as number[][] })), place = new Map(out.map((t) => [t.track, t.lanes]));
    for (const l of this.lanes) {
      const lanes = place.get(l.track), t = this.info.tracks[l.track];
      if (!lanes || t.first >= to || t.last < from) continue;
      const items = itemsOf(l, from, to, zoom);
      const kind = this.kindOf(l.track);
      for (let i = 5; i < items.length; i += 7) {
        names[items[i]] = this.texts[items[i]];
        roles[kind][items[i]] = all[kind][items[i]];
      }
      lanes.push(items);
    }
    return { zoom, index, tracks: out, names, roles, categories: this.categories };
  }

  private slice(kind: Kind, row: number): Slice {
    const v = this.events![kind], lane = this.laneOf[kind][row];
    return { kind, row, lane, track: this.lanes[lane].track, start: v.start[row], dur: v.dur[row], name: this.texts[v.name[row]], category: this.categories[v.category[row]] };
  }

  private argsOf(set: number): [string, string][] {
    const e = this.events!, out: [string, string][] = [], end = e.arg_first[set + 1] ?? e.arg_name.length;
    for (let i = e.arg_first[set]; i < end; i++) out.push([this.texts[e.arg_name[i]], this.texts[e.arg_value[i]]]);
    return out;
  }

  private around(span: number): Slice[] {
    const parent = this.events!.span.parent, out: Slice[] = [];
    for (let i = span < 0 ? -1 : parent[span]; i >= 0 && out.length < AROUND; i = parent[i]) out.push(this.slice("span", i));
    return out;
  }

  private stackOf(span: number): string | undefined {
    const e = this.events!, frames: string[] = [];
    for (let s = span < 0 ? 0 : e.span.stack[span]; s > 0; s = e.stack_up[s - 1]) frames.push(e.stack_frame[s - 1]);
    return frames.length ? frames.join(";") : undefined;
  }

  private beside(kind: Kind, row: number): Pick<Details, "before" | "after"> {
    const rows = this.lanes[this.laneOf[kind][row]].row, at = this.placeOf[kind][row], of = (i: number) => (i >= 0 && i < rows.length ? this.slice(kind, rows[i]) : undefined);
    return { before: of(at - 1), after: of(at + 1) };
  }

  private spanDetails(row: number): Partial<Details> {
    const { span, gpu, backward, forward } = this.events!, launched: Slice[] = [], of = (r: number | undefined) => (r === undefined || r < 0 ? undefined : this.slice("span", r));
    let found = 0, total = 0;
    for (let i = 0; i < gpu.start.length; i++) {
      if (gpu.call[i] !== row && gpu.op[i] !== row) continue;
      total += gpu.dur[i];
      if (found++ < LAUNCHED) launched.push(this.slice("gpu", i));
    }
    const later = backward.filter((_, i) => forward[i] === row).slice(0, LAUNCHED), at = backward.indexOf(row);
    return { around: this.around(row), op: of(span.op[row]), launched, launched_count: found, launched_ns: total, forward: at < 0 ? undefined : of(forward[at]),
      backward: later.length ? later.map((r) => this.slice("span", r)) : undefined, graph: this.graphOf(row), stack: this.stackOf(row) };
  }

  /** As neighbours_of in src/serve/api/timeline_event.c. */
  private graphOf(row: number): Details["graph"] {
    const g = this.events!.graph, rows = [row], edges: GraphEdge[] = [];
    let inputs = 0, left_out = 0;
    if (!g?.to.length) return undefined;
    const known = (r: number) => r >= 0 && !rows.includes(r) && rows.length < GRAPH_MAX && rows.push(r);
    for (const down of [false, true])
      for (let level = 0, near = [row]; level < GRAPH_LEVELS; level++) {
        const before = rows.length;
        for (const r of near) g.to.forEach((t, i) => (down ? g.from[i] === r && !g.passed_on[i] && known(t) : t === r && known(g.from[i])));
        near = rows.slice(before);
      }
    for (const [k, r] of rows.entries())
      g.to.forEach((t, i) => {
        const from = g.from[i] < 0 ? -1 : rows.indexOf(g.from[i]);
        if (t !== r || (from < 0 && k)) return;
        if (k === 0) inputs++;
        if (edges.length < (k ? GRAPH_EDGES : GRAPH_EDGES_OWN)) edges.push([from, k, g.input[i], g.output[i], g.shape[i]]);
        else left_out++;
      });
    const users = g.from.filter((r, i) => r === row && !g.passed_on[i]).length;
    return edges.some((e) => e[1] === 0) || users ? { nodes: rows.map((r) => this.slice("span", r)), edges, inputs, users, left_out } : undefined;
  }

  private gpuDetails(row: number): Partial<Details> {
    const { gpu, launches } = this.events!, of = (r: number) => (r < 0 ? undefined : this.slice("span", r));
    return { launch: gpu.launch[row] < 0 ? undefined : launches[gpu.launch[row]], call: of(gpu.call[row]), op: of(gpu.op[row]), around: this.around(gpu.op[row]), stack: this.stackOf(gpu.op[row]) };
  }

  private details(kind: Kind, row: number): Details {
    const v = this.events![kind];
    if (!(row >= 0 && row < v.start.length)) throw new ApiError(400, `row=${row}: a whole number from 0 to ${v.start.length - 1} was expected`);
    const d = { event: this.slice(kind, row), args: this.argsOf(v.args[row]), ...(kind === "gpu" ? this.gpuDetails(row) : this.spanDetails(row)), ...this.beside(kind, row) };
    return Object.fromEntries(Object.entries(d).filter(([, x]) => x !== undefined)) as unknown as Details;
  }

  private find(text: string, limit: number): Found {
    const wanted = lower(text), fits = this.texts.map((t) => lower(t).includes(wanted)), hits: [start: number, order: number, kind: Kind, row: number][] = [];
    let total = 0;
    (["span", "gpu"] as const).forEach((kind, order) => {
      const v = this.events![kind];
      for (let i = 0; i < v.start.length; i++) {
        if (!fits[v.name[i]]) continue;
        total += v.dur[i];
        hits.push([v.start[i], order, kind, i]);
      }
    });
    hits.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[3] - b[3]);
    return { events: hits.slice(0, limit).map(([, , kind, row]) => this.slice(kind, row)), found: hits.length, total_ns: total };
  }

  /** Totals by name and kind, those with most time of their own first. */
  private select(from: number, to: number, tracks?: string): Report {
    const sums = new Map<string, Sum>(), chosen = new Set(tracks ? fromRanges(tracks) : this.info.tracks.map((t) => t.track)), all = { span: 0, gpu: 0 };
    for (const l of this.lanes) if (chosen.has(l.track)) for (const r of l.row) this.addRow(sums, chosen, this.kindOf(l.track), r, from, to);
    for (const s of sums.values()) if (s.shares) all[s.kind] += s.self;
    const sorted = [...sums.values()].sort((a, b) => sideOf(a) - sideOf(b) || b.self - a.self || b.total - a.total);
    const rows: Cell[][] = sorted.map((s) => [s.name, s.word, s.n, s.total, s.self, s.shares && all[s.kind] > 0 ? (100 * s.self) / all[s.kind] : null, Math.trunc(s.total / s.n)]);
    return { ...this.selection!, rows, notes: [] };
  }

  private sumOf(sums: Map<string, Sum>, kind: Kind, r: number): Sum {
    const e = this.events!, v = e[kind], word = (kind === "gpu" ? e.gpu_kinds : e.span_kinds)[v.kind[r]], key = `${kind} ${v.kind[r]} ${v.name[r]}`;
    let s = sums.get(key);
    if (!s) sums.set(key, (s = { kind, name: this.texts[v.name[r]], word, shares: kind === "gpu" || NESTING.includes(word), n: 0, total: 0, self: 0 }));
    return s;
  }

  private addRow(sums: Map<string, Sum>, chosen: Set<number>, kind: Kind, r: number, from: number, to: number): void {
    const v = this.events![kind], start = v.start[r], end = start + v.dur[r];
    if (start >= to || (start < from && end <= from)) return;
    const s = this.sumOf(sums, kind, r), [a, b] = [Math.max(start, from), Math.min(end, to)];
    s.n++;
    s.total += b - a;
    s.self += b - a;
    if (kind === "gpu" || !s.shares) return;
    const { parent, start: begins, dur } = this.events!.span;
    let up = parent[r];
    while (up >= 0 && !chosen.has(this.lanes[this.laneOf.span[up]].track)) up = parent[up];
    const within = up < 0 ? 0 : Math.min(b, begins[up] + dur[up]) - Math.max(a, begins[up]);
    if (within > 0) this.sumOf(sums, "span", up).self -= within;
  }
}

/** Device work, then ranges of the host, then what only describes. */
function sideOf(s: Sum): number {
  return s.kind === "gpu" ? 0 : s.shares ? 1 : 2;
}

function unpacked(e: Events): Events {
  const { span, gpu } = e;
  return { ...e, lanes: e.lanes.map((l) => ({ track: l.track, rows: summed(l.rows) })), arg_first: summed(e.arg_first), stack_up: summed(e.stack_up), backward: summed(e.backward),
    forward: summed(e.forward), graph: e.graph && { ...e.graph, to: summed(e.graph.to), from: summed(e.graph.from) }, span: { ...span, start: summed(span.start), args: summed(span.args), parent: summed(span.parent), op: summed(span.op), stack: summed(span.stack) },
    gpu: { ...gpu, start: summed(gpu.start), args: summed(gpu.args), call: summed(gpu.call), op: summed(gpu.op) } };
}
