// The timelines of two inputs, A above B. Linked, both show the same length of time, and one moves as the other does, so that a step of A
// stays above the step of B that it began with. Which steps, how far apart and whether linked stands in the address: pair, a.from, b.from, linked.
import { ApiError, columnOf, get, numberAt, type Report } from "../api";
import { add, button, h } from "../dom";
import * as place from "../place";
import { stepRange } from "../steps";
import type { Camera, Info, Window } from "../timeline/model";
import { Timeline } from "../timeline/timeline";
import "../timeline/timeline.css";
import type { Context } from "../view";

export interface Side {
  input: string;
  steps?: string; // that are chosen
  compared?: number; // how many are
}

/** A step, or what stands for one. */
interface Piece extends Window {
  name: string;
}

type Both<T> = [a: T, b: T];

/** What of the address is about these inputs and steps, and no others. */
export const DROPPED = ["pair", ...["a", "b"].flatMap((side) => ["from", "to", "ev", "win", "tracks", "shut", "hit"].map((name) => `${side}.${name}`))];

/** The steps that the comparison is about: those at the end, since warm-up at the beginning is left out. */
async function stepsOf(c: Context, side: Side, info: Info): Promise<Piece[]> {
  const [low, high] = stepRange(side.steps ?? "all");
  let steps = info.steps.filter((s) => s.counts);
  if (c.args.key_op) {
    const t = await get<Report>("/api/report/steps", { input: side.input, key_op: c.args.key_op, steps: "all" }, c.signal);
    const whole = columnOf(t, "whole"), begin = columnOf(t, "start_ns"), first = BigInt(info.first_ns);
    steps = t.rows.filter((r) => whole < 0 || r[whole]).map((r) => {
      const start = Number(BigInt(r[begin] as number | bigint) - first);
      return { name: "", number: numberAt(t, r, "step") ?? 0, start, end: start + (numberAt(t, r, "total_ns") ?? 0), counts: true };
    });
  }
  return steps.filter((s) => s.number >= low && s.number <= high).slice(-(side.compared ?? 0)).map((s) => ({ from: s.start, to: s.end, name: `step ${s.number}` }));
}

function deviceWork(info: Info): Piece | undefined {
  const tracks = info.tracks.filter((t) => t.device && t.slices);
  return tracks.length ? { from: Math.min(...tracks.map((t) => t.first)), to: Math.max(...tracks.map((t) => t.last)), name: "first device work" } : undefined;
}

/** What stands over what. */
function pairsOf(infos: Both<Info>, [a, b]: Both<Piece[]>): Both<Piece>[] {
  if (a.length && b.length) return a.slice(0, b.length).map((piece, i) => [piece, b[i]]);
  const [x, y] = infos.map(deviceWork), whole = (i: Info) => ({ from: 0, to: i.length, name: "begin" });
  return [x && y ? [x, y] : [whole(infos[0]), whole(infos[1])]];
}

/** With a little before and behind it. */
function around({ from, to }: Window, length = to - from): Window {
  return { from: from - length * 0.02, to: from + length * 1.02 };
}

class Link {
  private offset = 0; // from a time of A to the time of B that stands below it
  private at: number;
  private linked: boolean;
  private readonly which = button("", () => this.align(this.at), { title: "Show both in full, one above the other" });
  private readonly back = button("‹", () => this.go(-1), { title: "Previous step of both", "aria-label": "Previous step" });
  private readonly on = button("›", () => this.go(1), { title: "Next step of both", "aria-label": "Next step" });
  readonly tools: HTMLElement[];

  constructor(c: Context, private readonly timelines: Both<Timeline>, private readonly infos: Both<Info>, private readonly pairs: Both<Piece>[]) {
    const box = h("input", { type: "checkbox", checked: c.args.linked !== "0", onchange: () => this.link(box.checked) }), [a, b] = ["a.from", "b.from"].map((name) => Number(c.args[name]));
    this.linked = box.checked;
    this.at = Math.max(0, Math.min(pairs.length - 1, Number(c.args.pair) || 0));
    this.tools = [h("label", { class: "choice", title: "Zoom and move both together, at the same scale" }, box, "Linked"), h("span", { class: "choice" }, h("span", {}, "Aligned at"), this.back, this.which, this.on)];
    this.join(c.args["a.from"] && c.args["b.from"] ? b - a : this.distance);
    this.say();
  }

