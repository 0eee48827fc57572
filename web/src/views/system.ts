// Where it was recorded, what is in the recording, and what else is served.
import type { Cell, Column, State, Table } from "../api";
import { get, source } from "../api";
import { add, h } from "../dom";
import * as place from "../place";
import { part, sectionOf, showReport } from "../parts";
import { showTable } from "../table";
import { problemText } from "../problems";
import { report, type View } from "../view";

function table(names: [id: string, title: string, type: Column["type"], help: string][], rows: Cell[][]): Table {
  return { columns: names.map(([id, title, type, help]) => ({ id, title, type, help, unit: type === "integer" ? "count" : "" })), rows, notes: [] };
}

const FACT: [string, string, Column["type"], string][] = [["name", "What", "string", "the fact"], ["value", "Value", "string", "what the input says"]];

/** Titles that stand alone here, where the report's are parts of a sentence. */
const FIGURES: Record<string, string> = { kernel_busy_pct: "Kernel busy", tc_pct: "Tensor Core share of eligible ops", tc_unknown_pct: "Eligible, use unknown" };

export const system: View = {
  id: "system",
  title: "System",
  group: "More",
  async show(page, c) {
    if (source.off) {
      const lacks = await source.lacks(c.input), { steps } = await get<State>("/api/state", {}, c.signal);
      const off = `It holds every page of the viewer for ${steps ? `steps ${steps} alone, with the timeline of the whole recording` : "all steps"}. Other steps or key ops, new aggregations, SQL and parts of the timeline as a trace need \`opscope serve\` with the recording.`;
      add(page, h("section", {}, h("h3", {}, "This exported report"), h("p", {}, off), lacks.length ? h("p", {}, "Left out of it:") : null, h("ul", {}, ...lacks.map((t) => h("li", {}, t)))));
    }
    await part(page, "System", async (box) => {
      const s = await report(c, "summary");
      for (const name of ["system", "figures", "steps"]) {
        const part = sectionOf(s, name);
        for (const column of part?.columns ?? []) column.title = FIGURES[column.id] ?? column.title;
        if (part) showReport(box, "summary", part, { title: part.title, hide: ["id"] });
      }
    });
    await part(page, "Environment", async (box) => {
      const env = sectionOf(await report(c, "overview"), "environment");
      if (env) showReport(box, "overview", env, { title: env.title });
    });
    const state = await get<State>("/api/state", {}, c.signal), i = state.inputs.find((x) => x.input === c.input);
    const facts: [string, Cell | undefined][] = [["File", i?.path], ["Format", i?.format], ["Events", i?.events], ["CPU ranges", i?.spans], ["Device operations", i?.gpu_ops], ["Problems met while reading", i?.problems], ["Viewer", `opscope ${state.opscope}`]];
    showTable(page, table(FACT, facts.filter(([, v]) => v !== undefined).map(([n, v]) => [n, String(v)])), { title: "Recording", key: "recording" });
    if (i?.met?.length)
      showTable(page, table([["level", "Level", "string", "note: harmless; repaired: wrong but used; lost: could not be used"], ["problem", "Problem", "string", "what it was; where several are alike, the first"]], i.met.map((p) => [p.level, problemText(p)])), { title: "Problems met while reading", key: "problems" });
    const rows = state.inputs.map((x) => [x.run, x.worker, x.span, x.absent ? "gone" : x.state, x.error ?? "", x.path, x.input]);
    showTable(page, table([["run", "Run", "string", "directory"], ["worker", "Worker", "string", "process that wrote it"], ["span", "Span", "string", "which of its recordings"], ["state", "State", "string", "found, queued, loading, ready, failed or gone"],
      ["error", "Reason", "string", "why it cannot be read"], ["path", "File", "string", "where it is"], ["input", "Input", "string", "by which it is asked for"]], rows),
    { title: "What is served", key: "inputs", hide: ["input"], choose: (cells) => place.go({ view: "overview", args: { input: String(cells[6]) } }) });
  },
};
