// GPUs as cards: how well each was used.
import type { Cell, Table } from "./api";
import { columnOf, numberAt, textAt } from "./api";
import { add, h } from "./dom";
import { bytes, known, percent } from "./format";
import { figure } from "./parts";

/** How well a device was used: columns of the report `devices`. */
export const SHARES: [id: string, label: string][] = [
  ["busy_pct", "GPU busy"],
  ["gpu_utilization_pct", "Kernel busy"],
  ["sm_efficiency_pct", "SM efficiency"],
  ["achieved_occupancy_pct", "Occupancy"],
  ["mfu_pct", "MFU"],
  ["tc_time_pct", "Tensor Core share"],
];

/** Whether work of the recording ran on it. */
function isBusy(table: Table, row: Cell[]): boolean {
  return ["kernels", "copies", "sets"].some((id) => numberAt(table, row, id));
}

/** What the report says of why the MFU is not known. */
function whyNoMfu(table: Table, row: Cell[]): string | undefined {
  const said = table.notes.map((n) => /^MFU (?:of GPU ([\d, ]+) )?is unknown: (.*)$/.exec(n)), device = String(row[columnOf(table, "device")]);
  return said.find((m) => m && (m[1] === undefined || m[1].split(", ").includes(device)))?.[2];
}

function card(table: Table, row: Cell[]): HTMLElement {
  const memory = numberAt(table, row, "memory_bytes"), sms = numberAt(table, row, "sm_count"), cc = textAt(table, row, "compute_capability");
  const facts = [memory ? bytes(memory) : "", sms ? `${sms} SMs` : "", cc ? `compute capability ${cc}` : ""].filter((x) => x).join(", ");
  const box = h("section", { class: "device" }, h("h3", {}, `GPU ${row[columnOf(table, "device")]}: ${textAt(table, row, "name")}`), facts ? h("p", { class: "note" }, facts) : null);
  if (!isBusy(table, row)) {
    add(box, h("p", {}, "No work of this recording ran on it."));
    return box;
  }
  const figures = h("div", { class: "figures" });
  for (const [id, label] of SHARES) {
    add(figures, figure(label, known(numberAt(table, row, id), percent), table.columns[columnOf(table, id)]?.help));
  }
  const unknown = numberAt(table, row, "tc_unknown_pct"), why = numberAt(table, row, "mfu_pct") === undefined ? whyNoMfu(table, row) : undefined;
  add(box, figures, why ? h("p", { class: "note" }, `MFU is unknown: ${why}`) : null, unknown ? h("p", { class: "note" }, `Of ${percent(unknown)} of the kernel time it is not known whether Tensor Cores were used.`) : null);
  return box;
}

/** Those without any work are named in one line. */
export function showDevices(parent: HTMLElement, table: Table): void {
  const row = h("div", { class: "row cards" }), busy = table.rows.filter((r) => isBusy(table, r));
  for (const r of busy.length ? busy : table.rows) add(row, card(table, r));
  add(parent, row);
  const idle = busy.length ? table.rows.filter((r) => !busy.includes(r)).map((r) => String(r[columnOf(table, "device")])) : [];
  if (idle.length) add(parent, h("p", { class: "note" }, `No work of this recording ran on GPU ${idle.join(", ")}.`));
}