  start(): Promise<unknown> {
    const started = this.timelines.map((t, side) => t.start(this.windowOf(side)));
    this.moved(0, this.timelines[0].camera);
    return Promise.all(started);
  }

  /** The user has moved one. */
  moved(side: number, c: Camera): void {
    if (this.linked) this.timelines[1 - side].camera = { scale: c.scale, from: c.from + (side ? -this.offset : this.offset) };
  }

  /** Between the starts of the steps. */
  private get distance(): number {
    const [a, b] = this.pairs[this.at];
    return b.from - a.from;
  }

  /** Of two that are linked the longer one counts. */
  private windowOf(side: number): Window {
    const pair = this.pairs[this.at], lengths = pair.map((p) => p.to - p.from);
    return around(pair[side], this.linked ? Math.max(...lengths) : lengths[side]);
  }

  private align(pair: number): void {
    this.at = pair;
    place.note({ pair: pair ? String(pair) : "" });
    this.say();
    this.join(this.distance);
    this.timelines.forEach((t, side) => {
      const w = this.windowOf(side);
      if (!this.linked || !side) t.show(w.from, w.to);
    });
  }

  /** Where a part of a step fills the view, the same part of the next one does then. */
  private go(by: number): void {
    const a = this.timelines[0], seen = a.seen, full = this.windowOf(0);
    this.align(this.at + by);
    const moved = this.windowOf(0).from - full.from;
    if (this.linked && seen.from > full.from && seen.to < full.to) a.show(seen.from + moved, seen.to + moved);
  }

  /** They are linked as they stand. */
  private link(linked: boolean): void {
    const [a, b] = this.timelines.map((t) => t.camera);
    this.linked = linked;
    place.note({ linked: linked ? "" : "0" });
    this.join(b.from - a.from);
    this.moved(0, a);
  }

  private join(offset: number): void {
    this.offset = offset;
    this.timelines.forEach((t, side) => {
      const from = side ? offset : -offset;
      if (this.linked) t.reachTo(from, from + this.infos[1 - side].length);
      else t.reachTo(0, 0);
    });
  }

  private say(): void {
    const [a, b] = this.pairs[this.at], n = this.pairs.length;
    this.which.textContent = (a.name === b.name ? `${a.name} of both` : `${a.name} of A, ${b.name} of B`) + (n > 1 ? ` (${this.at + 1} of ${n})` : "");
    this.back.disabled = this.at === 0;
    this.on.disabled = this.at === n - 1;
  }
}

async function read(c: Context, side: Side): Promise<{ info: Info; steps: Piece[] } | ApiError> {
  try {
    const info = await get<Info>("/api/timeline", { input: side.input }, c.signal, c.progress);
    return { info, steps: await stepsOf(c, side, info) };
  } catch (e) {
    if (e instanceof ApiError) return e;
    throw e;
  }
}

/** Returns what makes the events of a name stand out in each of them. */
export async function showTimelines(box: HTMLElement, c: Context, sides: Both<Side>): Promise<(names: Both<string>) => void> {
  const answers = await Promise.all(sides.map((side) => read(c, side))), timelines: Timeline[] = [], heading = h("div", { class: "tools" }, h("h3", {}, "Timelines"));
  let link: Link | undefined;
  if (c.signal.aborted) return () => {};
  add(box, heading);
  answers.forEach((answer, side) => {
    const name = "AB"[side], { input } = sides[side];
    if (answer instanceof ApiError) {
      add(box, h("p", { class: answer.status === 422 ? "empty" : "error" }, `${name}: ${answer.message}`));
      return;
    }
    const title = h("h3", { title: input }, `${name}: `, h("a", { href: place.hashOf({ view: "timeline", args: { input } }) }, input));
    timelines.push(new Timeline(box, { ...c, input }, answer.info, { beside: { title, prefix: `${name.toLowerCase()}.`, onView: (camera) => link?.moved(side, camera) } }));
  });
  const [a, b] = answers;
  if (a instanceof ApiError || b instanceof ApiError) {
    for (const x of [a, b]) if (!(x instanceof ApiError)) await timelines[0].start(x.steps.length ? around(x.steps[0]) : undefined);
  } else {
    link = new Link(c, timelines as Both<Timeline>, [a.info, b.info], pairsOf([a.info, b.info], [a.steps, b.steps]));
    add(heading, ...link.tools);
    await link.start();
  }
  return (names) => {
    timelines.forEach((t, side) => t.mark(names[side]));
    box.scrollIntoView({ block: "nearest" });
  };
}
