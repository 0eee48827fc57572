// Steps as stacked bars; which of them, and by which key op, is chosen here and can be kept in the file.
import type { Cell, Input, State } from "../api";
import { columnOf, get, numberAt, post, source, textAt } from "../api";
import { add, button, h } from "../dom";
import { known, percent, time } from "../format";
import { figure, part, sectionOf, showReport } from "../parts";
import * as place from "../place";
import { showSteps, stepRange, toStep } from "../steps";
import { report, type Context, type View } from "../view";

function stepsText(from: string, to: string): string | undefined {
  if (!from && !to) return undefined;
  return from === to ? from : `${from}..${to}`;
}

/** What is chosen is shown by all views; the server writes it into the file when asked to. */
function form(c: Context, input: Input | undefined, readOnly: boolean, keys: string[]): HTMLElement {
  const [first, last] = stepRange(c.args.steps || "all"), show = (v: number) => (Number.isFinite(v) ? String(v) : "");
  const start = h("input", { type: "number", size: 6, name: "start", value: show(first) }), stop = h("input", { type: "number", size: 6, name: "stop", value: show(last) });
  const key = h("input", { type: "text", name: "key_op", size: 24, placeholder: "found by itself", value: c.args.key_op ?? "", list: "key-ops" });
  const said = h("p", { class: "note", role: "status" });
  const chosen = () => ({ steps: stepsText(start.value, stop.value), key_op: key.value.trim() || undefined });
  const go = () => {
    const { steps, key_op } = chosen(), at = place.read().args;
    place.go({ view: "iterations", args: { ...at, steps: steps ?? "", key_op: key_op ?? "", aggregation: "" } });
  };
  const again = async () => {
    said.textContent = "Making all reports of these steps …";
    try {
      const made = await post<{ aggregation: number }>("/api/aggregate", { input: c.input }, chosen());
      said.textContent = "";
      place.go({ view: "iterations", args: { input: c.input, aggregation: String(made.aggregation) } });
    } catch (e) {
      said.textContent = e instanceof Error ? e.message : String(e);
    }
  };
  const writes = !readOnly && input?.aggregates;
  if (source.off) return h("p", { class: "note" }, `Other steps, another key op and Re-aggregate: ${source.off}`);
  return h("form", { class: "choices", onsubmit: (e: Event) => (e.preventDefault(), go()) },
    h("label", { class: "choice" }, h("span", {}, "Start"), start), h("label", { class: "choice" }, h("span", {}, "Stop"), stop),
    h("label", { class: "choice" }, h("span", {}, "Key op"), key), h("datalist", { id: "key-ops" }, ...keys.map((k) => h("option", { value: k }))),
    h("button", { type: "submit" }, "Show"), button("All steps", () => place.go({ view: "iterations", args: { input: c.input } })),
    writes ? button("Re-aggregate", again, { title: "Keeps all reports of these steps in the file, as another aggregation" }) : null, said);
}

function aggregations(c: Context, input: Input | undefined): HTMLElement | null {
  const list = input?.aggregations ?? [];
  if (!list.length) return null;
  const link = (id: string, text: string) => h("li", { "aria-current": (c.args.aggregation ?? "") === id ? "true" : undefined },
    h("a", { href: place.hashOf({ view: "iterations", args: { input: c.input, aggregation: id } }) }, text));
  return h("section", { class: "aggregations" }, h("h3", {}, "Aggregations in the file"), h("ul", {}, link("", "the whole recording"),
    ...list.map((a) => link(String(a.id), `${a.id}: ${a.name || "unnamed"}${a.key_op ? `, key op ${a.key_op}` : ""}${a.steps ? `, steps ${a.steps}` : ""}`))));
}

export const iterations: View = {
  id: "iterations",
  title: "Iterations",
  group: "Steps",
  shows: { steps: {} },
  async show(page, c) {
    const t = await report({ ...c, args: { ...c.args, steps: "" } }, "steps");
    const state = await get<State>("/api/state", {}, c.signal), input = state.inputs.find((x) => x.input === c.input), keys = sectionOf(t, "key_ops");
    add(page, form(c, input, state.read_only, keys ? keys.rows.map((r) => textAt(keys, r, "name")) : []));
    const list = aggregations(c, input);
    if (list) add(page, list);
    const [from, to] = stepRange(c.args.steps || "all"), use = (step: Cell) => Number(step) >= from && Number(step) <= to;
    const at = columnOf(t, "step"), rows = t.rows.filter((r) => use(r[at])), lengths = rows.map((r) => numberAt(t, r, "total_ns")).filter((v) => v !== undefined);
    const meanOf = (list: number[]) => (list.length ? list.reduce((sum, v) => sum + v, 0) / list.length : undefined), mean = meanOf(lengths);
    const deviation = mean === undefined ? undefined : Math.sqrt(lengths.reduce((sum, v) => sum + (v - mean) ** 2, 0) / Math.max(1, lengths.length - 1)); // of a sample, as in all reports
    add(page, h("div", { class: "figures" }, figure("Steps found", String(t.rows.length)), figure("Steps chosen", String(rows.length)), figure("Mean", known(mean, time)),
      figure("Standard deviation", known(deviation, (v) => `${time(v)} (${percent(mean ? (100 * v) / mean : 0)})`))));
    showSteps(page, "Steps", t, { height: 320, use: c.args.steps ? use : undefined, choose: toStep(t) });
    add(page, h("p", { class: "note" }, `A bar opens the timeline at its step.${source.off ? "" : " A row chooses its step for all pages."}`));
    const choose = source.off ? undefined : (cells: Cell[]) => place.go({ view: "iterations", args: { ...place.read().args, steps: String(cells[at]) } });
    showReport(page, "steps", t, { title: "Steps", choose, hide: t.columns.map((x) => x.id).filter((id) => /_pct$|^start_ns$|^source$/.test(id)) });
    if (keys) await part(page, "Key ops", async (box) => showReport(box, "steps", keys, {
      title: "Ops that repeat",
      choose: source.off ? undefined : (cells) => place.go({ view: "iterations", args: { ...place.read().args, key_op: String(cells[0]), steps: "" } }),
    }));
  },
};
