// What is chosen, an event or a window: its details are asked for and shown in the panel, and rows at the other ends of its arrows are shown above the tracks.
import { get, source, type Cell, type Report } from "../api";
import { add, clear, h } from "../dom";
import { shortKernels } from "../parts";
import type { Context } from "../view";
import { endsOf, kernelFacts, showDetails, showTotals, type Panel } from "./details";
import type { Scene } from "./scene";
import type { Layout } from "./layout";
import { rangesOf, type Details, type Info, type Kernel, type Origin, type Slice, type Window } from "./model";
import type { PanelFrame } from "./panel";

/** The timeline that it is chosen on. */
interface On {
  c: Context;
  info: Info;
  origin: Origin;
  scene: Scene;
  layout: Layout;
  panelFrame: PanelFrame;
  panel: Panel;
  view: HTMLElement;
  show(from: number, to: number): void;
  reveal(e: Slice): void;
  bringUp(e: Slice): void;
  sized(): void;
  moved(): void;
  tracksChanged(): void;
}

export class Chosen {
  private asked = 0;
  private short?: Promise<(name: Cell) => string>;

  constructor(private readonly of: On) {}

  async choose(w: Window): Promise<void> {
    const mine = ++this.asked;
    this.of.scene.window = w;
    this.of.scene.selected = undefined;
    this.of.layout.peek([]);
    this.of.tracksChanged();
    const args = { ...this.of.origin.args, from: Math.round(w.from), to: Math.round(w.to), tracks: this.tracksOf(w) };
    await this.fill(mine, async () => {
      const [r, short] = await Promise.all([get<Report>(`${this.of.origin.path}/select`, args, this.of.c.signal), this.shortNames()]);
      return () => showTotals(this.of.panelFrame.panel, this.of.panel, { ...w, from: args.from, to: args.to }, r, short);
    });
  }

  /** Short names of kernels, which are asked for once. */
  private shortNames(): Promise<(name: Cell) => string> {
    const { c, origin, info } = this.of, kernels = !origin.ranks && info.tracks.some((t) => t.device && t.slices);
    return (this.short ??= kernels ? shortKernels({ ...c, args: {} }) : Promise.resolve((name) => String(name ?? "")));
  }

  /** The tracks that a window counts, as ranges of numbers: those that are shown, or its own; undefined: all there are. */
  private tracksOf(w: Window): string | undefined {
    const left = new Set(this.of.layout.left.map((t) => t.track)), chosen = w.tracks ?? this.of.info.tracks.map((t) => t.track);
    return w.tracks || left.size ? rangesOf(chosen.filter((t) => w.tracks || !left.has(t))) : undefined;
  }

  async open(kind: string, row: number, jump: boolean): Promise<void> {
    const mine = ++this.asked;
    await this.fill(mine, async () => {
      const d = await get<Details>(`${this.of.origin.path}/event`, { ...this.of.origin.args, kind, row }, this.of.c.signal);
      return () => {
        this.of.scene.selected = d;
        this.of.layout.peek([]);
        if (jump) this.of.reveal(d.event);
        void this.addKernel(mine, d, showDetails(this.of.panelFrame.panel, this.of.panel, d));
        this.of.sized(); // the panel takes room
        this.of.bringUp(d.event);
        this.seeEnds(d);
        this.of.moved();
      };
    });
  }

  /** Adds what is known of a kernel beyond its row, when that has come. */
  private async addKernel(mine: number, d: Details, place: HTMLElement): Promise<void> {
    if (d.event.kind !== "gpu" || this.of.origin.ranks || source.off) return;
    try {
      const k = await get<Kernel>(`${this.of.origin.path}/kernel`, { ...this.of.origin.args, row: d.event.row }, this.of.c.signal);
      if (mine === this.asked) add(place, h("h4", {}, "Kernel"), kernelFacts(d, k));
    } catch {
      // The row is what there is.
    }
  }

  /** Fills the panel, unless something else has been asked for meanwhile. */
  private async fill(mine: number, ask: () => Promise<() => void>): Promise<void> {
    try {
      const show = await ask();
      if (mine === this.asked && !this.of.c.signal.aborted) show();
    } catch (e) {
      if (this.of.c.signal.aborted || mine !== this.asked) return;
      clear(this.of.panelFrame.panel);
      add(this.of.panelFrame.panel, h("p", { class: "error", role: "alert" }, e instanceof Error ? e.message : String(e)));
    }
  }

  /** Rows of the other ends of its arrows that are out of sight are shown above the tracks. */
  private seeEnds(d: Details): void {
    this.of.layout.peek([]);
    const out = endsOf(d).filter((e) => !this.of.layout.sees(e, this.of.view.scrollTop)), tracks = new Set<number>();
    this.of.layout.peek(out.filter((e) => !tracks.has(e.track) && tracks.add(e.track)).slice(0, 3));
    this.of.sized();
    this.of.bringUp(d.event);
  }

  /** An event and what its arrows lead to, side by side. */
  showEnds(d: Details): void {
    const all = [d.event, ...endsOf(d)], from = Math.min(...all.map((e) => e.start)), to = Math.max(...all.map((e) => e.start + e.dur)), room = (to - from) * 0.1 + 1;
    this.of.show(from - room, to + room);
    this.seeEnds(d);
    this.of.moved();
  }

  nothing(): void {
    this.asked++;
    this.of.scene.selected = undefined;
    this.of.scene.window = undefined;
    this.of.layout.peek([]);
    clear(this.of.panelFrame.panel);
    this.of.tracksChanged();
  }
}
