// The frame: which input, which view; light or dark; what goes wrong is said.
import type { Input, Lack, Progress, State } from "./api";
import { ApiError, get, source } from "./api";
import { forgetCharts } from "./chart";
import { add, button, clear, h, select } from "./dom";
import { setServersEditor, showEditorChoice } from "./editor";
import { helpIsOpen, showHelp } from "./help";
import { choose } from "./parts";
import * as place from "./place";
import { lossesBanner, lossesOf } from "./problems";
import { tablesStand } from "./table";
import { OPENS, type View } from "./view";
import { VIEWS } from "./views";
import { areMany, listed, nothing, runs, type Runs } from "./views/runs";
import "./style.css"; // behind those of the libraries

const nav = h("nav", { "aria-label": "Views" });
const bar = h("header", {});
const page = h("main", { tabindex: -1 });
let state: State = { opscope: "", version: 0, read_only: true, inputs: [] };
let asked = 0, answered = 0; // requests for it
let leave = new AbortController();
let shown: Input | "none" | "all" | undefined; // undefined: it is being found out

const isThere = (x: Input) => x.state !== "gone" && !x.absent;

function chosenInput(): Input | undefined {
  const key = place.read().args.input, there = state.inputs.filter(isThere);
  return key ? state.inputs.find((x) => x.input === key) : there.find((x) => x.state !== "failed") ?? there[0];
}

/** The view that an address without one means. */
const opening = (): View => VIEWS.find((v) => v.id === OPENS[chosenInput()?.format ?? ""]) ?? VIEWS[0];

function openingAt(at: place.Place): View {
  const view = opening();
  if (view !== VIEWS[0]) history.replaceState(null, "", place.hashOf({ view: view.id, args: at.args }));
  return view;
}

/** Which view the address means. Without an input it is the list of all runs, where there is more than one. */
async function viewAt(at: place.Place): Promise<View> {
  const view = at.view === runs.id ? runs : VIEWS.find((v) => v.id === at.view);
  if (source.off) return view === runs || !view ? openingAt(at) : view;
  if (view === runs) return runs;
  if (at.args.input || state.inputs.filter(isThere).length < 2 || !areMany(await get<Runs>("/api/runs", {}))) return view ?? openingAt(at);
  history.replaceState(null, "", place.hashOf({ view: runs.id, args: {} }));
  return runs;
}

function unique(list: string[]): string[] {
  return [...new Set(list)];
}

/** What is to be known of an input before it is chosen. */
function stateText(i: Input): string {
  if (i.state === "failed") return " (cannot be read)";
  if (i.state !== "loading") return "";
  return i.total_bytes ? ` (reading, ${Math.floor((100 * (i.done_bytes ?? 0)) / i.total_bytes)} %)` : " (reading)";
}

/** How many are being read, and how many cannot be. */
function stateLink(): HTMLElement | null {
  const failed = state.inputs.filter((i) => i.state === "failed" && isThere(i)).length, reading = state.inputs.filter((i) => i.state === "loading" || i.state === "queued").length;
  const text = [reading ? `reading ${reading} of ${state.inputs.length}` : "", failed ? `${failed} of ${state.inputs.length} cannot be read` : ""].filter((x) => x).join(", ");
  return text ? h("a", { href: place.linkTo("system"), class: failed ? "failed" : "", role: "status" }, text) : null;
}

