// The first page: where the steps' time went, how well the GPUs were used, what to do.
import { numberAt, textAt } from "../api";
import { COLORS, showChart } from "../chart";
import { add, h } from "../dom";
import { time } from "../format";
import * as place from "../place";
import { showTable } from "../table";
import { advise, report, type Context, type View } from "../view";

function findings(page: HTMLElement, table: Awaited<ReturnType<typeof advise>>): void {
  const list = h("section", { class: "findings" }, h("h3", {}, "What to do"));
  for (const row of table.rows) {
    const gain = numberAt(table, row, "gain_ns_per_step");
    add(list, h("details", { class: `finding ${textAt(table, row, "severity")}` },
      h("summary", {}, h("b", {}, textAt(table, row, "severity")), " ", textAt(table, row, "problem"), gain ? h("i", {}, ` up to ${time(gain)} a step`) : null),
      h("p", {}, textAt(table, row, "advice")), h("p", { class: "note" }, "Evidence: " + textAt(table, row, "evidence"))));
  }
  if (!table.rows.length) add(list, h("p", {}, "Nothing was found."));
  add(page, list);
}

async function steps(page: HTMLElement, c: Context): Promise<void> {
  const t = await report(c, "overview");
  const s = t.sections.find((x) => x.name === "steps") ?? t.sections[0];
  const mean = h("div", { class: "row" });
  add(page, mean);
  showTable(mean, t, { title: "Mean step" });
  if (s && s.rows.length) {
    const roles = s.columns.map((col, i) => ({ col, i })).filter((x) => x.col.unit === "ns" && !/total|dur|length|step/.test(x.col.id));
    showChart(mean, "Steps", {
      tooltip: { trigger: "axis", confine: true, valueFormatter: (v: any) => time(Number(v)) },
      legend: { type: "scroll" },
      grid: { left: 70, right: 10, top: 40, bottom: 30 },
      xAxis: { type: "category", data: s.rows.map((r) => String(r[0])) },
      yAxis: { type: "value", axisLabel: { formatter: (v: number) => time(v) } },
      series: roles.map((x, k) => ({ type: "bar", stack: "step", name: x.col.title, itemStyle: { color: COLORS[k % COLORS.length] }, data: s.rows.map((r) => r[x.i]) })),
    } as any);
  }
}

export const overview: View = {
  id: "overview",
  title: "Overview",
  group: "Run",
  async show(page, c) {
    await steps(page, c);
    findings(page, await advise(c));
    const devices = await report(c, "devices").catch(() => undefined);
    if (devices) showTable(page, devices, { title: "Devices" });
    add(page, h("p", {}, h("a", { href: place.linkTo("reports") }, "All reports")));
  },
};
