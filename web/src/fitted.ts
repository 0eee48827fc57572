// Tables fit their rows anew when the width of their place changes, or the height of the window.
//
// For that rows are taken out and put in again, and of a row that was taken out between press and release browsers report no click: so it waits
// for the release. Tabulator's own observers (its option autoResize) do not wait, and fit the rows also whenever the table comes into sight, so that a
// click right after scrolling could be lost.
import type { Tabulator } from "tabulator-tables";

const fits = new Map<Tabulator, () => void>();
const fitAll = () => fits.forEach((fit) => fit());
const places = new ResizeObserver(fitAll);
let pressed = false; // a button, somewhere on the page
let release = 0;

addEventListener("resize", fitAll);
addEventListener("pointerdown", (e) => (clearTimeout(release), (pressed = e.button === 0)), true);
// The click comes right after them.
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => (release = window.setTimeout(() => ((pressed = false), fitAll()))), true);

/** From when it has been built until it is no longer on the page; then it is let go: Tabulator has a list of all its tables. */
export function keepFitted(t: Tabulator, fitColumns: () => void): void {
  const size = () => `${t.element.clientWidth} ${innerHeight}`;
  let fitted = size();
  fits.set(t, () => {
    if (!t.element.isConnected) {
      places.unobserve(t.element);
      fits.delete(t);
      t.destroy();
      return;
    }
    const now = size(), hidden = fitted.startsWith("0 ");
    if (pressed || now === fitted || now.startsWith("0 ")) return;
    fitted = now;
    t.redraw(hidden);
    fitColumns();
  });
  places.observe(t.element);
}