/** Runs, then the workers of the chosen run, then the spans of that worker. */
function drawBar(view: View): void {
  const input = view.ofAll ? undefined : chosenInput(), all = { href: place.hashOf({ view: runs.id, args: {} }) };
  document.body.classList.toggle("all", !!view.ofAll);
  clear(bar);
  add(bar, h("a", { ...(view.ofAll ? all : { href: place.linkTo("overview") }), class: "brand" }, "opscope"));
  if (input) {
    const there = state.inputs.filter((i) => isThere(i) || i === input);
    if (!source.off && there.length > 1) add(bar, h("a", all, "All runs"));
    const of = (x: Partial<Input>) => there.filter((i) => Object.entries(x).every(([k, v]) => i[k as keyof Input] === v));
    const open = (x: Partial<Input>) => goTo(of(x)[0].input);
    add(bar, select("Run", unique(there.map((i) => i.run)).map((run): [string, string] => [run, run || "(files)"]), input.run, (run) => open({ run })));
    const workers = unique(of({ run: input.run }).map((i) => i.worker)), spans = of({ run: input.run, worker: input.worker });
    const only = (worker: string) => of({ run: input.run, worker });
    add(bar, select("Worker", workers.map((w): [string, string] => [w, w + (only(w).length === 1 ? stateText(only(w)[0]) : "")]), input.worker, (worker) => open({ run: input.run, worker })));
    add(bar, select("Span", spans.map((i): [string, string] => [i.input, i.span + (spans.some((x) => x !== i && x.span === i.span) ? ` (${i.path.slice(i.path.lastIndexOf("/") + 1)})` : "") + (spans.length > 1 ? stateText(i) : "")]), input.input, goTo));
    const steps = h("input", { type: "text", size: 7, placeholder: "each", value: place.read().args.steps ?? "", "aria-label": "Steps", title: source.off ?? "Only these steps: A..B, A.., ..B or A; all: also what lies outside the steps, which most tables leave out", disabled: !!source.off });
    steps.addEventListener("change", () => choose("steps", steps.value.trim(), ["aggregation", "row"]));
    add(bar, h("label", { class: "choice" }, h("span", {}, "Steps"), steps));
  }
  if (!input && !view.ofAll && state.inputs.length)
    add(bar, select("Input", [["", "choose one"], ...state.inputs.filter(isThere).map((i): [string, string] => [i.input, i.input + stateText(i)])], "", (to) => to && goTo(to)));
  if (source.off) add(bar, h("a", { class: "exported", href: place.linkTo("system"), title: source.off }, "Exported report"));
  add(bar, stateLink(), h("span", { class: "space" }), button("⚙", () => showEditorChoice(show), { title: "Which editor opens lines of source", "aria-label": "Editor" }), button("?", showHelp, { title: "Keys (?)", "aria-label": "Keys" }), button("◐", switchTheme, { title: "Light or dark", "aria-label": "Light or dark" }));
  document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`);
}

function goTo(input: string): void {
  place.go({ view: place.read().view, args: { input } });
}

function switchTheme(): void {
  const root = document.documentElement, now = root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // A browser that keeps nothing still shows it.
  }
  show();
}

/** What views said of an input when they had nothing to show: by its key, content and view. */
const refused = new Map<string, string>();
const LACKS: Record<Lack, string> = { memory: "No memory events were recorded.", modules: "Neither modules nor call stacks were recorded." };
const refusal = (i: Input, v: View) => `${i.input}\n${i.content}\n${v.id}`;

/** Why a view has nothing to show, as far as that is known without asking; "" otherwise. */
function lackOf(v: View, i: Input | undefined): string {
  if (!i || i.state === "failed") return "";
  if (v.ofRun && new Set(state.inputs.filter((x) => x.run === i.run).map((x) => x.worker)).size < 2) return "This is about the ranks of a job; the run has one worker.";
  if (v.ofDevice && i.state === "ready" && i.gpu_ops === 0) return lossesOf(i).length ? "No work of a GPU is in what could be read of the input." : "No work of a GPU was recorded.";
  return refused.get(refusal(i, v)) ?? (v.needs && i.lacks?.includes(v.needs) ? LACKS[v.needs] : "");
}

function drawNav(view: View): void {
  if (view.ofAll) return; // it leads to the runs
  const input = chosenInput(), link = (v: View) => {
    const lack = lackOf(v, input);
    return h("a", { href: place.linkTo(v.id), "aria-current": v === view ? "page" : undefined, class: lack ? "dim" : undefined, title: lack || undefined }, v.title);
  };
  const focused = nav.contains(document.activeElement) ? document.activeElement?.textContent : undefined, scrolled = nav.scrollTop;
  clear(nav);
  for (const group of unique(VIEWS.map((v) => v.group))) {
    add(nav, h("h2", {}, group));
    add(nav, ...VIEWS.filter((x) => x.group === group).map(link));
  }
  nav.scrollTop = scrolled;
  if (focused) [...nav.querySelectorAll("a")].find((a) => a.textContent === focused)?.focus({ preventScroll: true });
}

/** The view `by` places further in the menu. */
function walk(by: number): void {
  if (shown === "all") return;
  const at = Math.max(0, VIEWS.findIndex((v) => v.id === place.read().view)), to = VIEWS[(at + by + VIEWS.length) % VIEWS.length];
  location.hash = place.linkTo(to.id);
}

function seen(report: string): { title: string; href: string } {
  const v = VIEWS.find((x) => x.shows && report in x.shows);
  return v ? { title: v.title, href: place.linkTo(v.id, v.shows?.[report]) } : { title: `report ${report}`, href: place.linkTo("reports", { report }) };
}

function sayError(e: unknown): void {
  if (e instanceof DOMException && e.name === "AbortError") return;
  const missing = e instanceof ApiError && e.status === 422;
  add(page, h("p", { class: missing ? "empty" : "error", role: "alert" }, e instanceof Error ? e.message : String(e)));
  if (!(e instanceof ApiError)) console.error(e);
}

/** Says at the head of the page what of its inputs could not be used. */
function drawLosses(title: HTMLElement, view: View): void {
  const input = view.ofAll ? undefined : chosenInput();
  page.querySelector(".losses")?.remove();
  const banner = input && lossesBanner(view.ofRun ? state.inputs.filter((i) => i.run === input.run) : [input], !!view.ofRun);
  if (banner) title.after(banner);
}

/** What is served by now. An answer that was overtaken by a later one is dropped. */
async function refresh(): Promise<void> {
  const mine = ++asked, now = await get<State>("/api/state");
  if (mine < answered) return;
  answered = mine;
  state = now;
  setServersEditor(now.editor);
}

async function show(): Promise<void> {
  leave.abort();
  leave = new AbortController();
  const mine = leave;
  shown = undefined;
  delete page.dataset.ready;
  page.dataset.place = location.hash; // what it shows: the address is ahead of it for a moment
  forgetCharts();
  clear(page);
  let view = VIEWS.find((v) => v.id === place.read().view) ?? VIEWS[0];
  const title = h("h1", {}), wait = h("progress", { class: "wait", "aria-label": "Reading" });
  const name = () => ((title.textContent = view.title), (document.title = `${view.title}: opscope`));
  if (place.read().args.input) name(), drawNav(view);
  add(page, title, wait);
  try {
    await refresh();
    if (mine.signal.aborted) return;
    view = await viewAt(place.read());
    if (mine.signal.aborted) return;
    name();
    const at = place.read();
    page.dataset.place = location.hash;
    if (state.steps && at.args.steps !== state.steps) {
      place.note({ steps: state.steps });
      at.args.steps = state.steps;
      drawNav(view);
    }
    const input = view.ofAll ? undefined : chosenInput();
    shown = view.ofAll ? "all" : input ?? "none";
    drawBar(view);
    drawLosses(title, view);
    if (!input && !view.ofAll) throw new ApiError(422, at.args.input ? `There is no input ${at.args.input} here.` : nothing(await get<Runs>("/api/runs", {}, mine.signal)));
    if (input?.state === "failed" && view.id !== "system" && !view.ofRun) throw new ApiError(422, input.error ?? `${input.path} cannot be read.`);
    const progress: Progress = (done) => (done === undefined ? wait.removeAttribute("value") : (wait.value = done));
    // Which view an address without one means is known once the input has been read, for what the first view asks at first.
    if (!at.view && input && input.state !== "ready") {
      await get("/api/report/overview", { input: input.input }, mine.signal, progress).catch(() => undefined);
      await refresh();
      if (mine.signal.aborted) return;
      if (opening() !== view) return show();
    }
    await view.show(page, { input: input?.input ?? "", args: at.args, signal: mine.signal, seen, progress });
  } catch (e) {
    if (!mine.signal.aborted) sayError(e);
  }
  // What has been read for it meanwhile tells what there is.
  if (!mine.signal.aborted && shown && shown !== "none" && shown !== "all" && shown.state !== "ready") await refresh().catch(() => undefined);
  if (!mine.signal.aborted) {
    drawLosses(title, view);
    const said = page.querySelector<HTMLElement>(".empty")?.innerText;
    if (said && shown && shown !== "none" && shown !== "all" && !page.querySelector("[data-table], canvas, .finding, textarea")) refused.set(refusal(shown, view), said);
    drawNav(view);
  }
  if (!mine.signal.aborted) wait.remove();
  await tablesStand();
  if (!mine.signal.aborted) {
    page.dataset.ready = view.id; // for those who wait for the page
  }
}

/** Inputs that appear, go, fail or change are shown as that happens: a page must not ask about rows of content that is no more. */
async function watch(): Promise<void> {
  for (let stale = false; ; ) {
    const busy = state.inputs.some((i) => i.state === "loading" || i.state === "queued");
    await new Promise((done) => setTimeout(done, busy ? 700 : 3000));
    const before = state, states = (s: State) => JSON.stringify(s.inputs.map((i) => [i.input, i.state, i.absent, stateText(i)]));
    try {
      await refresh();
    } catch {
      continue; // the server is away; the page stays as it is
    }
    stale ||= states(state) !== states(before);
    // A list that is open stays so.
    if (stale && !bar.contains(document.activeElement)) {
      const view = shown === "all" ? runs : VIEWS.find((v) => v.id === place.read().view) ?? VIEWS[0];
      drawBar(view);
      drawNav(view);
      stale = false;
    }
    if (shown === "all" && listed(state) !== listed(before)) document.dispatchEvent(new Event("served"));
    if (!shown || shown === "all") continue;
    const on = shown, now = on === "none" ? undefined : state.inputs.find((i) => i.input === on.input);
    if (on === "none" ? chosenInput() : now && (now.content !== on.content || (now.state === "failed" && on.state !== "failed"))) void show();
  }
}

function keys(e: KeyboardEvent): void {
  const typing = e.target instanceof HTMLElement && e.target.matches("input, select, textarea, [contenteditable]");
  if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "?") showHelp();
  else if (helpIsOpen()) return;
  else if (e.key === "[" || e.key === "]") walk(e.key === "[" ? -1 : 1);
  else if (e.key === "t") switchTheme();
  else if (e.key === "/") {
    const search = page.querySelector<HTMLInputElement>(".tl:is(:hover, :focus-within) input[type=search]") ?? page.querySelector<HTMLInputElement>("input[type=search]");
    if (search) {
      search.focus();
      e.preventDefault();
    }
  }
}

async function start(): Promise<void> {
  try {
    const theme = localStorage.getItem("theme");
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    // As above.
  }
  const skip = h("a", { href: "#", class: "skip", onclick: (e: Event) => (e.preventDefault(), page.focus()) }, "To the page");
  add(document.body, h("div", { role: "navigation", "aria-label": "To the page", class: "skips" }, skip), bar, nav, page);
  addEventListener("hashchange", show);
  addEventListener("keydown", keys);
  await show();
  if (!source.off) watch();
}

start();
