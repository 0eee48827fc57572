// Findings as cards that open: what is wrong, on what that rests, what to do, and where to look.
import type { Cell, Table } from "./api";
import { columnOf, numberAt, textAt } from "./api";
import { add, h } from "./dom";
import { note, time, words } from "./format";
import * as place from "./place";
import type { Context } from "./view";

/** To the report that shows the evidence, and to the moment where it is to be seen best. */
function where(c: Context, table: Table, row: Cell[]): (Node | string)[] {
  const report = textAt(table, row, "report"), seen = c.seen(report), [from, to] = ["from_ns", "to_ns"].map((id) => row[columnOf(table, id)]);
  if (from === null || from === undefined || to === null || to === undefined) return [h("a", { href: seen.href }, seen.title)];
  const moment = h("a", { href: place.linkTo("timeline", { look: `${from}..${to}` }) }, `Timeline, where it is longest: ${time(Number(BigInt(to as bigint) - BigInt(from as bigint)))}`);
  return report ? [h("a", { href: seen.href }, seen.title), ", ", moment] : [moment];
}

/** A note of the program: ids of detectors, and why they cannot look. */
const NOT_APPLICABLE = / not applicable: /;

function card(c: Context, table: Table, row: Cell[], open: boolean): HTMLElement {
  const gain = numberAt(table, row, "gain_ns_per_step"), severity = textAt(table, row, "severity"), detector = textAt(table, row, "detector");
  const each = /per step/.test(table.columns[columnOf(table, "gain_ns_per_step")]?.title ?? "") ? " a step" : ""; // none where no steps were found
  const line = (name: string, id: string) => (textAt(table, row, id) ? h("p", {}, h("b", {}, name + ": "), words(textAt(table, row, id))) : null);
  return h("details", { class: `finding ${severity}`, open, "data-detector": detector },
    h("summary", {}, h("b", {}, severity), " ", textAt(table, row, "problem"), gain ? h("i", {}, ` up to ${time(gain)}${each}`) : null),
    line("What to do", "advice"), line("Evidence", "evidence"), line(table.columns[columnOf(table, "part_of")]?.title ?? "", "part_of"), line("Wrong if", "disprove"), gain ? line("The gain is at most", "bound") : null,
    h("p", {}, h("b", {}, "Where to look: "), ...where(c, table, row)), h("p", { class: "note" }, "Detector: " + detector));
}

export function showFindings(page: HTMLElement, c: Context, table: Table, o: { title: string; open?: boolean; most?: number; brief?: boolean }): void {
  const rows = table.rows.slice(0, o.most ?? table.rows.length), left = table.rows.length - rows.length;
  const list = h("section", { class: "findings" }, h("h3", {}, o.title), ...rows.map((r) => card(c, table, r, !!o.open)));
  const idle = table.notes.filter((n) => NOT_APPLICABLE.test(n)), names = new Set(idle.flatMap((n) => n.split(NOT_APPLICABLE)[0].split(", "))).size;
  if (!table.rows.length) add(list, h("p", { class: "nothing" }, idle.length ? `Nothing was found by the detectors that are applicable; ${names} ${names === 1 ? "is" : "are"} not.` : "Nothing was found."));
  if (left > 0) add(list, h("p", {}, h("a", { href: place.linkTo("advice") }, `${left} more`)));
  const said = (n: string) => h("p", { class: "note" }, note(n));
  add(list, ...table.notes.filter((n) => !n.startsWith("Nothing found") && !(o.brief && idle.includes(n))).map(said));
  if (o.brief && idle.length) add(list, h("details", { class: "idle" }, h("summary", { class: "note" }, `${names} detector${names === 1 ? " is" : "s are"} not applicable`), ...idle.map(said)));
  add(page, list);
}
