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
  python: boolean; // its frames, which stand by themselves
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

/** An input of the op `to`: numbers of nodes, -1 = what made it is not in the recording; which input, which output (-1 = not stated), and its shape. */
export type GraphEdge = [from: number, to: number, input: number, output: number, shape: string];

/** The op graph around an op, which is node 0. `inputs`: its own, also those without an edge here; `users`: inputs of other ops that come from it, also of those that are not among the nodes; `left_out`: edges between the nodes beyond those here. */
export interface Graph {
  nodes: Slice[];
  edges: GraphEdge[];
  inputs: number;
  users: number;
  left_out: number;
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
  graph?: Graph;
  stack?: string;
  before?: Slice; // in its row
  after?: Slice;
}

/** Of /api/timeline/kernel; what is unknown is not there. */
export interface Kernel {
  class: string;
  tensor_cores?: string;
  op?: string;
  module?: string;
  model?: string;
  direction?: string;
  shapes?: string;
  types?: string;
  parameters?: string;
  why?: string;
  counted?: boolean; // false: the op's FLOPs and bytes are counted at another kernel of it
  flops?: number;
  bytes?: number;
  tflops_per_s?: number;
  peak_pct?: number;
  peak_tflops_per_s?: number;
  peak?: string;
  gb_per_s?: number;
  bandwidth_pct?: number;
  gpu?: string;
  achieved_occupancy_pct?: number;
  blocks_per_sm?: number;
  occupancy_pct?: number;
  blocks_fit_per_sm?: number;
  limited_by?: string;
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
  /** Of kernels of collectives, and of those that no other kernel hid. undefined: the window has none. */
  communication?: number[];
  exposed_communication?: number[];
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
  sampled?: Sampled[];
  memory: MemoryCurve[];
  queues?: { device: number; longest: number[] }[];
  samples?: { device: number; title: string; unit: string; time: number[]; value: number[] }[];
}

/** What a step's time went to, in the order in which it is drawn from below. */
export interface StepRoles {
  start: number;
  length: number;
  number: number;
  parts: { title: string; ns: number }[];
}

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
