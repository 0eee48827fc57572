// The start page of a folder: all runs in a table. Names, sizes and dates are there at once; figures come for the rows in sight.
import { ApiError, get, type Problem, type State } from "../api";
import { add, button, clear, h } from "../dom";
import { bytes, count, peakText, percent, time } from "../format";
import * as place from "../place";
import { problemText } from "../problems";
import { inputName, OPENS, type Context, type View } from "../view";

/** What /api/runs says. */
export interface Runs {
  looked_at: string[];
  looked_for: string;
  runs: { run: string; job: boolean; inputs: RunInput[] }[];
}

interface RunInput {
  input: string;
  worker: string;
  span: string;
  path: string;
  content: number;
  bytes: number;
  changed_ns: number | bigint | null;
  keeps_job: boolean;
  error?: string;
}

/** What /api/summary says. */
interface Summary {
  format: string;
  step_ns: number | null;
  step_why?: string;
  step_note: string;
  busy_pct: number | null;
  busy_why?: string;
  mfu_pct: number | null;
  mfu_why?: string;
  gpus: { device: number; name: string; busy_pct: number | null; mfu_pct: number | null; peak_tflops_per_s: number | null; peak_of: string }[];
  findings: number | null;
  findings_why?: string;
  severity: string;
  problem: string;
  others: string; // a line for each
  losses: Problem[];
  ranks?: number;
  left_out?: number;
}

/** A run, or a rank of the job above it. */
interface Row {
  key: string; // its own, by which it is ticked and unfolded
  input: string; // by which its pages are asked for
  folder: string;
  name: string;
  paths: string;
  bytes: number;
  changed: number | null; // ms since 1970
  content: string;
  job: boolean;
  ranks: Row[]; // of a job that is several files
  error?: string;
  cheap: boolean; // to read: it is a file of opscope
}

type Known = Summary | { error: string };

/** What is known, by key and content. It stays while other pages are shown. */
const known = new Map<string, Known>();
const at = (r: Row) => `${r.key}\n${r.content}`;
const summaryOf = (r: Row): Summary | undefined => {
  const x = known.get(at(r));
  return x && !("error" in x) ? x : undefined;
};
const errorOf = (r: Row): string | undefined => {
  const x = known.get(at(r));
  return x && "error" in x ? x.error : x ? undefined : r.error;
};

/** Bytes: larger ones are read when that is asked for. */
const LARGE = 512 * 2 ** 20;
/** So many rows are read at a time. */
const AT_ONCE = 2;
/** So many rows stand there at first, and so many more each time that more are asked for. */
const ROWS = 200, MORE = 1000;

const titleOf = (r: Row) => `${r.folder ? r.folder + "/" : ""}${r.name}`;

function rowOf(run: string, i: RunInput): Row {
  return {
    key: i.input, input: i.input, folder: run, name: inputName({ ...i, run: "" }), paths: i.path, bytes: i.bytes, changed: i.changed_ns === null ? null : Number(i.changed_ns) / 1e6,
    content: String(i.content), job: i.keeps_job, ranks: [], error: i.keeps_job ? undefined : i.error, cheap: i.path.endsWith(".opscope"),
  };
}

/** Ranks of one job are one row; a job's own file beside them is a row of its own. */
function rowsOf(list: Runs): Row[] {
  return list.runs.flatMap(({ run, job, inputs }) => {
    const ranks = inputs.filter((i) => !i.keeps_job).map((i) => rowOf(run, i));
    if (!job) return inputs.map((i) => rowOf(run, i));
    const dates = ranks.flatMap((r) => (r.changed === null ? [] : [r.changed])), cut = run.lastIndexOf("/") + 1;
    return [
      { key: `job ${run}`, input: ranks[0].input, folder: run.slice(0, Math.max(0, cut - 1)), name: run.slice(cut) || "(files)", paths: run, bytes: ranks.reduce((n, r) => n + r.bytes, 0), changed: dates.length ? Math.max(...dates) : null,
        content: ranks.map((r) => `${r.key} ${r.content}`).join("\n"), job: true, ranks, cheap: false } as Row,
      ...inputs.filter((i) => i.keeps_job).map((i) => rowOf(run, i)),
    ];
  });
}

