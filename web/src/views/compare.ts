// Two inputs, or two parts of one: by how much a step differs, and the terms that add up to that.
import { get, numberAt, source, textAt, type Cell, type Report, type State } from "../api";
import { COLORS, dark, echarts, OTHERS, showChart } from "../chart";
import { add, h, select } from "../dom";
import { time } from "../format";
import { byDepth, choice, choose, emptyColumns, figure, part, sectionOf, showReport } from "../parts";
import * as place from "../place";
import { inputName, type Context, type View } from "../view";
import { DROPPED, showTimelines } from "./compare_timelines";

const ROWS: [string, string][] = [["term", "term"], ["module", "module"], ["tree", "tree of modules"], ["op", "op"], ["kernel", "kernel"], ["line", "line of Python"]];
const KINDS: Record<string, { color: string; says: string }> = {
  compute: { color: COLORS[0], says: "blue: computation" }, comm: { color: COLORS[1], says: "orange: communication that nothing hides" }, wait: { color: COLORS[3], says: "pink: of it waiting for other ranks" },
  copy: { color: COLORS[2], says: "green: copies" }, idle: { color: COLORS[7], says: "grey: no work" }, host: { color: COLORS[4], says: "light blue: the host" },
};
/** Columns that a narrow window has no room for: *Because* says the same in words. */
const SPARE = ["by_calls_ns", "by_each_ns", "a_each_ns", "b_each_ns", "step_pct", "a_calls", "b_calls", "half_ns"];
/** How many terms the waterfall shows; the others are one bar. */
const BARS = 10;

function signed(ns: number): string {
  return (ns > 0 ? "+" : ns < 0 ? "-" : "") + time(Math.abs(ns));
}

function nameOf(t: Report, row: Report["rows"][0]): string {
  return [textAt(t, row, "kind") === "idle" ? "idle: " : "", textAt(t, row, "name"), textAt(t, row, "direction") && ` (${textAt(t, row, "direction")})`].join("");
}

/** From the step of A, one term after the other, to that of B. */
function waterfall(box: HTMLElement, t: Report, a: number, b: number): void {
  const bars = t.rows.map((r) => ({ name: nameOf(t, r), kind: textAt(t, r, "kind"), delta: numberAt(t, r, "delta_ns") ?? 0 })).filter((x) => x.delta), shown = bars.slice(0, BARS);
  const rest = b - a - shown.reduce((sum, x) => sum + x.delta, 0);
  if (bars.length > BARS && Math.abs(rest) >= 1) shown.push({ name: `${bars.length - BARS} others`, kind: "", delta: rest });
  const names = ["A", ...shown.map((x) => x.name), "B"], values: { at: [number, number]; delta: number; color: string }[] = [{ at: [0, a], delta: a, color: OTHERS }];
  let at = a;
  for (const x of shown) {
    values.push({ at: [at, at + x.delta], delta: x.delta, color: KINDS[x.kind]?.color ?? OTHERS });
    at += x.delta;
  }
  values.push({ at: [0, b], delta: b, color: OTHERS });
  const ends = values.slice(1, -1).flatMap((v) => v.at).concat(a, b), low = Math.min(...ends), high = Math.max(...ends), least = high > low ? Math.max(0, low - (high - low) * 0.15 - 1) : 0;
  showChart(box, "From A to B", {
    tooltip: { confine: true, formatter: (p: any) => `${echarts.format.encodeHTML(names[p.dataIndex])}<br>${p.dataIndex === 0 || p.dataIndex === names.length - 1 ? `step ${time(values[p.dataIndex].delta)}` : signed(values[p.dataIndex].delta)}` },
    grid: { left: 10, right: 100, top: 8, bottom: 10, containLabel: true },
    xAxis: { type: "value", min: least, axisLabel: { formatter: (v: number) => time(v), hideOverlap: true } },
    yAxis: { type: "category", inverse: true, data: names, axisLabel: { width: 300, overflow: "truncate" } },
    series: [{
      type: "custom", name: "terms", clip: false, encode: { x: [0, 1], y: 2 }, data: values.map((v, i) => [Math.max(least, Math.min(...v.at)), Math.max(...v.at), i]),
      renderItem: (_p: any, api: any) => {
        const from = api.coord([api.value(0), api.value(2)]), to = api.coord([api.value(1), api.value(2)]), height = Math.min(22, api.size([0, 1])[1] * 0.7), v = values[api.value(2)];
        const whole = api.value(2) === 0 || api.value(2) === values.length - 1;
        return {
          type: "group", children: [
            { type: "rect", shape: { x: from[0], y: from[1] - height / 2, width: Math.max(1, to[0] - from[0]), height }, style: { fill: v.color } },
            { type: "text", style: { x: to[0] + 5, y: from[1], text: whole ? time(v.delta) : signed(v.delta), fill: dark() ? "#c8d0d8" : "#3a424a", verticalAlign: "middle", fontSize: 11 } },
          ],
        };
      },
    }],
  } as any, 60 + names.length * 26);
  const legend = Object.entries(KINDS).filter(([kind]) => shown.some((x) => x.kind === kind)).map(([, x]) => x.says).join("; ");
  const says = [legend && `${legend[0].toUpperCase()}${legend.slice(1)}.`, least > 0 && "The axis does not begin at 0."].filter(Boolean).join(" ");
  if (says) add(box, h("p", { class: "note" }, says));
}

