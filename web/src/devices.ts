// GPUs as cards: how well each was used.
import type { Cell, Table } from "./api";
import { ApiError, columnOf, get, numberAt, textAt, type State } from "./api";
import { add, h } from "./dom";
import { bytes, known, peakText, percent } from "./format";
import { figure } from "./parts";
import { lossesOf } from "./problems";
import { report, type Context } from "./view";

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

/** What other answers say of the devices. */
export interface DeviceFacts {
  peak: Map<string, string>; // by device: of which its MFU is a share
  lost: boolean; // not all of the input could be used
}

/** The report `mfu` ends the rows of each device with that of all its steps. */
export async function deviceFacts(c: Context): Promise<DeviceFacts> {
  const of = new Map<string, string>();
  try {
    const t = await report(c, "mfu");
    for (const r of t.rows) {
      const peak = numberAt(t, r, "peak_tflops_per_s");
      if (peak !== undefined) of.set(String(r[columnOf(t, "device")]), peakText(peak, textAt(t, r, "peak_of")));
    }
  } catch (e) {
    if (!(e instanceof ApiError) || e.status !== 422) throw e;
  }
  const state = await get<State>("/api/state", {}, c.signal);
  return { peak: of, lost: state.inputs.some((i) => i.input === c.input && lossesOf(i).length) };
}

function card(table: Table, row: Cell[], facts: DeviceFacts): HTMLElement {
  const memory = numberAt(table, row, "memory_bytes"), sms = numberAt(table, row, "sm_count"), cc = textAt(table, row, "compute_capability");
  const size = [memory ? bytes(memory) : "", sms ? `${sms} SMs` : "", cc ? `compute capability ${cc}` : ""].filter((x) => x).join(", ");
  const box = h("section", { class: "device" }, h("h3", {}, `GPU ${row[columnOf(table, "device")]}: ${textAt(table, row, "name")}`), size ? h("p", { class: "note" }, size) : null);
  if (!isBusy(table, row)) {
    add(box, h("p", {}, facts.lost ? "No work on it is in what could be read of the input." : "No work of this recording ran on it."));
    return box;
  }
  const figures = h("div", { class: "figures" });
  for (const [id, label] of SHARES) {
    const value = known(numberAt(table, row, id), percent), of = id === "mfu_pct" && value ? facts.peak.get(String(row[columnOf(table, "device")])) : undefined;
    add(figures, figure(label, value, (of ? `${of}; ` : "") + (table.columns[columnOf(table, id)]?.help ?? ""), of));
  }
  const unknown = numberAt(table, row, "tc_unknown_pct"), why = numberAt(table, row, "mfu_pct") === undefined ? whyNoMfu(table, row) : undefined;
  add(box, figures, why ? h("p", { class: "note" }, `MFU is unknown: ${why}`) : null, unknown ? h("p", { class: "note" }, `Of ${percent(unknown)} of the kernel time it is not known whether Tensor Cores were used.`) : null);
  return box;
}

/** Those without any work are named in one line. */
export function showDevices(parent: HTMLElement, table: Table, facts: DeviceFacts): void {
  const row = h("div", { class: "row cards" }), busy = table.rows.filter((r) => isBusy(table, r));
  for (const r of busy.length ? busy : table.rows) add(row, card(table, r, facts));
  add(parent, row);
  const idle = busy.length ? table.rows.filter((r) => !busy.includes(r)).map((r) => String(r[columnOf(table, "device")])) : [];
  if (idle.length) add(parent, h("p", { class: "note" }, facts.lost ? `No work on GPU ${idle.join(", ")} is in what could be read of the input.` : `No work of this recording ran on GPU ${idle.join(", ")}.`));
}
