// Queries over events and reports. They can only read.
import { source } from "../api";
import { add, button, clear, h, select } from "../dom";
import { part, sql } from "../parts";
import * as place from "../place";
import { showTable } from "../table";
import { chosen, type Context, type View } from "../view";

const EXAMPLES: [title: string, query: string][] = [
  ["Tables there are", "SELECT * FROM opscope_tables"],
  ["Longest kernels", "SELECT name, calls, total_ns, total_pct FROM kernels ORDER BY total_ns DESC LIMIT 20"],
  ["Kernels one by one, with their ops", "SELECT name, op, stream, start_ns, dur_ns FROM kernels_raw ORDER BY dur_ns DESC LIMIT 100"],
  ["Shapes that an op ran with", "SELECT name, input_dims, count(*) AS calls, sum(dur_ns) AS total_ns\nFROM ops_raw GROUP BY name, input_dims ORDER BY total_ns DESC LIMIT 50"],
  ["Time between ops of a thread", "SELECT after, before, gap_ns FROM (\n  SELECT name AS before, lag(name) OVER w AS after, start_ns - lag(start_ns + dur_ns) OVER w AS gap_ns\n  FROM ops_raw WHERE parent_op IS NULL WINDOW w AS (PARTITION BY pid, tid ORDER BY start_ns))\nORDER BY gap_ns DESC LIMIT 50"],
  ["Kernels of each step", "SELECT step, count(*) AS kernels, sum(dur_ns) AS total_ns FROM kernels_by_instance GROUP BY step"],
  ["Findings", "SELECT severity, problem, advice, gain_ns_per_step FROM findings"],
];

const LIMIT = 10000;

async function run(box: HTMLElement, c: Context, query: string): Promise<void> {
  const started = performance.now(), t = await sql(c, query, { limit: LIMIT }), ms = performance.now() - started;
  const cut = t.rows.length === LIMIT;
  showTable(box, t, { title: "Rows", key: "rows", whole: cut ? { path: "/api/sql", args: { ...chosen(c), query } } : undefined });
  add(box, h("p", { class: "note" }, `${cut ? `The first ${LIMIT} rows` : `${t.rows.length} rows`} in ${ms.toFixed(0)} ms.${cut ? " CSV has them all." : ""}`));
}

async function schema(box: HTMLElement, c: Context): Promise<void> {
  const t = await sql(c, "SELECT * FROM opscope_tables");
  showTable(box, t, { title: "Tables", key: "tables", pageSize: 10 });
}

export const sqlView: View = {
  id: "sql",
  title: "SQL",
  group: "More",
  async show(page, c) {
    if (source.off) {
      add(page, h("p", { class: "empty" }, `SQL: ${source.off} \`opscope sql\` can, too.`));
      return;
    }
    const text = h("textarea", { rows: 6, spellcheck: "false", "aria-label": "Query", class: "query" });
    const results = h("div", { class: "detail", "data-detail": "q" });
    let turn = 0;
    const go = async () => {
      const mine = ++turn, inner = h("div", {});
      place.note({ q: text.value });
      clear(results);
      add(results, inner);
      await part(inner, "", (box) => run(box, c, text.value));
      if (mine !== turn) inner.remove();
    };
    text.value = c.args.q ?? EXAMPLES[1][1];
    text.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
      e.preventDefault();
      void go();
    });
    const examples = select("Examples", [["", "choose one"], ...EXAMPLES.map(([t], i): [string, string] => [String(i), t])], "", (v) => {
      if (v === "") return;
      text.value = EXAMPLES[Number(v)][1];
      void go();
    });
    add(page, h("div", { class: "choices" }, examples, button("Run", () => void go(), { title: "Ctrl+Enter" }), h("span", { class: "note" }, "Ctrl+Enter runs it. Queries can only read.")), text, results);
    if (c.args.q) await go();
    const tables = h("details", {}, h("summary", {}, "Schema"));
    tables.addEventListener("toggle", () => tables.open && tables.children.length === 1 && void part(tables, "", (box) => schema(box, c)), { once: true });
    add(page, tables);
  },
};
