// What the server says of a timeline. Times are ns since the first event.
import type { Args } from "../api";

/** Where its answers come from: one recording, or the ranks of a job. */
export interface Origin {
  path: string;
  args: Args;
  /** How many ranks stand on it; undefined: it is of one recording. */
  ranks?: number;
}

export interface Track {
  track: number;
  device: boolean;
  pid: string;
  tid: string;
  process: string;
  labels: string;
  thread: string;
  lanes: number;
  nested: number;
  slices: number;
  first: number;
  last: number;
}

export interface Step {
  name: string;
  number: number;
  start: number;
  end: number;
  counts: boolean;
}

export interface Info {
  first_ns: string;
  length: number;
  times: boolean;
  tile_pixels: number;
  zoom_max: number;
  slices: number;
  too_deep: number;
  tracks: Track[];
  steps: Step[];
}

export type Kind = "gpu" | "span";

/** One range of the host or piece of device work. `lane` counts over all tracks. */
export interface Slice {
  kind: Kind;
  row: number;
  lane: number;
  track: number;
  start: number;
  dur: number;
  name: string;
  category: string;
}

export interface Details {
  event: Slice;
  args: [string, string][];
  launch?: Record<string, number>;
  around: Slice[];
  op?: Slice;
  call?: Slice;
  forward?: Slice;
  backward?: Slice[];
  launched?: Slice[];
  launched_count?: number;
  launched_ns?: number;
  stack?: string;
  before?: Slice; // in its row
  after?: Slice;
}

export interface Found {
  events: Slice[];
  found: number;
  total_ns: number;
}

export interface Use {
  device: number | null;
  utilization: (number | null)[];
  sm_efficiency: (number | null)[];
}

export interface MemoryCurve {
  device: number;
  most: number; // allocated, of all points, not only those that are given
  time: number[];
  allocated: number[];
  reserved: (number | null)[];
}

export interface Sampled {
  device: number;
  sm_active?: (number | null)[];
  tensor_active?: (number | null)[];
  dram_read?: (number | null)[];
  dram_write?: (number | null)[];
}

export interface Counters {
  from: number;
  to: number;
  points: number;
  devices: Use[];
  sampled: Sampled[];
  memory: MemoryCurve[];
}

/** What a curve shows. */
export type CurveKind = "use" | "sm" | "dram" | "memory";

/** The zoom whose pixels (2^zoom ns) are at most those of the screen. */
export function zoomOf(info: Info, scale: number): number {
  return Math.max(0, Math.min(info.zoom_max, Math.floor(Math.log2(scale))));
}

/** What is in view: the time at the left border, ns a pixel. */
export interface Camera {
  from: number;
  scale: number;
}

/** A piece of time on some tracks (all: undefined). */
export interface Window {
  from: number;
  to: number;
  tracks?: number[];
}

/** "0,3-5" */
export function rangesOf(list: number[]): string {
  const sorted = [...list].sort((a, b) => a - b), out: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let k = i;
    while (k + 1 < sorted.length && sorted[k + 1] === sorted[k] + 1) k++;
    out.push(k > i ? `${sorted[i]}-${sorted[k]}` : String(sorted[i]));
    i = k + 1;
  }
  return out.join(",");
}

export function fromRanges(text: string): number[] {
  const out: number[] = [];
  for (const part of text.split(",")) {
    const [a, b] = part.split("-").map(Number);
    if (!Number.isInteger(a)) continue;
    for (let i = a; i <= (Number.isInteger(b) ? b : a); i++) out.push(i);
  }
  return out;
}
