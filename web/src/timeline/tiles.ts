// Tiles: what is to be drawn, by zoom, place and track. Fetched for what is in view; until they come, coarser or finer ones stand in.
import { get } from "../api";
import { rangesOf, type Info, type Kind, type Origin } from "./model";

/** Numbers of an item, in this order. */
export const START = 0, DUR = 1, BUSY = 2, COUNT = 3, ROW = 4, NAME = 5, CATEGORY = 6, ITEM = 7;

export type Lanes = Float64Array[];

/** A piece of a track's time and the lanes that say what is in it. */
export interface Piece {
  lanes: Lanes;
  from: number;
  to: number;
  exact: boolean; // of the zoom asked for; an item that begins before `from` then was in the piece before
}

interface Tile {
  lanes: Lanes;
  size: number;
  used: number;
}

/** Items as an answer packs them: the start counts from the end of the item before, the row from that one's, and for `busy` there is what is missing to the duration. */
export function unpack(packed: number[]): Float64Array {
  const lane = new Float64Array(packed);
  let end = 0, row = 0;
  for (let i = 0; i < lane.length; i += ITEM) {
    lane[i + START] += end;
    lane[i + BUSY] = lane[i + DUR] - lane[i + BUSY];
    lane[i + ROW] += row;
    end = lane[i + START] + lane[i + DUR];
    row = lane[i + ROW];
  }
  return lane;
}

export interface Answer {
  tracks: { track: number; lanes: number[][] }[];
  names: Record<string, string>;
  roles: Record<Kind, Record<string, string>>;
  categories: string[];
}

const NUMBERS_MAX = 5e6; // 40 MB
const UNDER_WAY_MAX = 4;
const COARSER = 18, FINER = 3;
const NOTHING: Lanes = [];

export class Tiles {
  readonly names = new Map<number, string>();
  /** What a name is, on the host and on a device: the words of colors.ts. */
  readonly roles: Record<Kind, Map<number, string>> = { span: new Map(), gpu: new Map() };
  categories: string[] = [];
  error = "";
  private readonly kept = new Map<number, Tile>();
  private readonly underWay = new Set<number>();
  private readonly failed = new Set<number>();
  private requests = 0;
  private numbers = 0;
  private clock = 0;
  private wishes: { zoom: number; index: number; tracks: number[] }[] = [];

  constructor(private readonly origin: Origin, private readonly info: Info, private readonly signal: AbortSignal, private readonly changed: () => void) {}

  width(zoom: number): number {
    return this.info.tile_pixels * 2 ** zoom;
  }

  private key(zoom: number, index: number, track: number): number {
    // A trace has fewer than 2^(53 - 10 - zoom) tiles; what is not exact for absurdly long ones would only be fetched again.
    return (index * 64 + zoom) * this.info.tracks.length + track;
  }

  private lanesAt(zoom: number, index: number, track: number): Lanes | undefined {
    const k = this.info.tracks[track], width = this.width(zoom);
    if (k.first >= (index + 1) * width || k.last < index * width || index < 0) return NOTHING;
    const tile = this.kept.get(this.key(zoom, index, track));
    if (tile) tile.used = this.clock;
    return tile?.lanes;
  }

  /** Fetches what is missing of this; forgets what was wished before and is not under way. */
  want(zoom: number, from: number, to: number, tracks: number[]): void {
    const width = this.width(zoom), first = Math.max(0, Math.floor(from / width)), last = Math.min(Math.floor(to / width), Math.floor(this.info.length / width));
    this.clock++;
    this.wishes = [];
    for (let index = first; index <= last; index++) {
      const missing = tracks.filter((t) => {
        const key = this.key(zoom, index, t);
        return !this.lanesAt(zoom, index, t) && !this.underWay.has(key) && !this.failed.has(key);
      });
      if (missing.length) this.wishes.push({ zoom, index, tracks: missing });
    }
    const middle = (from + to) / 2 / width - 0.5;
    this.wishes.sort((a, b) => Math.abs(a.index - middle) - Math.abs(b.index - middle));
    this.next();
  }

  /** Whether nothing that is in view is missing. */
  get idle(): boolean {
    return !this.requests && !this.wishes.length;
  }

