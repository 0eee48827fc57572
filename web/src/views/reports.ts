// Any report, as it is.
import type { ReportInfo, Section } from "../api";
import { get } from "../api";
import { add, h, select } from "../dom";
import * as place from "../place";
import { showTable } from "../table";
import { report, type Context, type View } from "../view";

export const reports: View = {
  id: "reports",
  title: "All reports",
  group: "More",
  async show(page: HTMLElement, c: Context) {
    const list = (await get<{ reports: ReportInfo[] }>("/api/reports", {}, c.signal)).reports;
    const info = list.find((r) => r.name === c.args.report) ?? list[0];
    const by = info.group_by.length ? [select("By", info.group_by, c.args.by ?? info.group_by[0], (v) => place.go({ view: "reports", args: { ...c.args, by: v } }))] : [];
    add(page, h("div", { class: "choices" },
      select("Report", list.map((r): [string, string] => [r.name, `${r.name}: ${r.title}`]), info.name, (v) => place.go({ view: "reports", args: { ...c.args, report: v, by: "" } })), ...by),
      h("p", { class: "help" }, info.help));
    const r = await report(c, info.name, { group_by: c.args.by });
    const args = { input: c.input, group_by: c.args.by, steps: c.args.steps };
    showTable(page, r, { title: info.title, csv: { path: `/api/report/${info.name}`, args, name: info.name } });
    for (const s of r.sections as Section[])
      showTable(page, s, { title: s.title, csv: { path: `/api/report/${info.name}`, args: { ...args, section: s.name }, name: s.name } });
  },
};
