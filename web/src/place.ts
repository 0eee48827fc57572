// The place: which view, which input, what is chosen. It stands in the address behind '#', so that a link reproduces the view:
//   #VIEW?input=RUN/WORKER/SPAN&steps=3..5&...

export interface Place {
  view: string;
  args: Record<string, string>;
}

export function read(): Place {
  const text = location.hash.replace(/^#/, "");
  const [view, query] = [text.split("?")[0], text.slice(text.indexOf("?") + 1)];
  const args: Record<string, string> = {};
  if (text.includes("?")) for (const [k, v] of new URLSearchParams(query)) args[k] = v;
  return { view, args };
}

export function hashOf(p: Place): string {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(p.args)) if (v !== "") query.set(k, v);
  const text = query.toString();
  return "#" + p.view + (text ? "?" + text : "");
}

/** Goes there: a step in the browser's history, and the page is shown anew. */
export function go(p: Place): void {
  location.hash = hashOf(p);
}

/** Changes what is chosen in the view that is shown, without showing it anew. Not when the address is already that of another one. */
export function note(changes: Record<string, string | undefined>): void {
  const page = document.querySelector("main"), p = read();
  if (page?.dataset.place !== undefined && page.dataset.place !== location.hash) return;
  for (const [k, v] of Object.entries(changes)) {
    if (v === undefined || v === "") delete p.args[k];
    else p.args[k] = v;
  }
  history.replaceState(null, "", hashOf(p));
  if (page?.dataset.place !== undefined) page.dataset.place = location.hash;
}

/** What every view keeps when another one is opened, beside the input: what it is about. */
export const KEPT = ["steps", "key_op", "aggregation"];

export function linkTo(view: string, args: Record<string, string> = {}): string {
  const here = read(), kept: Record<string, string> = {};
  for (const k of ["input", ...KEPT]) if (here.args[k]) kept[k] = here.args[k];
  return hashOf({ view, args: { ...kept, ...args } });
}
