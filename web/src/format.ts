// Numbers for people. The same units as the text form of the reports.
import type { Cell, Column } from "./api";

const TIMES: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]];
const BYTES: [number, string][] = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const FLOPS: [number, string][] = [[1e15, "PFLOP"], [1e12, "TFLOP"], [1e9, "GFLOP"], [1e6, "MFLOP"], [1e3, "kFLOP"]];

function scaled(v: number, units: [number, string][], base: string, digits: number): string {
  for (const [size, unit] of units) if (Math.abs(v) >= size) return `${(v / size).toFixed(digits)} ${unit}`;
  return `${Number.isInteger(v) ? v : v.toFixed(digits)} ${base}`;
}

export const time = (ns: number) => scaled(ns, TIMES, "ns", 3);
export const bytes = (n: number) => scaled(n, BYTES, "B", 1);
export const flops = (n: number) => scaled(n, FLOPS, "FLOP", 3);
export const percent = (n: number) => `${n.toFixed(2)} %`;
export const count = (n: number) => n.toLocaleString("en-US", { maximumFractionDigits: 3 });

export function cell(value: Cell, column: Pick<Column, "unit" | "type">): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  switch (column.unit) {
    case "ns":
      return time(value);
    case "us":
      return time(value * 1000);
    case "bytes":
      return bytes(value);
    case "percent":
      return percent(value);
    case "flops":
      return flops(value);
    case "ratio":
      return value.toFixed(3);
    default:
      return count(value);
  }
}

/** In the given unit: for axes. */
export function byUnit(unit: Column["unit"]): (v: number) => string {
  return (v) => cell(v, { unit, type: "number" });
}

/** For axes: no more digits than a tick needs. */
export function axis(unit: Column["unit"]): (v: number) => string {
  return (v) => byUnit(unit)(v).replace(/(\.\d*?)0+(?=\s|$)/, "$1").replace(/\.(?=\s|$)/, "");
}