/** What tells rows of one name apart: the suffix of the file, or its whole name. */
function tellApart(rows: Row[]): Row[] {
  const name = (r: Row) => `${r.folder}/${r.name}`, seen = new Map<string, number>();
  for (const r of rows) seen.set(name(r), (seen.get(name(r)) ?? 0) + 1);
  const twice = (r: Row) => !r.ranks.length && seen.get(name(r))! > 1;
  return rows.map((r) => (twice(r) ? { ...r, name: r.paths.slice(r.paths.lastIndexOf("/") + 1) } : r));
}

/** Whether the start page is what an address without a run shows: not of one run, be it a job or the spans of one worker. */
export function areMany(list: Runs): boolean {
  const workers = new Set(list.runs.flatMap((r) => r.inputs.map((i) => JSON.stringify([r.run, i.worker]))));
  return rowsOf(list).length > 1 && workers.size > 1;
}

/** Where nothing was found: what was looked for. */
export function nothing(list: Runs): string {
  return `There are no traces here yet. ${list.looked_at.join(", ")} ${list.looked_at.length === 1 ? "was" : "were"} looked through at all depths for files that are named *.pt.trace.json or ${list.looked_for.replace(/, ([^,]*)$/, " or $1")} and hold a trace, and for dumps without a suffix that end in a rank's number. Traces appear here as they are written.`;
}

/** The names of the GPUs that worked, each once. */
function gpusOf(s: Summary): string {
  const names = new Map<string, number>();
  for (const g of s.gpus) names.set(g.name || "GPU without a name", (names.get(g.name || "GPU without a name") ?? 0) + 1);
  return [...names].map(([name, n]) => (n > 1 ? `${n} × ${name}` : name)).join(", ");
}

/** Names may be broken behind the marks in them. */
const breakable = (text: string) => text.split(/(?<=[/_.-])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));

const plain = (text = "") => text.replace(/ ?`opscope advise` says what to do about it\./, "");
const dateOf = (ms: number) => new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 16).replace("T", " ");

/** A figure of each GPU, for a tooltip. */
function each(s: Summary, of: "busy_pct" | "mfu_pct"): string {
  return s.gpus.length < 2 ? "" : `Mean of ${s.gpus.length} GPUs: ${s.gpus.slice(0, 16).map((g) => `${s.ranks ? "" : `GPU ${g.device} `}${g[of] === null ? "unknown" : percent(g[of])}`).join(", ")}${s.gpus.length > 16 ? ", …" : ""}. `;
}

/** What the MFU is a share of: figures of different peaks are not comparable. */
function peaksOf(s: Summary): string {
  const peaks = [...new Set(s.gpus.flatMap((g) => (g.mfu_pct === null || g.peak_tflops_per_s === null ? [] : [peakText(g.peak_tflops_per_s, g.peak_of)])))];
  return peaks.length ? `${peaks.join("; ")}. ` : "";
}

interface Shown {
  text: string;
  help?: string;
}
const figure = (v: number | null, text: (v: number) => string, help: string, why = "unknown"): Shown => (v === null ? { text: "-", help: plain(why) } : { text: text(v), help: plain(help) });

interface Column {
  id: string;
  title: string;
  help: string;
  width?: number; // in pixels; columns without one share what is left
  number?: boolean;
  /** It needs the recording to be read. */
  read?: boolean;
  value(r: Row): string | number | null | undefined;
  shown?(s: Summary): Shown;
}

