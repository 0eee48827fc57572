// What keys and mouse do, to be read on the page.
import { add, h } from "../dom";

const KEYS: [string, string][] = [
  ["wheel", "zoom at the pointer; over the labels or with Shift: scroll"],
  ["drag", "move"],
  ["Shift + drag, drag in the ruler", "choose a window: totals by name"],
  ["click", "an event: what it is; a step: its window; a label: fold; the pin beside it: keep in view"],
  ["double click", "show the event in full width; beside events: all of it"],
  ["w s", "zoom"],
  ["a d ← →", "move"],
  ["↑ ↓", "scroll"],
  [", .", "previous, next event of the row"],
  ["/ n N", "search; next, previous hit"],
  ["f 0", "show what is chosen; all of it"],
  ["m", "put a mark with a note; a click on it: change or remove it"],
  ["Escape", "close a list; choose nothing; end the search"],
];

export function keyTable(keys = KEYS): HTMLElement {
  const list = h("dl", { class: "keys" });
  for (const [key, does] of keys) add(list, h("dt", {}, key), h("dd", {}, does));
  return list;
}

export function keyList(): HTMLElement {
  return h("details", { class: "keys" }, h("summary", { title: "Keys and mouse" }, "Keys"), keyTable());
}
