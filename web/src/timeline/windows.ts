// Parts of the timeline: those that the address names, that with device work; and one as a file.
import { file, type Args } from "../api";
import { save } from "../dom";
import { stepRange } from "../steps";
import type { Context } from "../view";
import type { Info, Window } from "./model";

/** "A..B" on the recording's clock; undefined: no part of the timeline. Such times may be more than a number can hold. */
export function lookedAt(info: Info, text: string): Window | undefined {
  const m = /^(-?\d+)\.\.(-?\d+)$/.exec(text);
  if (!m) return undefined;
  const [from, to] = [m[1], m[2]].map((t) => Number(BigInt(t) - BigInt(info.first_ns)));
  return to > from && to > 0 && from < info.length ? { from: Math.max(0, from), to: Math.min(to, info.length) } : undefined;
}

/** "3..5" as times of the steps with these numbers. */
export function stepsBetween(info: Info, text: string): Window | undefined {
  const [low, high] = stepRange(text), list = info.steps.filter((s) => s.number >= low && s.number <= high);
  return list.length ? { from: list[0].start, to: Math.max(...list.map((s) => s.end)) } : undefined;
}

/** From the first device work to the last; null where there is none, or where that is nearly all. */
export function deviceWork(info: Info): Window | null {
  const tracks = info.tracks.filter((t) => t.device && t.slices), from = Math.min(...tracks.map((t) => t.first)), to = Math.max(...tracks.map((t) => t.last));
  if (!tracks.length || to - from > info.length * 0.8) return null;
  const room = (to - from) * 0.02 + 1;
  return { from: from - room, to: to + room };
}

/** Saves a window, or all of it, as a trace. A refusal is said on the page, which stays. */
export async function saveTrace(c: Context, part: Args, say: (why: string) => void): Promise<void> {
  try {
    const trace = await file("/api/export/chrome", { input: c.input, ...part }, c.signal);
    save(`${c.input.replace(/[^\w.-]+/g, "_")}.trace.json.gz`, trace);
  } catch (e) {
    if (!c.signal.aborted) say(e instanceof Error ? e.message : String(e));
  }
}