const COLUMNS: Column[] = [
  { id: "name", title: "Name", help: "folder, and the file without its suffix", value: (r) => `${r.folder}/${r.name}` },
  { id: "step", title: "Step time", help: "mean over the steps, as the report overview has it", width: 98, number: true, read: true, value: (r) => summaryOf(r)?.step_ns, shown: (s) => figure(s.step_ns, time, s.step_note, s.step_why) },
  { id: "busy", title: "GPU busy", help: "share of the steps' time with any device work; without steps, of the time from the first to the last device work", width: 98, number: true, read: true, value: (r) => summaryOf(r)?.busy_pct,
    shown: (s) => figure(s.busy_pct, percent, each(s, "busy_pct") + (s.step_why ?? ""), s.busy_why) },
  { id: "mfu", title: "MFU", help: "FLOPs of the steps in their time, of the GPU's peak, as the report mfu has it. The peak is that of the type and cores of most FLOPs: it stands in the tooltip of each figure", width: 72, number: true, read: true, value: (r) => summaryOf(r)?.mfu_pct,
    shown: (s) => figure(s.mfu_pct, percent, peaksOf(s) + each(s, "mfu_pct") + (s.mfu_why ? `Unknown of some: ${s.mfu_why}` : ""), s.mfu_why) },
  { id: "findings", title: "Findings", help: "how many, and the first; -: most detectors could not look", read: true, value: (r) => summaryOf(r)?.findings },
  { id: "gpu", title: "GPU", help: "the GPUs that ran kernels", width: 152, read: true, value: (r) => (summaryOf(r) ? gpusOf(summaryOf(r)!) || null : undefined), shown: (s) => ({ text: gpusOf(s) || "-", help: gpusOf(s) || plain(s.busy_why ?? "no kernel ran on a GPU") }) },
  { id: "kind", title: "Input", help: "the format of the file", width: 84, read: true, value: (r) => summaryOf(r)?.format, shown: (s) => ({ text: s.format }) },
  { id: "size", title: "Size", help: "of the file; of a job, of all its files", width: 82, number: true, value: (r) => r.bytes },
  { id: "date", title: "Date", help: "when the file was written", width: 132, number: true, value: (r) => r.changed },
];

const BY_DATE = "-date";
/** The column of an order: its id, with a - in front for the largest first. */
const columnOf = (sort: string): Column | undefined => COLUMNS.find((c) => c.id === sort.replace(/^-/, ""));

const byName = new Intl.Collator("en", { numeric: true });

function compare(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b : byName.compare(String(a), String(b));
}

/** What is not known stands last, whichever the direction. Rows that are equal stand by name. */
function order(rows: Row[], sort: string): Row[] {
  const down = sort.startsWith("-"), column = columnOf(sort) ?? columnOf(BY_DATE)!, none = (v: unknown) => v === null || v === undefined;
  const values = new Map(rows.map((r) => [r, column.value(r)])), names = new Map(rows.map((r) => [r, String(COLUMNS[0].value(r))]));
  return [...rows].sort((x, y) => {
    const a = values.get(x), b = values.get(y);
    const by = none(a) || none(b) ? Number(none(a)) - Number(none(b)) : (down ? -1 : 1) * compare(a!, b!);
    return by || compare(names.get(x)!, names.get(y)!);
  });
}

/** Strings that the address keeps as JSON. */
function stringsOf(text: string | undefined): string[] {
  try {
    const v: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(v) ? v.filter((x) => typeof x === "string") : [];
  } catch {
    return [];
  }
}

