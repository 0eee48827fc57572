// Which kernels of the ranks are parts of one collective: asked for what is in view, once it rests for a moment.
import { get } from "../api";
import type { Origin, Slice } from "./model";

/** A collective: its parts from the rank that came first to the one that came last. */
export interface Tie {
  kind: string;
  accepted: boolean; // its waiting is known
  wait_ns: number;
  last: number;
  parts: Slice[];
}

interface Answer {
  found: number;
  ties: { kind: string; accepted: boolean; wait_ns: number; last: number; parts: [row: number, lane: number, track: number, start: number, dur: number][] }[];
}

const ARROWS_MAX = 1200, TIES_MAX = 200;

export class Ties {
  list: Tie[] = [];
  found = 0;
  private wanted = "";
  private timer = 0;
  private busy = false;

  constructor(private readonly origin: Origin, private readonly ranks: number, private readonly signal: AbortSignal, private readonly changed: () => void) {
    signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  want(from: number, to: number): void {
    const key = `${Math.floor(from)} ${Math.ceil(to)}`;
    if (key === this.wanted) return;
    this.wanted = key;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.fetch(), this.list.length ? 150 : 0);
  }

  /** Whether the answer to what is in view is there. */
  get idle(): boolean {
    return !this.busy && !this.timer;
  }

  private async fetch(): Promise<void> {
    if (this.busy) return;
    const key = this.wanted, [from, to] = key.split(" ").map(Number), limit = Math.max(1, Math.min(TIES_MAX, Math.floor(ARROWS_MAX / Math.max(1, this.ranks - 1))));
    this.busy = true;
    this.timer = 0;
    try {
      const a = await get<Answer>(`${this.origin.path}/ties`, { ...this.origin.args, from, to, limit }, this.signal);
      this.found = a.found;
      this.list = a.ties.map((t) => ({ ...t, parts: t.parts.map(([row, lane, track, start, dur]) => ({ kind: "gpu", row, lane, track, start, dur, name: "", category: "" })) }));
    } catch {
      // The tracks show what there is; arrows are an addition.
    }
    this.busy = false;
    if (this.signal.aborted) return;
    this.changed();
    if (key !== this.wanted) this.timer = window.setTimeout(() => this.fetch(), 60);
  }
}
