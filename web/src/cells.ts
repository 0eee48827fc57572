// Cells of a table by the ids of its columns.
import type { Cell, Table } from "./api";

/** Position of a column by id; -1 = the table has none. */
export function columnOf(table: Table, id: string): number {
  return table.columns.findIndex((c) => c.id === id);
}

/** The cell as a number, rounded beyond 2^53; undefined when unknown or there is no such column. */
export function numberAt(table: Table, row: Cell[], id: string): number | undefined {
  const value = row[columnOf(table, id)];
  return typeof value === "number" ? value : typeof value === "bigint" ? Number(value) : undefined;
}

export function textAt(table: Table, row: Cell[], id: string): string {
  const value = row[columnOf(table, id)];
  return typeof value === "string" ? value : "";
}
