// The devices, and how well each was used.
import { columnOf, numberAt, textAt } from "../api";
import { COLORS, showChart } from "../chart";
import { deviceFacts, SHARES, showDevices } from "../devices";
import { percent, time, tip } from "../format";
import { part, showReport } from "../parts";
import { report, type View } from "../view";

/** What the time of a device is the sum of: kinds of the report, in their colours. */
const KINDS: [kind: string, title: string, color: string][] = [
  ["computation", "computation", COLORS[2]], ["exposed_communication", "exposed communication", COLORS[5]], ["exposed_copy", "exposed copy", COLORS[1]], ["idle", "idle", COLORS[7]],
];

export const gpus: View = {
  id: "gpus",
  title: "GPUs",
  group: "Run",
  ofDevice: true,
  shows: { devices: {} },
  async show(page, c) {
    const t = await report(c, "devices");
    showDevices(page, t, await deviceFacts(c));
    const used = t.rows.filter((r) => numberAt(t, r, "busy_ns"));
    if (used.length > 1)
      showChart(page, "Use of the GPUs", {
        tooltip: { trigger: "axis", confine: true, axisPointer: { type: "shadow" }, valueFormatter: tip(percent) },
        legend: { top: 0 },
        grid: { left: 50, right: 10, top: 36, bottom: 30 },
        xAxis: { type: "category", data: used.map((r) => `GPU ${r[columnOf(t, "device")]}`) },
        yAxis: { type: "value", min: 0, max: 100, axisLabel: { formatter: "{value} %" } },
        series: SHARES.map(([id], k) => ({ type: "bar", name: t.columns[columnOf(t, id)]?.title, itemStyle: { color: COLORS[k] }, data: used.map((r) => numberAt(t, r, id)) })),
      } as any);
    showReport(page, "devices", t, { title: "Devices", hide: ["memory_bytes", "compute_capability", "sm_count", "copies", "sets", "kernel_ns", "kernel_busy_ns"] });
    await part(page, "Busy and idle", async (box) => {
      const g = await report(c, "gpu-timeline", { group_by: "device" }), groups = [...new Set(g.rows.map((r) => textAt(g, r, "group")))];
      const of = (group: string, kind: string) => g.rows.find((r) => textAt(g, r, "group") === group && textAt(g, r, "kind") === kind);
      showChart(box, "Busy and idle time", {
        tooltip: { trigger: "axis", confine: true, axisPointer: { type: "shadow" }, valueFormatter: tip(time) },
        legend: { top: 0 },
        grid: { left: 90, right: 40, top: 36, bottom: 30 },
        xAxis: { type: "value", axisLabel: { formatter: (v: number) => time(v).replace(/\.0+ /, " "), hideOverlap: true } },
        yAxis: { type: "category", data: groups },
        series: KINDS.map(([kind, name, color]) => ({
          type: "bar", stack: "time", barMaxWidth: 36, name, itemStyle: { color },
          data: groups.map((group) => numberAt(g, of(group, kind) ?? [], "time_ns")),
        })),
      } as any, 120 + 40 * groups.length);
      showReport(box, "gpu-timeline", g, { title: "Busy and idle time", draw: { kind: (v) => String(v).replace(/_/g, " ") } });
    });
  },
};
