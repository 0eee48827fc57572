// Tables of reports: sort, search, pages, CSV, columns with units and help.
import { TabulatorFull as Tabulator, type CellComponent, type ColumnDefinition, type RowComponent } from "tabulator-tables";
import "tabulator-tables/dist/css/tabulator_simple.min.css";
import type { Args, Cell, Column, Table } from "./api";
import { file } from "./api";
import { add, button, h, save, select } from "./dom";
import { sourceArrow } from "./editor";
import { elided, share, widthOf, type Wish } from "./fit";
import { keepFitted } from "./fitted";
import { cell as format, note, words } from "./format";
import * as place from "./place";

type Row = { id: number; cells: Cell[]; _children?: Row[] };

export interface TableOptions {
  title?: string;
  /** By which its search, order and page stand in the address; several tables of a view need different ones. */
  key?: string;
  /** Called with the row's cells when it is clicked or chosen with Enter. */
  choose?: (cells: Cell[], row: number) => void;
  /** Which row was chosen before. */
  chosen?: (cells: Cell[], row: number) => boolean;
  /** Ids of columns not to show at first. */
  hide?: string[];
  /** Ids of columns not to show at first where there is no room for all: the first goes first. */
  spare?: string[];
  /** How a cell is shown in place of its text. */
  draw?: Record<string, (value: Cell, cells: Cell[]) => Node | string>;
  /** Where the server has more rows than the page: its path and arguments. CSV then has them all; else it has the rows found, in the order shown. */
  whole?: { path: string; args: Args };
  /** Row -> the rows below it, for trees; the column `tree` has the names. */
  children?: (cells: Cell[], row: number) => number[];
  tree?: string;
  /** The order at first: "ID" or "-ID". Without it rows stand as the server has them, and the heading of the time by which that is says so. */
  sort?: string;
  /** The same rows with sums per step. */
  perStep?: () => Promise<Table>;
  pageSize?: number;
  height?: string;
}

