// All findings, with what they rest on.
import { choice } from "../parts";
import { add, h } from "../dom";
import { showFindings } from "../findings";
import { showTable } from "../table";
import { advise, type View } from "../view";

const ORDER = ["high", "medium", "low", "info"];

export const advice: View = {
  id: "advice",
  title: "Advice",
  group: "Run",
  async show(page, c) {
    const t = await advise(c), least = c.args.least ?? "info";
    const rows = t.rows.filter((r) => ORDER.indexOf(String(r[0])) <= ORDER.indexOf(least));
    add(page, h("div", { class: "choices" }, choice(c, "Severity", "least", [["info", "all"], ["low", "low and above"], ["medium", "medium and above"], ["high", "high"]])));
    showFindings(page, c, { ...t, rows }, { title: "Findings", open: true });
    showTable(page, { ...t, rows, notes: [] }, { title: "As a table", key: "advice", hide: ["evidence", "advice", "disprove", "bound", "from_ns", "to_ns"] });
  },
};
