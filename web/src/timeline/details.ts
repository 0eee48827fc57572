// The panel below: one event in full, or the totals of a window.
import { source, type Cell, type Report } from "../api";
import { add, button, clear, h } from "../dom";
import { sourceLine } from "../editor";
import { bytes, count, flops, percent, time } from "../format";
import { drawShort, frames } from "../parts";
import { showTable } from "../table";
import { tickText } from "./scene";
import { trackTitle } from "./layout";
import type { Details, Info, Kernel, Slice, Window } from "./model";
import { neighbours } from "./neighbours";

export interface Panel {
  info: Info;
  key: string; // of its table
  /** Saves the window as a trace. undefined: it cannot. */
  save?(): void;
  jump(e: Slice): void;
  find(text: string): void;
  close(): void;
  fold(): void;
  /** Brings both ends of its arrows into view. */
  both(d: Details): void;
}

/** Where the arrows of an event lead, or come from: to what launched it, or the first and last that it launched, and between forward and backward. */
export function endsOf(d: Details): Slice[] {
  const cause = d.event.kind === "gpu" ? (d.call ?? d.op) : undefined, launched = d.launched ?? [];
  return [cause, launched[0], launched.length > 1 ? launched[launched.length - 1] : undefined, d.forward, d.backward?.[0]].filter((e) => e !== undefined);
}

function closers(p: Panel): HTMLElement[] {
  return [button("Fold", p.fold, { title: "Fold the panel to its title, or open it" }), button("✕", p.close, { "aria-label": "Close", title: "Close (Escape)" })];
}

function link(p: Panel, e: Slice): HTMLElement {
  return h("button", { type: "button", class: "jump", onclick: () => p.jump(e), title: "Show it" }, h("span", {}, e.name), h("i", {}, time(e.dur)));
}

function links(p: Panel, title: string, list: Slice[] | undefined, note = ""): HTMLElement | null {
  if (!list?.length) return null;
  const shown = list.slice(0, 50);
  return h("div", { class: "links" }, h("h4", {}, title, note ? h("i", {}, " " + note) : null), ...shown.map((e) => link(p, e)),
    list.length > shown.length ? h("p", { class: "note" }, `and ${list.length - shown.length} more`) : null);
}

function facts(rows: [string, string | Node | null | undefined][]): HTMLElement {
  const t = h("dl", {});
  for (const [name, value] of rows) if (value !== null && value !== undefined && value !== "") add(t, h("dt", {}, name), h("dd", {}, value));
  return t;
}

function launchFacts(l: Record<string, number>): [string, string][] {
  const out: [string, string][] = [];
  const three = (name: string) => (l[`${name} x`] !== undefined ? `${l[`${name} x`]} × ${l[`${name} y`]} × ${l[`${name} z`]}` : "");
  for (const name of ["grid", "block"]) if (three(name)) out.push([name, three(name)]);
  for (const [name, v] of Object.entries(l)) if (!/^(grid|block) /.test(name)) out.push([name, /bytes|memory/.test(name) ? bytes(v) : String(v)]);
  return out;
}

/** The innermost frame of a stack that is of the program itself, as `costs` has it. */
function callerOf(stack: string | undefined): string | undefined {
  return stack?.split(";").find((f) => !/^<built-in|^torch\/|\/torch\/|^nn\.Module: |wrapper/.test(f));
}

function lineOf(stack: string | undefined): Node | string | undefined {
  const caller = callerOf(stack);
  return caller === undefined ? undefined : sourceLine(caller);
}

/** From the call that launched it to its begin: how long the call took, and how long it then waited behind other work. */
function launchDelay(d: Details): string {
  const { event: e, call } = d;
  if (!call || e.kind !== "gpu") return "";
  const waited = e.start - (call.start + call.dur);
  return `${time(e.start - call.start)} after its call began` + (waited > 0 ? `, ${time(waited)} after the call ended` : "");
}

/** Three digits, or all before the point. */
function rounded(v: number): string {
  return v >= 100 ? count(Math.round(v)) : v.toPrecision(3);
}

function percentOf(v: number | undefined, of: string): string {
  return v === undefined ? "" : ` (${percent(v)}${of})`;
}

