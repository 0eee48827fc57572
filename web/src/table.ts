// Tables of reports: sort, search, pages, CSV, columns with units and help.
import { TabulatorFull as Tabulator, type CellComponent, type ColumnDefinition, type RowComponent } from "tabulator-tables";
import "tabulator-tables/dist/css/tabulator_simple.min.css";
import type { Cell, Table } from "./api";
import { address } from "./api";
import { add, button, h, save } from "./dom";
import { cell as format } from "./format";

type Row = { id: number; cells: Cell[]; _children?: Row[] };

export interface TableOptions {
  title?: string;
  /** Called with the row's cells when it is clicked or chosen with Enter. */
  choose?: (cells: Cell[], row: number) => void;
  /** Ids of columns not to show at first. */
  hide?: string[];
  /** How a cell is shown in place of its text. */
  draw?: Record<string, (value: Cell, cells: Cell[]) => Node | string>;
  /** Where the server has it as CSV: path and arguments. Else the rows shown are written. */
  csv?: { path: string; args: Record<string, string | undefined>; name: string };
  /** Row -> the rows below it, for trees. */
  children?: (cells: Cell[], row: number) => number[];
  pageSize?: number;
  height?: string;
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
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
    title: column.title,
    field: `cells.${i}`,
    headerTooltip: column.help,
    tooltip: true,
    hozAlign: numeric ? "right" : "left",
    headerSortStartingDir: numeric ? "desc" : "asc",
    visible: !o.hide?.includes(column.id),
    maxWidth: 480,
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

function csvText(table: Table, rows: Row[]): string {
  const quote = (v: Cell) => (v === null ? "" : /[",\n\r]/.test(String(v)) ? `"${String(v).replace(/"/g, '""')}"` : String(v));
  return [table.columns.map((c) => quote(c.id)), ...rows.map((r) => r.cells.map(quote))].map((r) => r.join(",")).join("\n") + "\n";
}

/** Shows a table in `parent`, with its tools and notes. */
export function showTable(parent: HTMLElement, table: Table, o: TableOptions = {}): Tabulator {
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search in the table" });
  const found = h("span", { class: "found" }), place = h("div", { class: "grid" });
  const columns = h("details", { class: "columns" }, h("summary", {}, "Columns"));
  const tools = h("div", { class: "tools" }, o.title ? h("h3", {}, o.title) : null, h("span", { class: "space" }), found, search, columns);
  add(parent, h("section", { class: "table" }, tools, place, ...table.notes.map((n) => h("p", { class: "note" }, n))));
  const t = new Tabulator(place, {
    data: rowsOf(table, o),
    columns: table.columns.map((_, i) => definition(table, i, o)),
    layout: "fitDataStretch",
    pagination: table.rows.length > (o.pageSize ?? 50) && !o.children,
    paginationSize: o.pageSize ?? 50,
    paginationSizeSelector: [20, 50, 200, 1000],
    height: o.height ?? (o.children ? "60vh" : undefined),
    placeholder: "No rows",
    dataTree: !!o.children,
    dataTreeStartExpanded: false,
    columnDefaults: { resizable: true },
    selectableRows: false,
    keybindings: false,
  } as any);
  add(tools, button("CSV", () => download(t, table, o), { title: "Save the table" }));
  wire(t, table, o, search, found, columns);
  return t;
}

function download(t: Tabulator, table: Table, o: TableOptions): void {
  if (o.csv && !window.opscopeAnswers) {
    location.href = address(o.csv.path, { ...o.csv.args, format: "csv" });
    return;
  }
  save((o.csv?.name ?? "table") + ".csv", csvText(table, t.getData("active") as Row[]));
}

function wire(t: Tabulator, table: Table, o: TableOptions, search: HTMLInputElement, found: HTMLElement, columns: HTMLElement): void {
  search.addEventListener("input", () => {
    const text = search.value.toLowerCase();
    if (text) t.setFilter(((r: Row) => r.cells.some((v) => typeof v === "string" && v.toLowerCase().includes(text))) as any);
    else t.clearFilter(true);
  });
  t.on("dataFiltered", (_f: unknown, rows: RowComponent[]) => {
    found.textContent = search.value ? `${rows.length} of ${table.rows.length} rows` : `${table.rows.length} rows`;
  });
  found.textContent = `${table.rows.length} rows`;
  if (o.choose) {
    const choose = (row: RowComponent) => o.choose?.((row.getData() as Row).cells, (row.getData() as Row).id);
    t.on("rowClick", (_e, row) => choose(row));
    t.on("renderComplete", () => {
      for (const row of t.getRows("visible")) {
        const e = row.getElement();
        e.tabIndex = 0;
        e.onkeydown = (k) => k.key === "Enter" && choose(row);
      }
    });
  }
  for (const [i, c] of table.columns.entries()) {
    const box = h("input", { type: "checkbox", checked: !o.hide?.includes(c.id), onchange: () => t.toggleColumn(`cells.${i}`) });
    add(columns, h("label", { title: c.help }, box, c.title));
  }
}
