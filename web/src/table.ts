// Tables of reports: sort, search, pages, CSV, columns with units and help.
import { TabulatorFull as Tabulator, type CellComponent, type ColumnDefinition, type RowComponent } from "tabulator-tables";
import "tabulator-tables/dist/css/tabulator_simple.min.css";
import type { Args, Cell, Table } from "./api";
import { file } from "./api";
import { add, button, h, save } from "./dom";
import { keepFitted } from "./fitted";
import { cell as format, note } from "./format";
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
  /** How a cell is shown in place of its text. */
  draw?: Record<string, (value: Cell, cells: Cell[]) => Node | string>;
  /** Where the server has more rows than the page: its path and arguments. CSV then has them all; else it has the rows found, in the order shown. */
  whole?: { path: string; args: Args };
  /** Row -> the rows below it, for trees; the column `tree` has the names. */
  children?: (cells: Cell[], row: number) => number[];
  tree?: string;
  /** The most of the window's width that a column of text takes, so that the numbers beside it are in sight. */
  textShare?: number;
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

function definition(table: Table, i: number, o: TableOptions): ColumnDefinition {
  const column = table.columns[i], numeric = column.type === "integer" || column.type === "number";
  return {
    // Tabulator takes a text as HTML; elements it takes as they are.
    title: escape(column.title),
    field: `cells.${i}`,
    headerTooltip: (() => (column.help ? h("div", {}, column.help) : "")) as any,
    tooltip: ((_e: unknown, c: CellComponent) => {
      const value = (c.getData() as Row).cells[i];
      return value === null || value === "" ? "" : h("div", {}, String(value));
    }) as any,
    hozAlign: numeric ? "right" : "left",
    headerSortStartingDir: numeric ? "desc" : "asc",
    visible: !o.hide?.includes(column.id),
    maxWidth: o.textShare && !numeric ? Math.max(120, Math.floor(innerWidth * o.textShare)) : 480,
    minWidth: 60,
    sorter: sorter as any,
    formatter: (c: CellComponent) => {
      const cells = (c.getData() as Row).cells, value = cells[i];
      if (o.draw?.[column.id]) {
        const drawn = o.draw[column.id](value, cells);
        return drawn instanceof HTMLElement ? drawn : escape(String(drawn));
      }
      return value === null ? "" : escape(format(value, column));
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

/** The order that stands in the address: "ID" or "-ID". */
function orderAt(table: Table, o: TableOptions): { column: string; dir: "asc" | "desc" }[] {
  const text = o.key ? place.read().args[o.key + ".sort"] : undefined;
  if (!text) return [];
  const at = table.columns.findIndex((c) => c.id === text.replace(/^-/, ""));
  return at < 0 ? [] : [{ column: `cells.${at}`, dir: text.startsWith("-") ? "desc" : "asc" }];
}

function options(table: Table, o: TableOptions, rows: Chooser | undefined): object {
  const size = o.pageSize ?? 20, tree = table.columns.findIndex((c) => c.id === o.tree);
  const page = o.key ? Number(place.read().args[o.key + ".page"]) || 1 : 1;
  return {
    data: rowsOf(table, o),
    columns: table.columns.map((_, i) => definition(table, i, o)),
    layout: "fitDataFill",
    pagination: table.rows.length > size && !o.children,
    paginationSize: size,
    paginationInitialPage: Math.min(page, Math.max(1, Math.ceil(table.rows.length / size))),
    paginationSizeSelector: [20, 50, 200, 1000],
    initialSort: orderAt(table, o),
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
    rowFormatter: rows && ((row: RowComponent) => rows.prepare(row)),
  };
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

/** Shows a table in `parent`, with its tools and notes. */
export function showTable(parent: HTMLElement, table: Table, o: TableOptions = {}): Tabulator {
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search in the table" });
  const found = h("span", { class: "found" }), grid = h("div", { class: "grid", "data-table": o.key });
  const list = h("div", {}), columns = h("details", { class: "columns" }, h("summary", {}, "Columns"), list);
  const tools = h("div", { class: "tools" }, o.title ? h("h3", {}, o.title) : null, h("span", { class: "space" }), found, search, columns);
  add(parent, h("section", { class: "table" }, tools, grid, ...table.notes.map((n) => h("p", { class: "note" }, note(n)))));
  const rows = o.choose && new Chooser(o), t = new Tabulator(grid, options(table, o, rows) as any);
  if (rows) {
    grid.classList.add("choosable");
    t.on("rowClick", (_e, row) => rows.choose(row));
  }
  Object.assign(grid, { tabulator: t }); // as with charts
  add(tools, button("CSV", () => saveCsv(t, table, o, found), { title: o.whole ? "Save all rows" : "Save the rows found, in this order" }));
  wire(t, table, o, search, found);
  const built = new Promise<void>((done) => t.on("tableBuilt", done)).then(() => {
    building.delete(built);
    keepFitted(t);
  });
  building.add(built);
  for (const [i, c] of table.columns.entries()) {
    const box = h("input", { type: "checkbox", checked: !o.hide?.includes(c.id), onchange: () => t.toggleColumn(`cells.${i}`) });
    add(list, h("label", { title: c.help }, box, c.title));
  }
  return t;
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

function wire(t: Tabulator, table: Table, o: TableOptions, search: HTMLInputElement, found: HTMLElement): void {
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
    if (o.key) keep(t, table, o.key);
  });
}

/** Order and page, in the address. */
function keep(t: Tabulator, table: Table, key: string): void {
  t.on("dataSorted", (sorters: any[]) => {
    const s = sorters[0], id = s ? table.columns[Number(String(s.field).split(".")[1])]?.id : undefined;
    place.note({ [key + ".sort"]: id && (s.dir === "desc" ? "-" : "") + id });
  });
  t.on("pageLoaded", (n: number) => place.note({ [key + ".page"]: n > 1 ? String(n) : undefined }));
}