function compare(a: Cell, b: Cell): number {
  const numeric = (v: Cell) => typeof v === "number" || typeof v === "bigint";
  if (numeric(a) && numeric(b)) return a! < b! ? -1 : a! > b! ? 1 : 0;
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** Unknown values stand last, whichever the direction. */
function sorter(a: Cell, b: Cell, _x: unknown, _y: unknown, _c: unknown, dir: string): number {
  const none = (v: Cell) => v === null || v === undefined;
  if (none(a) || none(b)) return none(a) && none(b) ? 0 : none(a) === (dir === "asc") ? 1 : -1;
  return compare(a, b);
}

/** No two columns have one title: a share beside the time that it is of is told apart. */
function titlesOf(table: Table): string[] {
  const count = new Map<string, number>();
  for (const c of table.columns) count.set(c.title, (count.get(c.title) ?? 0) + 1);
  return table.columns.map((c) => (count.get(c.title)! > 1 && c.unit === "percent" ? `${c.title} %` : c.title));
}

const isNumeric = (c: Column) => c.type === "integer" || c.type === "number";

/** Left and right of a cell's text, and behind a heading its arrow. */
const PADDING = 11, ARROW = 26;
/** Pixels that a link to a line of source takes behind its text. */
const SOURCE = 18;
/** What the lines and boxes of a tree take of its column: at each level, and the last. */
const INDENT = 11, BRANCH = 34;
const FONT = "13px system-ui, sans-serif";

/** What stands in a cell. */
function shownIn(table: Table, i: number, o: TableOptions, cells: Cell[]): Node | string {
  const column = table.columns[i], value = cells[i], draw = o.draw?.[column.id];
  return draw ? draw(value, cells) : value === null ? "" : format(value, column);
}

const textOf = (x: Node | string) => (typeof x === "string" ? x : x.textContent ?? "");

/** How wide the columns would be. Of long tables not all rows are measured, but the longest texts are. */
function wishes(table: Table, o: TableOptions): Wish[] {
  const titles = titlesOf(table), some = table.rows.slice(0, 200), tree = table.columns.findIndex((c) => c.id === o.tree), depth = table.columns.findIndex((c) => c.id === "depth");
  const about = [tree, table.columns.findIndex((c) => c.id === "name"), table.columns.findIndex((c) => !isNumeric(c))].find((i) => i >= 0);
  return table.columns.map((column, i) => {
    const numeric = isNumeric(column), drawn = !!o.draw?.[column.id], rows = numeric || drawn || i === tree ? some : longest(table.rows, i);
    const indent = (cells: Cell[]) => (i === tree ? BRANCH + INDENT * (Number(cells[depth]) || 0) : 0);
    const widest = rows.reduce((w, cells) => Math.max(w, widthOf(textOf(shownIn(table, i, o, cells)).slice(0, 400), FONT) + indent(cells) + (typeof cells[i] === "string" && sourceArrow(cells[i]) ? SOURCE : 0)), 0);
    const heading = Math.ceil(Math.max(60, widthOf(titles[i], "bold " + FONT) + PADDING + ARROW));
    return { numeric, heading, first: i === about, wish: Math.max(heading, widest + PADDING) };
  });
}

/** The rows with the longest texts in a column. */
function longest(rows: Cell[][], i: number): Cell[][] {
  const length = (r: Cell[]) => (typeof r[i] === "string" ? (r[i] as string).length : 5);
  const most = rows.reduce((n, r) => Math.max(n, length(r)), 0);
  return rows.filter((r) => length(r) >= 0.7 * most).slice(0, 100);
}

function definition(table: Table, i: number, title: string, width: number, o: TableOptions): ColumnDefinition {
  const column = table.columns[i], numeric = isNumeric(column);
  return {
    // Tabulator takes a text as HTML; elements it takes as they are.
    title: escape(title),
    field: `cells.${i}`,
    headerTooltip: (() => (column.help ? h("div", {}, column.help) : "")) as any,
    tooltip: ((_e: unknown, c: CellComponent) => {
      const value = (c.getData() as Row).cells[i];
      return value === null || value === "" ? "" : h("div", {}, String(value));
    }) as any,
    hozAlign: numeric ? "right" : "left",
    headerSortStartingDir: numeric ? "desc" : "asc",
    visible: !o.hide?.includes(column.id),
    width,
    minWidth: 60,
    sorter: sorter as any,
    formatter: (c: CellComponent) => {
      const shown = shownIn(table, i, o, (c.getData() as Row).cells);
      if (numeric) return shown instanceof HTMLElement ? shown : escape(String(shown));
      const value = (c.getData() as Row).cells[i], source = typeof value === "string" ? sourceArrow(value) : undefined;
      const room = c.getColumn().getWidth() - PADDING + 1 - (column.id === o.tree ? BRANCH : 0) - (source ? SOURCE : 0);
      if (typeof shown === "string" && source) return h("span", {}, widthOf(shown, FONT) <= room ? shown : elided(shown, room, FONT), source);
      if (typeof shown === "string") return widthOf(shown, FONT) <= room ? escape(shown) : (elided(shown, room, FONT) as HTMLElement);
      if (shown instanceof HTMLElement && !shown.childElementCount) shown.replaceChildren(elided(textOf(shown), room, FONT));
      return shown as HTMLElement;
    },
  };
}

function escape(text: string): string {
  return h("span", {}, text).innerHTML;
}

function rowsOf(table: Table, o: TableOptions): Row[] {
  const rows: Row[] = table.rows.map((cells, id) => ({ id, cells }));
  if (!o.children) return rows;
  const below = new Set<number>();
  for (const r of rows) {
    const list = o.children(r.cells, r.id);
    if (list.length) r._children = list.map((k) => (below.add(k), rows[k]));
  }
  return rows.filter((r) => !below.has(r.id));
}

/** As src/render/csv.c writes it: control characters escaped, and nothing that a spreadsheet takes for a formula. */
function csvText(table: Table, rows: Row[]): string {
  const escape = (c: string) => (c < "\x80" ? "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0") : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  const text = (v: string) => (/^[ \n]*[=+@\t\r-]./s.test(v) && Number.isNaN(Number(v)) ? "'" : "") + v.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, escape);
  const quote = (v: string) => (v === "" || /[",\n\r]|^ | $/.test(v) ? `"${v.replace(/"/g, '""')}"` : v);
  const cell = (v: Cell) => (v === null ? "" : quote(typeof v === "string" ? text(v) : String(v)));
  return [table.columns.map((c) => cell(c.id)), ...rows.map((r) => r.cells.map(cell))].map((r) => r.join(",") || '""').join("\n") + "\n";
}

/** Rows of a tree, each followed by those below it. */
function flat(rows: Row[]): Row[] {
  return rows.flatMap((r) => (r._children ? [r, ...flat(r._children)] : [r]));
}

/** Columns of points in time: rows in order of one of these are not sorted by size. */
const POINT = /^(allocation|release|peak_\w+)_time_ns$|^(first|last|start|from|to)_ns$/;

/** The column of time or size by which rows stand, the largest first. Rows that are numbered, such as steps, stand by their numbers. */
function ownOrder(table: Table, o: TableOptions): string | undefined {
  const numbered = isNumeric(table.columns[0]) && table.rows.every((r, k) => k === 0 || (r[0] ?? Infinity) >= (table.rows[k - 1][0] ?? Infinity));
  if (o.children || table.rows.length < 2 || numbered) return undefined;
  const falls = (i: number) => table.rows.every((r, k) => k === 0 || r[i] === null || (r[i] !== undefined && table.rows[k - 1][i] !== null && r[i]! <= table.rows[k - 1][i]!));
  const at = table.columns.findIndex((c, i) => /^(ns|us|bytes)$/.test(c.unit) && !POINT.test(c.id) && !o.hide?.includes(c.id) && table.rows[0][i] !== null && table.rows[0][i] !== table.rows[table.rows.length - 1][i] && falls(i));
  return at < 0 ? undefined : "-" + table.columns[at].id;
}

/** The order that stands in the address, or else that of the start. */
function orderAt(table: Table, o: TableOptions, first: string | undefined): { column: string; dir: "asc" | "desc" }[] {
  const text = (o.key ? place.read().args[o.key + ".sort"] : undefined) ?? first;
  if (!text) return [];
  const at = table.columns.findIndex((c) => c.id === text.replace(/^-/, ""));
  return at < 0 ? [] : [{ column: `cells.${at}`, dir: text.startsWith("-") ? "desc" : "asc" }];
}

function options(table: Table, o: TableOptions, rows: Chooser | undefined, widths: number[], first: string | undefined): object {
  const size = o.pageSize ?? 20, tree = table.columns.findIndex((c) => c.id === o.tree);
  const titles = titlesOf(table), page = o.key ? Number(place.read().args[o.key + ".page"]) || 1 : 1;
  return {
    data: rowsOf(table, o),
    columns: table.columns.map((_, i) => definition(table, i, titles[i], widths[i], o)),
    layout: "fitDataFill",
    pagination: table.rows.length > size && !o.children,
    paginationSize: size,
    paginationInitialPage: Math.min(page, Math.max(1, Math.ceil(table.rows.length / size))),
    paginationSizeSelector: [20, 50, 200, 1000],
    initialSort: orderAt(table, o, first),
    // Twenty rows stand there whole; of longer pages only the rows in sight are made, else every change of the page's width takes seconds.
    maxHeight: o.height ?? (o.children ? "60vh" : "max(680px, 80vh)"),
    placeholder: "No rows",
    dataTree: !!o.children,
    dataTreeStartExpanded: (_row: unknown, level: number) => level < 2 || table.rows.length < 100,
    dataTreeElementColumn: tree < 0 ? undefined : `cells.${tree}`,
    dataTreeFilter: false,
    columnDefaults: { resizable: true },
    selectableRows: false,
    keybindings: false,
    autoResize: false, // fitted.ts
    rowFormatter: (rows || o.children) && ((row: RowComponent) => (rows?.prepare(row), o.children && keysOfBranch(row))),
  };
}

/** Roles of the parts between a grid and its rows, for those who hear the page; the controls of pages are a row of it. */
const ROLES: [part: string, role: string][] = [[".tabulator-tableholder", "rowgroup"], [".tabulator-table", "presentation"], [".tabulator-footer", "rowgroup"], [".tabulator-footer-contents", "row"], [".tabulator-paginator", "gridcell"]];

function nameParts(grid: HTMLElement, title: string): void {
  grid.setAttribute("aria-label", title);
  for (const [part, role] of ROLES) grid.querySelector(part)?.setAttribute("role", role);
}

/** Headings sort by Enter and Space, too. */
function keysOfHeadings(grid: HTMLElement): void {
  for (const e of grid.querySelectorAll<HTMLElement>(".tabulator-col.tabulator-sortable")) {
    e.tabIndex = 0;
    e.addEventListener("keydown", (k) => {
      if (k.target !== e || (k.key !== "Enter" && k.key !== " ")) return;
      k.preventDefault();
      e.click();
    });
  }
}

/** Rows of a tree open by the arrow to the right, and close by that to the left. */
function keysOfBranch(row: RowComponent): void {
  const e = row.getElement();
  e.tabIndex = 0;
  e.addEventListener("keydown", (k) => {
    if (k.target !== e || (k.key !== "ArrowRight" && k.key !== "ArrowLeft")) return;
    k.preventDefault();
    if (k.key === "ArrowRight") row.treeExpand();
    else row.treeCollapse();
    row.getElement().focus();
  });
}

const building = new Set<Promise<void>>();

/** Until the tables that were shown stand there. */
export async function tablesStand(): Promise<void> {
  while (building.size) await Promise.all(building);
}

/** Rows that can be chosen, by mouse and by keyboard. */
class Chooser {
  private now?: number; // which was, here
  private marked?: HTMLElement;

  constructor(private readonly o: TableOptions) {}

  /** Of each row when it is made: those of other pages, or further down, are when they come into sight. */
  prepare(row: RowComponent): void {
    const e = row.getElement(), r = row.getData() as Row;
    e.tabIndex = 0;
    e.onkeydown = (k) => k.key === "Enter" && this.choose(row);
    if (this.now === undefined ? this.o.chosen?.(r.cells, r.id) : this.now === r.id) this.mark(e);
  }

  choose(row: RowComponent): void {
    const r = row.getData() as Row;
    this.now = r.id;
    this.mark(row.getElement());
    this.o.choose?.(r.cells, r.id);
  }

  private mark(e: HTMLElement): void {
    this.marked?.classList.remove("chosen");
    this.marked = e;
    e.classList.add("chosen");
  }
}

/** The widths of a table's columns, those that the user has set aside. */
class Fit {
  private readonly wishes: Wish[];
  private readonly own = new Set<string>();
  private hidden: Set<number>;
  private readonly bar: number; // of a table that scrolls

  constructor(table: Table, o: TableOptions, private readonly grid: HTMLElement) {
    this.wishes = wishes(table, o);
    this.bar = table.rows.length > 20 && (o.children || o.height) ? 18 : 2;
    this.hidden = new Set(table.columns.flatMap((c, i) => (o.hide?.includes(c.id) ? [i] : [])));
  }

  private get room(): number {
    return (this.grid.clientWidth || document.querySelector("main")?.clientWidth || innerWidth) - this.bar;
  }

  private get seen(): number[] {
    return this.wishes.map((_w, i) => i).filter((i) => !this.hidden.has(i));
  }

  widths(): number[] {
    const seen = this.seen, shares = share(seen.map((i) => this.wishes[i]), this.room);
    return this.wishes.map((w, i) => shares[seen.indexOf(i)] ?? Math.min(w.wish, 300));
  }

  /** Hides of these columns so many that the others have room. Returns those that are hidden now. */
  spare(table: Table, ids: string[]): string[] {
    const out: string[] = [];
    for (const id of ids) {
      const seen = this.seen, at = table.columns.findIndex((c) => c.id === id);
      if (share(seen.map((i) => this.wishes[i]), this.room).reduce((a, b) => a + b, 0) <= this.room) break;
      if (!seen.includes(at)) continue;
      this.hidden.add(at);
      out.push(id);
    }
    return out;
  }

  /** After a change of the place's width, or of what columns there are. */
  again(t: Tabulator): void {
    const columns = t.getColumns();
    this.hidden = new Set(columns.flatMap((c, i) => (c.isVisible() ? [] : [i])));
    const widths = this.widths();
    let changed = false;
    for (const [i, c] of columns.entries()) {
      if (!c.isVisible() || this.own.has(c.getField()) || c.getWidth() === widths[i]) continue;
      c.setWidth(widths[i]);
      changed = true;
    }
    if (changed) this.cut(t);
  }

  set(t: Tabulator, field: string): void {
    this.own.add(field);
    this.cut(t);
  }

  /** Names are cut anew. */
  private cut(t: Tabulator): void {
    for (const r of t.getRows("visible")) r.reformat();
  }
}

/** Shows a table in `parent`, with its tools and notes. */
export function showTable(parent: HTMLElement, table: Table, o: TableOptions = {}): Tabulator {
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search in the table" });
  const found = h("span", { class: "found" }), grid = h("div", { class: "grid", "data-table": o.key });
  const list = h("div", {}), columns = h("details", { class: "columns" }, h("summary", {}, "Columns"), list);
  const tools = h("div", { class: "tools" }, o.title ? h("h3", {}, o.title) : null, h("span", { class: "space" }), found, search, columns);
  add(parent, h("section", { class: "table" }, tools, grid, ...table.notes.map((n) => h("p", { class: "note" }, note(n)))));
  const fit = new Fit(table, o, grid), spared = fit.spare(table, o.spare ?? []);
  if (spared.length) o = { ...o, hide: [...(o.hide ?? []), ...spared] };
  const rows = o.choose && new Chooser(o), first = o.sort ?? ownOrder(table, o), t = new Tabulator(grid, options(table, o, rows, fit.widths(), first) as any);
  if (rows) {
    grid.classList.add("choosable");
    t.on("rowClick", (_e, row) => rows.choose(row));
  }
  Object.assign(grid, { tabulator: t }); // as with charts
  let now = table;
  if (o.perStep) search.before(stepSwitch(t, o, o.perStep, found, (x) => (now = x), table));
  add(tools, button("CSV", () => saveCsv(t, now, o, found), { title: o.whole ? "Save all rows" : "Save the rows found, in this order" }));
  wire(t, table, o, first, search, found);
  const built = new Promise<void>((done) => t.on("tableBuilt", done)).then(() => {
    building.delete(built);
    nameParts(grid, o.title ?? "Table");
    keysOfHeadings(grid);
    fit.again(t); // what came beside it since has made its place narrower
    keepFitted(t, () => fit.again(t));
  });
  t.on("columnResized", (c) => fit.set(t, c.getField()));
  t.on("columnVisibilityChanged", () => fit.again(t));
  building.add(built);
  for (const [i, c] of table.columns.entries()) {
    const box = h("input", { type: "checkbox", checked: !o.hide?.includes(c.id), onchange: () => t.toggleColumn(`cells.${i}`) });
    add(list, h("label", { title: c.help }, box, c.title));
  }
  return t;
}

/** Sums of all steps, or of one: the same rows, of which the server tells the second. */
function stepSwitch(t: Tabulator, o: TableOptions, ask: () => Promise<Table>, said: HTMLElement, use: (now: Table) => void, whole: Table): HTMLElement {
  const name = (o.key ?? "") + ".per", show = async (per: string) => {
    const now = per === "step" ? await ask() : whole;
    use(now);
    await t.setData(rowsOf(now, o));
  };
  const choice = select("Sums", [["", "of all steps"], ["step", "per step"]], o.key ? place.read().args[name] ?? "" : "", (per) => {
    place.note({ [name]: per });
    void start(per);
  });
  const start = (per: string) => show(per).catch((e) => {
    if (e instanceof DOMException && e.name === "AbortError") return;
    said.textContent = e instanceof Error ? words(e.message) : String(e);
    choice.querySelector("select")!.value = "";
    place.note({ [name]: undefined });
  });
  if (o.key && place.read().args[name] === "step") {
    const first = new Promise<void>((done) => t.on("tableBuilt", done)).then(() => start("step")).finally(() => building.delete(first));
    building.add(first);
  }
  return choice;
}

async function saveCsv(t: Tabulator, table: Table, o: TableOptions, said: HTMLElement): Promise<void> {
  try {
    save(`${o.key ?? "table"}.csv`, o.whole ? await file(o.whole.path, { ...o.whole.args, format: "csv" }) : csvText(table, flat(t.getData("active") as Row[])));
  } catch (e) {
    said.textContent = e instanceof Error ? e.message : String(e);
  }
}

/** Rows of a tree stay for the sake of those below them. */
function matches(r: Row, text: string): boolean {
  return r.cells.some((v) => typeof v === "string" && v.toLowerCase().includes(text)) || !!r._children?.some((k) => matches(k, text));
}

function wire(t: Tabulator, table: Table, o: TableOptions, first: string | undefined, search: HTMLInputElement, found: HTMLElement): void {
  const count = table.rows.length === 1 ? "1 row" : `${table.rows.length} rows`;
  const filter = () => {
    const text = search.value.toLowerCase();
    if (text) t.setFilter(((r: Row) => matches(r, text)) as any);
    else t.clearFilter(true);
  };
  search.addEventListener("input", () => (o.key && place.note({ [o.key + ".q"]: search.value }), filter()));
  t.on("dataFiltered", (_f: unknown, rows: RowComponent[]) => {
    found.textContent = search.value ? `${rows.length} of ${count}` : count;
  });
  found.textContent = count;
  t.on("tableBuilt", () => {
    search.value = o.key ? place.read().args[o.key + ".q"] ?? "" : "";
    if (search.value) filter();
    if (o.key) keep(t, table, o.key, first);
  });
}

/** Order and page, in the address. */
function keep(t: Tabulator, table: Table, key: string, first: string | undefined): void {
  t.on("dataSorted", (sorters: any[]) => {
    const s = sorters[0], id = s ? table.columns[Number(String(s.field).split(".")[1])]?.id : undefined;
    const order = id && (s.dir === "desc" ? "-" : "") + id;
    place.note({ [key + ".sort"]: order === first ? undefined : order });
  });
  t.on("pageLoaded", (n: number) => place.note({ [key + ".page"]: n > 1 ? String(n) : undefined }));
}