function field(c: Context, name: string, label: string): HTMLElement {
  const input = h("input", { type: "text", size: 7, placeholder: "each", value: c.args[name] ?? "", "aria-label": label, title: "Only these steps: A..B, A.., ..B or A" });
  input.addEventListener("change", () => choose(name, input.value.trim(), DROPPED));
  return h("label", { class: "choice" }, h("span", {}, label), input);
}

async function show(page: HTMLElement, c: Context): Promise<void> {
  if (source.off) {
    add(page, h("p", { class: "empty" }, "An exported report holds no comparison of its inputs. ", source.off));
    return;
  }
  const state = await get<State>("/api/state", {}, c.signal), others = state.inputs.filter((i) => i.state !== "gone" && i.state !== "failed" && !i.absent);
  // The other span or worker of the same run is what people compare most.
  const mine = others.find((i) => i.input === c.input), near = others.find((i) => i.input !== c.input && i.run === mine?.run) ?? others.find((i) => i.input !== c.input);
  const b = c.args.b ?? near?.input ?? c.input, by = ROWS.find(([id]) => id === c.args.by)?.[0] ?? "term", force = c.args.force === "1";
  add(page, h("div", { class: "choices" }, h("span", { class: "note" }, `A is ${mine ? inputName(mine) : c.input}, as chosen above.`), select("B", others.map((i): [string, string] => [i.input, inputName(i) + (i.input === c.input ? " (the same)" : "")]), b, (v) => choose("b", v, ["b_steps", ...DROPPED])),
    field(c, "a_steps", "Steps of A"), field(c, "b_steps", "Steps of B"), choice(c, "Rows by", "by", ROWS, ["diff.sort", "diff.page", "diff.q"]), choice(c, "Of", "device", [["", "all GPUs"], ["cpu", "the hosts"]], ["diff.sort", "diff.page", "diff.q"]),
    h("a", { href: place.hashOf({ view: "compare", args: { input: b, b: c.input } }) }, "Swap A and B")));
  const steps = [c.args.a_steps ?? c.args.steps, c.args.b_steps ?? c.args.steps], compared: (number | undefined)[] = [];
  let mark: ((names: [string, string]) => void) | undefined;
  const ask = (rows: string) => get<Report>("/api/diff", { a: c.input, b, a_steps: steps[0], b_steps: steps[1], key_op: c.args.key_op, device: c.args.device, by: rows, force: force ? 1 : undefined }, c.signal, c.progress);
  await part(page, "What changed", async (box) => {
    const t = await ask(by), terms = by === "term" ? t : await ask("term"), verdict = sectionOf(t, "verdict");
    if (!verdict) return;
    const first = verdict.rows[0], number = (id: string) => numberAt({ ...t, ...verdict }, first, id), a = number("a_step_ns") ?? 0, end = number("b_step_ns") ?? 0;
    compared.push(number("a_steps"), number("b_steps"));
    add(box, h("p", { class: "finding verdict" }, textAt({ ...t, ...verdict }, first, "verdict")));
    const list = h("div", { class: "figures" });
    add(list, figure("Step of A", time(a)), figure("Step of B", time(end)), figure("Difference", signed(end - a)));
    add(list, figure("Least that would be seen", number("least_ns") === undefined ? undefined : time(number("least_ns") ?? 0), "the difference that so many steps would show in 80 of 100 pairs of recordings"));
    add(box, list);
    if (number("half_ns") && number("least_ns")) add(box, h("p", { class: "note" }, `A difference of more than +- ${time(number("half_ns")!)} is more than chance. One of ${time(number("least_ns")!)} or more would be found so in 80 of 100 pairs of recordings with as many steps.`));
    waterfall(box, terms, a, end);
    const at = (cells: Cell[], id: string) => textAt(t, cells, id), kernels = (cells: Cell[]) => {
      const name = at(cells, "full_name") || at(cells, "name");
      if (at(cells, "kind") !== "idle") mark?.([at(cells, "a_name") || name, name]);
    };
    showReport(box, "diff", t, { title: "Terms of the difference", hide: ["depth", "a_name", "a_shapes", "full_name", ...emptyColumns(t)], spare: SPARE, ...(by === "tree" ? { children: byDepth(t), tree: "name" } : {}), choose: by === "kernel" ? kernels : undefined });
  });
  if (!force) add(page, h("p", { class: "note" }, h("a", { href: place.linkTo("compare", { ...c.args, force: "1" }) }, "Compare runs that have little in common, too")));
  await part(page, "Timelines", async (box) => {
    mark = await showTimelines(box, c, [{ input: c.input, steps: steps[0], compared: compared[0] }, { input: b, steps: steps[1], compared: compared[1] }]);
  });
}

export const compare: View = { id: "compare", title: "Compare", group: "Run", show };
