// The devices, and how well each was used.
import { columnOf, numberAt } from "../api";
import { COLORS, showChart } from "../chart";
import { showDevices } from "../devices";
import { percent, time } from "../format";
import { part, showReport } from "../parts";
import { report, type View } from "../view";

const SHARES = ["gpu_utilization_pct", "sm_efficiency_pct", "achieved_occupancy_pct", "tc_time_pct"];

export const gpus: View = {
  id: "gpus",
  title: "GPUs",
  group: "Run",
  shows: { devices: {} },
  async show(page, c) {
    const t = await report(c, "devices");
    showDevices(page, t);
    const used = t.rows.filter((r) => numberAt(t, r, "busy_ns"));
    if (used.length > 1)
      showChart(page, "Use of the GPUs", {
        tooltip: { trigger: "axis", confine: true, axisPointer: { type: "shadow" }, valueFormatter: (v: any) => (v === undefined ? "unknown" : percent(Number(v))) },
        legend: { top: 0 },
        grid: { left: 50, right: 10, top: 36, bottom: 30 },
        xAxis: { type: "category", data: used.map((r) => `GPU ${r[columnOf(t, "device")]}`) },
        yAxis: { type: "value", min: 0, max: 100, axisLabel: { formatter: "{value} %" } },
        series: SHARES.map((id, k) => ({ type: "bar", name: t.columns[columnOf(t, id)]?.title, itemStyle: { color: COLORS[k] }, data: used.map((r) => numberAt(t, r, id)) })),
      } as any);
    showReport(page, "devices", t, { title: "Devices" });
    await part(page, "Busy and idle", async (box) => {
      const g = await report(c, "gpu-timeline", { group_by: "device" }), groups = [...new Set(g.rows.map((r) => String(r[0])))];
      const kinds = [...new Set(g.rows.map((r) => String(r[1])))].filter((k) => /^(computation|exposed_|idle)/.test(k));
      showChart(box, "Busy and idle time", {
        tooltip: { trigger: "axis", confine: true, axisPointer: { type: "shadow" }, valueFormatter: (v: any) => time(Number(v)) },
        legend: { top: 0 },
        grid: { left: 90, right: 40, top: 36, bottom: 30 },
        xAxis: { type: "value", axisLabel: { formatter: (v: number) => time(v).replace(/\.0+ /, " "), hideOverlap: true } },
        yAxis: { type: "category", data: groups },
        series: kinds.map((kind, k) => ({
          type: "bar", stack: "time", barMaxWidth: 36, name: kind.replace("_", " "), itemStyle: { color: [COLORS[2], COLORS[5], COLORS[1], COLORS[7]][k] },
          data: groups.map((name) => g.rows.find((r) => r[0] === name && r[1] === kind)?.[2] ?? 0),
        })),
      } as any, 120 + 40 * groups.length);
      showReport(box, "gpu-timeline", g, { title: "Busy and idle time" });
    });
  },
};
