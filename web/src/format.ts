// Numbers for people. The same units as the text form of the reports.
import type { Cell, Column } from "./api";

type Rung = [name: string, size: number, digits: number];

/** Smallest first, as src/render/render.c has them. */
const TIMES: Rung[] = [["ns", 1, 0], ["us", 1e3, 3], ["ms", 1e6, 3], ["s", 1e9, 3]];
const BYTES: Rung[] = [["B", 1, 0], ["KiB", 2 ** 10, 1], ["MiB", 2 ** 20, 1], ["GiB", 2 ** 30, 1], ["TiB", 2 ** 40, 1], ["PiB", 2 ** 50, 1]];
const FLOPS: Rung[] = [["FLOP", 1, 0], ["KFLOP", 1e3, 3], ["MFLOP", 1e6, 3], ["GFLOP", 1e9, 3], ["TFLOP", 1e12, 3], ["PFLOP", 1e15, 3], ["EFLOP", 1e18, 3]];

/** By how many digits they show: making one takes longer than a hundred uses of it. */
const fixers: Intl.NumberFormat[] = [];

function fixed(v: number, digits: number): string {
  return (fixers[digits] ??= new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })).format(v);
}

/** In the largest unit that keeps it below `step` of itself, rounded: 999999.9 ns is 1.000 ms, not 1000.000 us. */
function scaled(v: number, rungs: Rung[], step: number): string {
  for (const [i, [name, size, whole]] of rungs.entries()) {
    const digits = i === 0 && !Number.isInteger(v) ? 1 : whole;
    if (i + 1 === rungs.length || Math.abs(v) / size + 0.5 * 10 ** -digits < step) return `${fixed(v / size, digits)} ${name}`;
  }
  return "";
}

export const time = (ns: number) => scaled(ns, TIMES, 1000);
export const bytes = (n: number) => scaled(n, BYTES, 1024);
export const flops = (n: number) => scaled(n, FLOPS, 1000);
export const percent = (n: number) => `${n.toFixed(2)} %`;
/** Of which peak an MFU is: without that it looks comparable to any other. */
export const peakText = (tflops: number, of: string) => `of ${counter.format(tflops)} TFLOP/s${of ? `, ${of}` : ""}`;
const counter = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });
export const count = (n: number | bigint) => counter.format(n);

/** A point in time to the nanosecond. */
export function timePoint(ns: number | bigint): string {
  const whole = BigInt(typeof ns === "number" ? Math.round(ns) : ns), u = whole < 0n ? -whole : whole;
  return `${whole < 0n ? "-" : ""}${u / 1000000000n}.${String(u % 1000000000n).padStart(9, "0")} s`;
}

export function cell(value: Cell, column: Pick<Column, "unit" | "type">): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  const n = Number(value);
  switch (column.unit) {
    case "ns":
      return time(n);
    case "time_ns":
      return timePoint(value);
    case "us":
      return time(n * 1000);
    case "bytes":
      return bytes(n);
    case "percent":
      return percent(n);
    case "flops":
      return flops(n);
    case "ratio":
      return n.toFixed(4);
    default:
      return count(value);
  }
}

/** What the program's options are called on the pages. */
const ON_PAGES: [RegExp, string][] = [
  [/^--per=step: /g, ""],
  [/`opscope advise`/g, "The page Advice"],
  [/`opscope report steps`/g, "the page Iterations"],
  [/--key-op=NAME/g, "the field Key op of the page Iterations"],
  [/--key-op='([^']*)'/g, "`$1` as Key op of the page Iterations"],
  [/`?--steps=(\d+\.\.\d*)`?/g, "Steps above: $1"],
  [/--steps=all/g, "all in the field Steps above"],
  [/--steps=outside/g, "outside in the field Steps above"],
  [/--steps=A\.\.B/g, "the field Steps above"],
  [/--device(?![\w=-])/g, "the field Device"],
  [/`?--group-by=([\w-]+)`?/g, "the page Reports, By $1"],
  [/(?<!import )--gpu=NAME/g, "`opscope import --gpu=NAME`"],
  [/(?<=^|\. )the field/g, "The field"],
];

/** A sentence of the program for a page, where its options have fields. */
export function words(text: string): string {
  return ON_PAGES.reduce((t, [option, name]) => t.replace(option, name), text);
}

/** A report's note for a page: long numbers in groups, times and sizes in larger units beside them. */
export function note(text: string): string {
  const grouped = text.replace(/(?<![\d.\w])(-?)(\d{7,}|(?<=(?:^|[ (])-?)\d{5,6})(?![\d\w]|\.\d)( ns\b| bytes\b)?/g, (_all, sign, digits, unit = "") => {
    const value = Number(sign + digits), large = unit === " ns" ? ` (${time(value)})` : unit === " bytes" ? ` (${bytes(value)})` : "";
    return count(BigInt(sign + digits)) + unit + large;
  });
  return words(grouped);
}

/** In the given unit: for axes. */
export function byUnit(unit: Column["unit"]): (v: number) => string {
  return (v) => cell(v, { unit, type: "number" });
}

/** For axes: no more digits than a tick needs. */
export function axis(unit: Column["unit"]): (v: number) => string {
  return (v) => byUnit(unit)(v).replace(/(\.\d*?)0+(?=\s|$)/, "$1").replace(/\.(?=\s|$)/, "");
}

/** For figures: undefined stays so. */
export function known(v: number | undefined, format: (v: number) => string): string | undefined {
  return v === undefined ? undefined : format(v);
}

/** For a chart's tooltips. What is not known is no zero. */
export function tip(format: (v: number) => string): (v: unknown) => string {
  return (v) => (typeof v === "number" && Number.isFinite(v) ? format(v) : "unknown");
}