/** The page, as long as it is shown. */
class Page {
  private rows: Row[] = [];
  private sort: string;
  private query: string;
  private ticked: string[];
  private open: Set<string>;
  private most = ROWS;
  private all = false; // every run is to be read
  private readonly wanted = new Set<string>(); // large ones that are to be read
  private readonly asking = new Set<string>();
  private readonly seen = new Set<Row>();
  private readonly lines = new Map<Element, Row>();
  private readonly changed = new Set<Row>();
  private again = 0;
  private readonly body = h("tbody", {});
  private readonly heads = new Map<string, HTMLElement>();
  private readonly found = h("span", { class: "found", role: "status" });
  private readonly search = h("input", { type: "search", placeholder: "Search names and findings", "aria-label": "Search names and findings", size: 34 });
  private readonly both = button("Compare", () => this.goCompare());
  private readonly pair = h("span", { class: "note pair" });
  private readonly none = button("Untick all", () => this.tick([]));
  private readonly more = button("", () => ((this.most += MORE), this.draw()));
  private readonly readAll = button("", () => ((this.all = !this.all), this.pump(), this.say()), { title: "Figures come for the rows in sight; so do those of all others" });
  private readonly sight = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const r = this.lines.get(e.target);
      if (r && e.isIntersecting) this.seen.add(r);
      else if (r) this.seen.delete(r);
    }
    this.pump();
  }, { rootMargin: "100px" });

  constructor(box: HTMLElement, private readonly c: Context) {
    this.sort = c.args.sort ?? BY_DATE;
    this.query = c.args.q ?? "";
    this.ticked = stringsOf(c.args.ticked);
    this.open = new Set(stringsOf(c.args.open));
    this.search.value = this.query;
    this.search.addEventListener("input", () => {
      this.query = this.search.value.trim();
      place.note({ q: this.query });
      this.most = ROWS;
      this.draw();
    });
    const head = h("tr", {}, h("th", { scope: "col", class: "tick" }, h("span", { class: "unseen" }, "Compare")), ...COLUMNS.map((x) => this.heading(x)));
    const table = h("table", { class: "runs", "aria-label": "Runs" }, h("colgroup", {}, h("col", { width: 30 }), ...COLUMNS.map((x) => h("col", { width: x.width }))), h("thead", {}, head), this.body);
    add(box, h("div", { class: "choices" }, this.search, this.both, this.pair, this.none, h("span", { class: "space" }), this.found, this.readAll), table, this.more);
    c.signal.addEventListener("abort", () => this.sight.disconnect());
  }

  private heading(x: Column): HTMLElement {
    const down = x.number || x.id === "findings", b = button(x.title, () => {
      const first = (down ? "-" : "") + x.id;
      this.sort = this.sort === first ? (down ? x.id : "-" + x.id) : first;
      place.note({ sort: this.sort === BY_DATE ? undefined : this.sort });
      this.draw();
    }, { title: x.help });
    const e = h("th", { scope: "col", class: x.number ? "number" : undefined }, b);
    this.heads.set(x.id, e);
    return e;
  }

  /** What is there now; what was known of it stays. */
  take(now: Runs): void {
    this.rows = tellApart(rowsOf(now));
    const there = new Set(this.rows.flatMap((r) => [r.key, ...r.ranks.map((k) => k.key)]));
    if (this.ticked.some((k) => !there.has(k))) this.ticked = this.ticked.filter((k) => there.has(k));
    this.noteTicked();
    this.draw();
  }

  private noteTicked(): void {
    place.note({ ticked: this.ticked.length ? JSON.stringify(this.ticked) : undefined });
  }

  private matches(r: Row): boolean {
    if (!this.query) return true;
    const s = summaryOf(r), text = `${r.folder}/${r.name} ${r.paths} ${errorOf(r) ?? ""} ${s ? `${s.problem} ${s.others} ${gpusOf(s)} ${s.format}` : ""}`.toLowerCase();
    return this.query.toLowerCase().split(/\s+/).every((word) => text.includes(word)) || r.ranks.some((k) => this.matches(k));
  }

  private draw(): void {
    const focus = document.activeElement?.closest("tr[data-run]"), focused = focus instanceof HTMLElement ? focus.dataset.run : undefined, control = document.activeElement?.getAttribute("data-control");
    const top = order(this.rows.filter((r) => this.matches(r)), this.sort), shown = top.slice(0, this.most);
    this.sight.disconnect();
    this.seen.clear();
    this.lines.clear();
    clear(this.body);
    for (const r of shown) {
      this.put(r, false);
      if (r.ranks.length && this.open.has(r.key)) for (const k of order(r.ranks, this.sort === BY_DATE ? "name" : this.sort)) this.put(k, true);
    }
    if (!shown.length) add(this.body, h("tr", {}, h("td", { colspan: COLUMNS.length + 1 }, this.query ? "No run has these words in its name or, as far as runs have been read, in its findings." : "There are no runs.")));
    this.more.hidden = top.length <= shown.length;
    this.more.textContent = `Show more of the ${count(top.length - shown.length)} other runs`;
    for (const [id, e] of this.heads) {
      if (columnOf(this.sort)?.id === id) e.setAttribute("aria-sort", this.sort.startsWith("-") ? "descending" : "ascending");
      else e.removeAttribute("aria-sort");
    }
    if (focused !== undefined && control) this.body.querySelector<HTMLElement>(`tr[data-run=${JSON.stringify(focused)}] [data-control="${control}"]`)?.focus({ preventScroll: true });
    this.say(top.length);
  }

  private put(r: Row, rank: boolean): void {
    const e = this.line(r, rank);
    add(this.body, e);
    this.lines.set(e, r);
    this.sight.observe(e);
  }

  /** How many there are, how many are read, and what is ticked. */
  private say(found = this.rows.filter((r) => this.matches(r)).length): void {
    const bad = this.rows.filter((r) => errorOf(r) !== undefined).length;
    const left = this.rows.filter((r) => !known.has(at(r)) && errorOf(r) === undefined).length, n = this.rows.length, byRead = columnOf(this.sort)?.read;
    this.found.textContent = (this.query ? `${count(found)} of ${count(n)} runs` : `${count(n)} run${n === 1 ? "" : "s"}`) + (left && byRead ? `; ${count(left)} not read yet stand last` : left && this.all ? `; ${count(n - left)} read` : "") + (bad ? `; ${count(bad)} cannot be read` : "");
    this.readAll.hidden = !left;
    this.readAll.textContent = this.all ? `Stop reading (${count(left)} left)` : `Read all (${count(left)} left)`;
    const two = this.ticked.length === 2;
    this.both.disabled = !two;
    const [a, b] = this.ticked.map((k) => this.nameOf(k));
    this.pair.textContent = !a ? "Tick two runs: first A, then B" : this.ticked.length > 2 ? "More than two are ticked" : b ? `A: ${a}, B: ${b}` : `A: ${a}; tick B`;
    this.both.title = this.pair.title = this.pair.textContent;
    this.none.hidden = !this.ticked.length;
  }

  private line(r: Row, rank: boolean): HTMLTableRowElement {
    const s = summaryOf(r), error = errorOf(r), title = titleOf(r);
    const cells = COLUMNS.map((x) => h("td", { class: x.number ? "number" : undefined, "data-column": x.id }));
    const cell = (id: string) => cells[COLUMNS.findIndex((x) => x.id === id)];
    add(cell("name"), this.name(r, rank));
    cell("name").title = title;
    add(cell("size"), bytes(r.bytes));
    add(cell("date"), r.changed === null ? "-" : h("time", { datetime: new Date(r.changed).toISOString(), title: new Date(r.changed).toString() }, dateOf(r.changed)));
    if (s) this.figures(r, s, cell);
    else if (error !== undefined) this.failure(error, cells);
    else if (this.asking.has(at(r))) add(cell("step"), h("span", { class: "soft" }, "reading…"));
    else if (r.bytes > LARGE && !this.wants(r)) add(cell("step"), button("Read", () => (this.wanted.add(at(r)), this.changed.add(r), this.pump(), this.soon()), { "data-control": "read", title: `${bytes(r.bytes)}: it is read when you ask for it`, "aria-label": `Read ${title}` }));
    return h("tr", { "data-run": r.key, class: rank ? "rank" : undefined, "aria-busy": this.asking.has(at(r)) ? "true" : undefined }, h("td", { class: "tick" }, this.tickBox(r, title, error)), ...cells);
  }

  private name(r: Row, rank: boolean): HTMLElement {
    const to = place.hashOf({ view: r.job ? "job" : (OPENS[summaryOf(r)?.format ?? ""] ?? "overview"), args: { input: r.input } }), box = h("div", { class: "name" });
    if (r.ranks.length) {
      const open = this.open.has(r.key);
      add(box, button(open ? "▾" : "▸", () => this.fold(r), { "aria-expanded": String(open), "aria-label": `Ranks of ${r.name}`, "data-control": "fold", class: "fold" }));
    }
    add(box, h("span", {}, h("a", { href: to, "data-control": "open" }, r.folder && !rank ? h("span", { class: "soft" }, ...breakable(`${r.folder}/`)) : null, ...breakable(r.name)), r.ranks.length ? h("span", { class: "soft" }, ` job of ${r.ranks.length} ranks`) : r.job ? h("span", { class: "soft" }, " job in one file") : null));
    return box;
  }

  private figures(r: Row, s: Summary, cell: (id: string) => HTMLElement): void {
    for (const x of COLUMNS) {
      const shown = x.shown?.(s);
      if (!shown) continue;
      add(cell(x.id), shown.text);
      if (shown.help) cell(x.id).title = shown.help;
      if (shown.text === "-" && shown.help) cell(x.id).setAttribute("aria-label", `unknown: ${shown.help}`);
    }
    if (s.left_out) add(cell("name"), h("div", { class: "soft" }, `${s.left_out} of ${s.left_out + (s.ranks ?? 0)} could not be read`));
    if (s.losses.length) add(cell("name"), h("div", { class: "lost", title: s.losses.map(problemText).join("\n") }, "⚠ not all of it could be used"));
    const box = cell("findings");
    if (s.findings === null) {
      add(box, "-");
      box.title = s.findings_why ?? "";
      box.setAttribute("aria-label", `unknown: ${s.findings_why}`);
    } else if (!s.findings) add(box, h("span", { class: "soft" }, "0"));
    else {
      add(box, h("a", { class: `findings ${s.severity}`, href: place.hashOf({ view: r.job ? "job" : "advice", args: { input: r.input } }), title: `${s.severity}: ${s.problem}`, "data-control": "findings" }, h("b", {}, s.findings), " ", s.problem));
    }
  }

  /** In the place of all figures. */
  private failure(why: string, cells: HTMLTableCellElement[]): void {
    const from = COLUMNS.findIndex((x) => x.id === "step"), to = COLUMNS.findIndex((x) => x.id === "kind");
    cells[from].colSpan = to - from + 1;
    cells[from].className = "failed";
    add(cells[from], why);
    cells.splice(from + 1, to - from);
  }

  private tickBox(r: Row, title: string, error: string | undefined): HTMLElement {
    const why = r.job ? "Two recordings are compared here: unfold the job and tick ranks. `opscope diff` compares jobs." : error !== undefined ? "It cannot be read." : undefined;
    const box = h("input", { type: "checkbox", checked: this.ticked.includes(r.key), disabled: !!why, "aria-label": `Compare ${title}`, title: why ?? "Tick two to compare them", "data-control": "tick" });
    box.addEventListener("change", () => this.tick(box.checked ? [...this.ticked, r.key] : this.ticked.filter((k) => k !== r.key)));
    return box;
  }

  private tick(keys: string[]): void {
    this.ticked = keys;
    this.noteTicked();
    for (const [e, r] of this.lines) e.querySelector<HTMLInputElement>("input")!.checked = keys.includes(r.key);
    this.say();
  }

  private nameOf(key: string): string {
    const r = this.rows.flatMap((x) => [x, ...x.ranks]).find((x) => x.key === key);
    return r ? titleOf(r) : key;
  }

  private fold(r: Row): void {
    if (!this.open.delete(r.key)) this.open.add(r.key);
    place.note({ open: this.open.size ? JSON.stringify([...this.open]) : undefined });
    this.draw();
  }

  private goCompare(): void {
    const [input, b] = this.ticked;
    place.go({ view: "compare", args: { input, b } });
  }

  private wants(r: Row): boolean {
    return this.all || this.wanted.has(at(r));
  }

  /** The next that is to be read: those in sight from the top on, then files of opscope, which take a moment, then all others if they are asked for. */
  private next(): Row | undefined {
    const open = (r: Row) => errorOf(r) === undefined && !known.has(at(r)) && !this.asking.has(at(r)) && (r.bytes <= LARGE || this.wants(r));
    const shown = [...this.body.children].flatMap((e) => this.lines.get(e) ?? []);
    return shown.find((r) => open(r) && (this.seen.has(r) || this.wanted.has(at(r)))) ?? this.rows.find((r) => open(r) && (r.cheap || this.all));
  }

  private pump(): void {
    for (let r: Row | undefined; this.asking.size < AT_ONCE && !this.c.signal.aborted && (r = this.next()); ) void this.ask(r);
  }

  private async ask(r: Row): Promise<void> {
    const key = at(r);
    this.asking.add(key);
    this.changed.add(r);
    this.soon();
    try {
      known.set(key, await get<Summary>("/api/summary", r.ranks.length ? { run: r.ranks[0].folder } : { of: r.input }, this.c.signal));
    } catch (e) {
      if (e instanceof ApiError) known.set(key, { error: e.message });
      else if (!this.c.signal.aborted) throw e;
    }
    this.asking.delete(key);
    if (this.c.signal.aborted) return;
    this.changed.add(r);
    this.soon();
    this.pump();
  }

  /** Draws what has changed, after a moment, together: where many rows stand, the browser takes long to lay them out. */
  private soon(): void {
    this.again ||= window.setTimeout(() => {
      this.again = 0;
      if (this.c.signal.aborted) return;
      const arrived = [...this.changed].some((r) => known.has(at(r))), byRead = columnOf(this.sort)?.read;
      if (arrived && (byRead || this.query)) this.draw(); // the order, or what is found, has changed
      else for (const [e, r] of [...this.lines]) if (this.changed.has(r)) this.redraw(e, r);
      this.changed.clear();
      this.say();
    }, Math.max(150, this.body.childElementCount));
  }

  private redraw(old: Element, r: Row): void {
    const fresh = this.line(r, old.classList.contains("rank")), control = old.contains(document.activeElement) ? document.activeElement?.getAttribute("data-control") : undefined;
    this.sight.unobserve(old);
    old.replaceWith(fresh);
    this.lines.delete(old);
    this.lines.set(fresh, r);
    this.sight.observe(fresh);
    if (control) fresh.querySelector<HTMLElement>(`[data-control="${control}"]`)?.focus({ preventScroll: true });
  }
}

export const runs: View = {
  id: "runs",
  title: "Runs",
  group: "Run",
  ofAll: true,
  async show(box, c) {
    const now = await get<Runs>("/api/runs", {}, c.signal);
    if (!now.runs.length) throw new ApiError(422, nothing(now));
    const page = new Page(box, c);
    page.take(now);
    document.addEventListener("served", () => void get<Runs>("/api/runs", {}, c.signal).then((x) => page.take(x)).catch(() => undefined), { signal: c.signal });
  },
};

/** What of the state the start page is made of. */
export const listed = (s: State): string => JSON.stringify(s.inputs.map((i) => [i.input, i.content, i.state === "gone", i.absent]));