/** What a kernel is, did and could have done; what is unknown is left out, but for the reason why its FLOPs are. */
export function kernelFacts(d: Details, k: Kernel): HTMLElement {
  const peak = k.peak ? ` of ${k.peak}${k.gpu ? `, ${k.gpu}` : ""}${k.peak_tflops_per_s ? `: ${k.peak_tflops_per_s.toPrecision(4)} TFLOP/s` : ""}` : "";
  const work = k.counted === false ? "counted at another kernel of its op" : k.flops !== undefined ? flops(k.flops) : k.why ? `unknown: ${k.why}` : "";
  const over = (k.peak_pct ?? 0) > 100 ? " The peak or the model cannot be right." : "";
  return facts([
    ["class", k.class],
    ["Tensor Cores", k.tensor_cores],
    ["op", k.op && `${k.op}${k.direction === "backward" ? ", backward" : ""}${k.model && k.model !== k.op ? ` (model of ${k.model})` : ""}`],
    ["module", k.module],
    ["line", lineOf(d.stack)],
    ["shapes", k.parameters || k.shapes],
    ["types", k.parameters ? "" : k.types],
    ["FLOPs", work],
    ["rate", k.tflops_per_s !== undefined ? `${rounded(k.tflops_per_s)} TFLOP/s${percentOf(k.peak_pct, peak)}${over}` : ""],
    ["memory", k.bytes !== undefined ? `${bytes(k.bytes)}, ${rounded(k.gb_per_s ?? 0)} GB/s${percentOf(k.bandwidth_pct, " of the bandwidth")}` : ""],
    ["occupancy", k.occupancy_pct !== undefined ? `${percent(k.occupancy_pct)} at most${k.limited_by && k.limited_by !== "none" ? `, limited by ${k.limited_by}` : ""}` : ""],
    ["achieved, estimated", k.achieved_occupancy_pct !== undefined ? `${percent(k.achieved_occupancy_pct)}${k.blocks_per_sm !== undefined ? `, ${k.blocks_per_sm.toPrecision(3)} blocks per SM` : ""}` : ""],
  ]);
}

function argument(text: string): string {
  return text.length > 2000 ? text.slice(0, 2000) + "…" : text;
}

/** Shows an event in `place`. Returns where more about a kernel goes. */
export function showDetails(place: HTMLElement, p: Panel, d: Details): HTMLElement {
  const more = h("div", { class: "kernel" }), e = d.event, t = p.info.tracks[e.track];
  clear(place);
  const near = neighbours(d, p.jump), args = d.args.filter(([k]) => k !== "Call stack" || !d.stack);
  const launched = d.launched_count ? `${count(d.launched_count)}, ${time(d.launched_ns ?? 0)} in all` : "";
  add(place,
    h("div", { class: "tools" }, h("h3", { title: e.name }, sourceLine(e.name)), h("span", { class: "space" }),
      endsOf(d).length ? button("Show both ends", () => p.both(d), { title: "Show it and what its arrows lead to" }) : null,
      button("Find all", () => p.find(e.name), { title: "Search for all events of this name" }), ...closers(p)),
    h("div", { class: "parts" },
      h("div", {},
        facts([["category", e.category], ["start", tickText(e.start, 1)], ["duration", time(e.dur)], ["end", tickText(e.start + e.dur, 1)],
          [e.kind === "gpu" ? "stream" : "thread", `${trackTitle(t)}, ${t.labels || t.process || "process " + t.pid}`]]),
        facts([["launched", launchDelay(d)]]),
        d.launch ? facts(launchFacts(d.launch)) : null),
      more,
      h("div", {}, links(p, "Launched by", d.call ? [d.call] : []), links(p, e.kind === "gpu" ? "Op" : "For the op", d.op ? [d.op] : []),
        links(p, "Launched", d.launched, launched), links(p, "Forward", d.forward ? [d.forward] : []), links(p, "Backward", d.backward),
        links(p, "Inside, innermost first", d.around)),
      near.length ? h("div", {}, ...near.slice(0, 2)) : null,
      args.length ? h("div", { class: "args" }, h("h4", {}, "Arguments"), facts(args.map(([k, v]) => [k, argument(v)]))) : null,
      d.stack ? h("div", { class: "stack" }, h("h4", {}, "Call stack"), frames(d.stack)) : null),
    near[2] ?? null);
  return more;
}

/** Shows the totals of a window in `place`. `short`: names of kernels. */
export function showTotals(place: HTMLElement, p: Panel, w: Window, r: Report, short: (name: Cell) => string): void {
  clear(place);
  const tracks = w.tracks ? `${w.tracks.length} of ${p.info.tracks.length} tracks` : "all tracks";
  add(place, h("div", { class: "tools" }, h("h3", {}, `${time(w.to - w.from)} from ${time(w.from)}, ${tracks}`), h("span", { class: "space" }),
    source.off || !p.save ? null : button("Save for Perfetto", p.save, { title: EXPORT_TITLE }), ...closers(p)));
  showTable(place, r, { title: "What is in the window", key: p.key, pageSize: 20, draw: { name: drawShort(short) }, choose: (cells) => p.find(String(cells[0])) });
}

export const EXPORT_TITLE =
  "Downloads Chrome trace JSON (packed) to open in ui.perfetto.dev: the chosen window, else what is in view. Host work that begins in it, with the device work that it launched";
