// Any report, as it is.
import type { ReportInfo } from "../api";
import { get } from "../api";
import { add, h, select } from "../dom";
import { showReport } from "../parts";
import * as place from "../place";
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
      select("Report", list.map((r): [string, string] => [r.name, `${r.name}: ${r.title}`]), info.name, (v) => (location.hash = place.linkTo("reports", { report: v }))), ...by),
      h("p", { class: "help" }, info.help));
    const r = await report(c, info.name, { group_by: c.args.by });
    showReport(page, info.name, r, { title: info.title, steps: info.sums && !info.per_event.includes(c.args.by ?? "") ? c : undefined });
    for (const s of r.sections) showReport(page, info.name, s, { title: s.title });
  },
};
