// Which framework ops took the time; a row's call stacks.
import { columnOf, numberAt, textAt } from "../api";
import { pie, showChart } from "../chart";
import { add, clear, h } from "../dom";
import { time } from "../format";
import { choice, detail, frames, ownFrame, part, showReport, stackLine, topChoice, topOf } from "../parts";
import { report, type Context, type View } from "../view";

const PIES: [id: string, title: string][] = [
  ["device_self_ns", "Device self time"],
  ["device_total_ns", "Device total time"],
  ["host_self_ns", "Host self time"],
  ["host_total_ns", "Host total time"],
];

async function pies(box: HTMLElement, c: Context, by: string): Promise<void> {
  const lines = by === "line", t = await report(c, "operators", lines ? { group_by: by } : {}), row = h("div", { class: "row" });
  add(box, row);
  for (const [id, title] of PIES)
    if (columnOf(t, id) >= 0)
      showChart(row, lines ? `${title} by line` : title, pie(t.rows.map((r) => ({ name: textAt(t, r, lines ? "python_line" : "name"), value: numberAt(t, r, id) ?? 0 })), time, topOf(c)), 230);
}

/** The stacks of one op, those with the most time first, and the frames of the one that is chosen. */
async function stacks(box: HTMLElement, c: Context, name: string, only?: string): Promise<void> {
  const t = await report(c, "operators", { group_by: "stack", filter: name });
  const nameAt = columnOf(t, "name"), at = columnOf(t, "call_stack");
  t.rows = t.rows.filter((r) => r[nameAt] === name && (only === undefined || r[at] === only));
  const list = h("div", { class: "stack" });
  const show = (stack: unknown) => {
    clear(list);
    add(list, h("h3", {}, "Call stack, innermost first"), typeof stack === "string" && stack ? frames(stack) : h("p", { class: "empty" }, "No call stack was recorded here: profile(with_stack=True) does."));
  };
  showReport(box, "operators", t, {
    title: `Call stacks of ${name}`,
    key: "stacks",
    hide: ["name", "tc_eligible", "tc_total_pct"],
    draw: { call_stack: stackLine },
    choose: (cells) => show(cells[at]),
    pageSize: 10,
  });
  add(box, list);
  show(t.rows[0]?.[at]);
}

/** Which ops ran at a line of Python. */
async function atLine(box: HTMLElement, c: Context, line: string): Promise<void> {
  const t = await report(c, "operators", { group_by: "stack", filter: line }), at = columnOf(t, "call_stack");
  t.rows = t.rows.filter((r) => typeof r[at] === "string" && ownFrame(r[at]) === line);
  showReport(box, "operators", t, { title: `Ops at ${line}`, key: "stacks", draw: { call_stack: stackLine } });
}

export const operators: View = {
  id: "operators",
  title: "Operators",
  group: "Kernels and ops",
  shows: { operators: {} },
  async show(page, c) {
    const by = c.args.by ?? "name";
    add(page, h("div", { class: "choices" }, topChoice(c), choice(c, "Group by", "by", [["name", "name"], ["shape", "name and input shape"], ["stack", "name and call stack"], ["line", "line of Python"]], ["row"])));
    await part(page, "Time by operator", (box) => pies(box, c, by));
    await part(page, "Operators", async (box) => {
      const t = await report(c, "operators", { group_by: by }), nameAt = columnOf(t, by === "line" ? "python_line" : "name"), stackAt = columnOf(t, "call_stack");
      const place = h("div", {});
      add(box, place);
      const open = await detail(box, c, "row", async (inner, value) => {
        const r = t.rows[Number(value)], name = String(r?.[nameAt] ?? "");
        if (!r) return;
        if (by === "line") await atLine(inner, c, name);
        else await stacks(inner, c, name, by === "stack" ? (r[stackAt] as string) : undefined);
      }, by === "line" ? "Choose a line to see its ops." : "Choose a row to see its call stacks.");
      showReport(place, "operators", t, {
        title: "Operators",
        steps: c,
        draw: { call_stack: stackLine },
        choose: (_cells, row) => open(String(row)),
        chosen: (_cells, row) => c.args.row === String(row),
      });
    });
  },
};
