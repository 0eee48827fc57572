// Lists that open below a word: they close with Escape and when something else is pressed.
import { add, button, clear, h } from "../dom";
import { titleIn, type Layout } from "./layout";

/** `fill` makes what is in it each time that it opens. */
export function menu(word: string, title: string, fill: (place: HTMLElement) => void): HTMLDetailsElement {
  const place = h("div", { class: "list" }), box = h("details", { class: "menu" }, h("summary", { title }, word), place);
  box.addEventListener("toggle", () => {
    if (!box.open) return;
    clear(place);
    fill(place);
  });
  box.addEventListener("keydown", (e) => {
    if (e.key !== "Escape") return;
    e.stopPropagation();
    box.open = false;
    box.querySelector("summary")!.focus();
  });
  return box;
}

/** Whether one was open. */
export function closeMenus(within: HTMLElement, but?: Node): boolean {
  const open = [...within.querySelectorAll<HTMLDetailsElement>("details.menu[open], details.keys[open]")].filter((d) => !but || !d.contains(but));
  for (const d of open) d.open = false;
  return open.length > 0;
}

/** Which tracks are shown, where, and which stay in view. */
export function tracksMenu(layout: Layout, changed: () => void): HTMLDetailsElement {
  return menu("Tracks", "Filter, pin, move and fold tracks", (place) => {
    const list = h("ul", {}), filter = h("input", { type: "search", placeholder: "Only tracks with this in their name", "aria-label": "Only tracks with this in their name", value: layout.filter });
    const after = (change: () => void) => () => (change(), changed(), fillTracks(list, layout, after));
    filter.addEventListener("input", after(() => {
      layout.filter = filter.value.trim();
      layout.build();
    }));
    add(place, filter, list);
    fillTracks(list, layout, after);
  });
}

function fillTracks(list: HTMLElement, layout: Layout, after: (change: () => void) => () => void): void {
  clear(list);
  const row = (key: string, title: string, kind: string, moves = true, pins = true) => {
    const shut = layout.shut.has(key), pinned = layout.pins.includes(key), folds = kind !== "curve";
    add(list, h("li", { class: kind },
      folds ? button(shut ? "▸" : "▾", after(() => layout.toggle(key)), { title: shut ? "Open" : "Fold", "aria-label": `${shut ? "Open" : "Fold"} ${title}` }) : h("i", {}),
      h("span", { title }, title),
      moves ? button("↑", after(() => layout.move(key, -1)), { title: "Up", "aria-label": `Move ${title} up` }) : null,
      moves ? button("↓", after(() => layout.move(key, 1)), { title: "Down", "aria-label": `Move ${title} down` }) : null,
      pins ? button(pinned ? "Unpin" : "Pin", after(() => layout.pin(key)), { title: pinned ? "Back to its place" : "Keep it in view, above all others", "aria-label": `${pinned ? "Unpin" : "Pin"} ${title}` }) : null));
  };
  for (const c of layout.curves) row(c.key, c.title, "curve", false);
  for (const g of layout.sorted) {
    const tracks = g.tracks.filter((t) => layout.shows(t, g) || layout.pins.includes("t" + t.track));
    if (!tracks.length) continue;
    row(g.key, g.title, "group", true, false);
    for (const t of tracks) row("t" + t.track, titleIn(g, t), "track");
  }
}