  private next(): void {
    while (this.requests < UNDER_WAY_MAX && this.wishes.length) {
      const w = this.wishes.shift()!;
      this.fetch(w.zoom, w.index, w.tracks);
    }
  }

  private async fetch(zoom: number, index: number, tracks: number[]): Promise<void> {
    const keys = tracks.map((t) => this.key(zoom, index, t));
    for (const k of keys) this.underWay.add(k);
    this.requests++;
    try {
      const all = tracks.length === this.info.tracks.length;
      this.take(zoom, index, await get<Answer>(`${this.origin.path}/tile`, { ...this.origin.args, zoom, index, tracks: all ? undefined : rangesOf(tracks) }, this.signal));
    } catch (e) {
      for (const k of keys) this.failed.add(k);
      if (!this.signal.aborted) this.error = e instanceof Error ? e.message : String(e);
    }
    for (const k of keys) this.underWay.delete(k);
    this.requests--;
    if (this.signal.aborted) return;
    this.next();
    this.changed();
  }

  private take(zoom: number, index: number, a: Answer): void {
    for (const [id, name] of Object.entries(a.names)) this.names.set(Number(id), name);
    for (const kind of ["span", "gpu"] as const) for (const [id, role] of Object.entries(a.roles[kind])) this.roles[kind].set(Number(id), role);
    this.categories = a.categories;
    for (const t of a.tracks) {
      const lanes = t.lanes.map(unpack), size = lanes.reduce((n, l) => n + l.length, 0) + 16;
      this.kept.set(this.key(zoom, index, t.track), { lanes, size, used: this.clock });
      this.numbers += size;
    }
    if (this.numbers > NUMBERS_MAX) this.forget();
  }

  /** Lets the half go that was used least. */
  private forget(): void {
    const old = [...this.kept].sort((a, b) => a[1].used - b[1].used);
    for (const [key, tile] of old) {
      if (this.numbers < NUMBERS_MAX / 2 || tile.used === this.clock) break;
      this.kept.delete(key);
      this.numbers -= tile.size;
    }
  }

  /** What there is of a track between two times, at this zoom or the next best. */
  pieces(zoom: number, from: number, to: number, track: number): Piece[] {
    const width = this.width(zoom), out: Piece[] = [];
    const k = this.info.tracks[track], first = Math.max(0, Math.floor(Math.max(from, k.first) / width)), last = Math.floor(Math.min(to, k.last) / width);
    for (let index = first; index <= last; index++) {
      const lanes = this.lanesAt(zoom, index, track);
      if (lanes) out.push({ lanes, from: index * width, to: (index + 1) * width, exact: true });
      else if (!this.coarser(zoom, index, track, out)) this.finer(zoom, index, track, FINER, out);
    }
    return out;
  }

  private coarser(zoom: number, index: number, track: number, out: Piece[]): boolean {
    const width = this.width(zoom);
    for (let up = 1; up <= COARSER && zoom + up <= this.info.zoom_max; up++) {
      const lanes = this.lanesAt(zoom + up, Math.floor(index / 2 ** up), track), last = out[out.length - 1];
      if (!lanes) continue;
      if (last && last.lanes === lanes) last.to = (index + 1) * width;
      else out.push({ lanes, from: index * width, to: (index + 1) * width, exact: false });
      return true;
    }
    return false;
  }

  private finer(zoom: number, index: number, track: number, levels: number, out: Piece[]): void {
    if (!levels || !zoom) return;
    for (const child of [2 * index, 2 * index + 1]) {
      const lanes = this.lanesAt(zoom - 1, child, track), width = this.width(zoom - 1);
      if (lanes) out.push({ lanes, from: child * width, to: (child + 1) * width, exact: false });
      else this.finer(zoom - 1, child, track, levels - 1, out);
    }
  }
}

/** The first item that ends behind `ns`; ends of a lane never decrease. */
export function firstBehind(items: Float64Array, ns: number): number {
  let lo = 0, hi = items.length / ITEM;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (items[mid * ITEM + START] + items[mid * ITEM + DUR] > ns) hi = mid;
    else lo = mid + 1;
  }
  return lo * ITEM;
}
