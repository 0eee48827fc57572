// Views. Adding one: a file web/src/views/NAME.ts that exports `const NAME: View`, and its line in views/index.ts.
import type { Args, Progress, Report } from "./api";
import { get } from "./api";

export interface View {
  id: string; // in the address
  title: string;
  group: "Run" | "Kernels and ops" | "Steps" | "More";
  /** Fills `page`. What it waits for must heed `c.signal`; it may be called again with another place. */
  show(page: HTMLElement, c: Context): Promise<void>;
}

/** What a view knows of where it is. */
export interface Context {
  input: string;
  args: Record<string, string>; // what stands in the address
  signal: AbortSignal; // aborted when another view is shown
  progress: Progress;
}

/** A report about the chosen input, steps and key op. */
export function report(c: Context, name: string, args: Args = {}): Promise<Report> {
  const { steps, key_op, aggregation } = c.args;
  return get<Report>(`/api/report/${name}`, { input: c.input, steps, key_op, aggregation, ...args }, c.signal, c.progress);
}

export function advise(c: Context): Promise<Report> {
  return get<Report>("/api/advise", { input: c.input }, c.signal, c.progress);
}
