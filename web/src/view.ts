// Views. Adding one: a file web/src/views/NAME.ts that exports `const NAME: View`, and its line in views/index.ts.
import type { Args, Lack, Progress, Report } from "./api";
import { columnOf, get, textAt } from "./api";
import { h } from "./dom";
import * as place from "./place";

export interface View {
  id: string; // in the address
  title: string;
  group: "Run" | "Kernels and ops" | "Steps" | "More";
  /** Reports that it shows, and by which arguments. Findings whose evidence is in one of them lead here. */
  shows?: Record<string, Record<string, string>>;
  /** It is about all inputs of the run: also where the chosen one cannot be read by itself. */
  ofRun?: boolean;
  /** It is about all that is served: no input is chosen. */
  ofAll?: boolean;
  /** It is about work of a device. */
  ofDevice?: boolean;
  /** What it cannot do without, of what the server knows that an input lacks. */
  needs?: Lack;
  /** Fills `page`. What it waits for must heed `c.signal`; it may be called again with another place. */
  show(page: HTMLElement, c: Context): Promise<void>;
}

/** Which view shows most of an input, by its format; of others the first one does. */
export const OPENS: Record<string, string> = { "memory-snapshot": "memory", "flight-recorder": "job" };

/** What a view knows of where it is. */
export interface Context {
  input: string;
  args: Record<string, string>; // what stands in the address
  signal: AbortSignal; // aborted when another view is shown
  progress: Progress;
  /** Where a report is seen: a view of its own, or that of all reports; "" = the timeline. */
  seen(report: string): { title: string; href: string };
}

/** A recording by its run, worker and span, as the start page has it. */
export const inputName = (i: { run: string; worker: string; span: string }) => (i.run ? i.run + "/" : "") + i.worker + (i.span === "default" ? "" : `/${i.span}`);

/** What requests about the chosen input, steps and key op have in common. */
export function chosen(c: Context): Args {
  return { input: c.input, ...Object.fromEntries(place.KEPT.map((name) => [name, c.args[name]])) };
}

const asked = new WeakMap<Report, { name: string; args: Args }>();

export async function report(c: Context, name: string, args: Args = {}): Promise<Report> {
  const r = await get<Report>(`/api/report/${name}`, { ...chosen(c), ...args }, c.signal, c.progress);
  asked.set(r, { name, args });
  return r;
}

/** Over what the times of a page are summed up. */
export async function summedOver(c: Context): Promise<string> {
  const t = await report(c, "steps").catch(() => undefined), whole = t ? columnOf(t, "whole") : -1, n = t ? t.rows.filter((r) => (whole < 0 || r[whole]) && textAt(t, r, "source") !== "none").length : 0;
  return c.args.steps === "all" || !n ? "the whole recording" : n === 1 ? "one step" : `${c.args.steps ? `the ${n}` : n === 2 ? "both" : `all ${n}`} steps together`;
}

/** The same as a line below figures and charts. */
export async function sumsNote(c: Context): Promise<HTMLElement> {
  return h("p", { class: "note", "data-sums": "" }, `Times are of ${await summedOver(c)}.`);
}

/** The same report with sums per step. */
export function perStep(c: Context, r: Report): Promise<Report> {
  const { name, args } = asked.get(r) ?? { name: r.report, args: {} };
  return report(c, name, { ...args, per: "step" });
}

export function advise(c: Context): Promise<Report> {
  return get<Report>("/api/advise", chosen(c), c.signal, c.progress);
}
