// What keys do, over the page.
import { button, clear, h } from "./dom";
import { keyTable } from "./timeline/keys";

const KEYS: [string, string][] = [
  ["?", "this list"],
  ["/", "search the first table, or the timeline"],
  ["[ ]", "previous, next page of the menu"],
  ["Tab, Enter", "to a row, and choose it: what belongs to it comes below"],
  ["Tab, Enter on a heading", "sort by it"],
  ["Right, Left on a row of a tree", "open, close it"],
  ["t", "light or dark"],
  ["Escape", "close this list"],
];

const box = h("dialog", { class: "help", "aria-label": "Keys" });

/** Opens the list, or closes it. */
export function showHelp(): void {
  if (box.open) {
    box.close();
    return;
  }
  clear(box);
  box.append(h("h3", {}, "Keys of all pages"), keyTable(KEYS), h("h3", {}, "Keys and mouse of the timeline"), keyTable(), button("Close", () => box.close()));
  if (!box.isConnected) document.body.append(box);
  box.showModal();
}

export function helpIsOpen(): boolean {
  return box.open;
}
