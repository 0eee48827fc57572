// Mouse, touchpad and keys. What they mean is decided by the timeline.
import { GUTTER } from "./layout";

export interface Target {
  /** Zooms by a factor around a place of the canvas. */
  zoom(factor: number, x: number): void;
  /** Moves the picture by so many pixels. */
  pan(dx: number, dy: number): void;
  /** While a window is being chosen, and when it has been. */
  choosing(x0: number, y0: number, x1: number, y1: number, done: boolean): void;
  click(x: number, y: number): void;
  fitAt(x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
  escape(): void;
  fitChosen(): void;
  fitAll(): void;
  /** Puts a mark. */
  flag(): void;
  /** To the next (1) or previous (-1) event of the row, or hit of the search. */
  neighbour(step: number): void;
  hit(step: number): void;
  inRuler(y: number): boolean;
  /** A frame is wanted; while keys are held, `held` is called for each. */
  invalidate(): void;
}

/** Those of the page. The one that was pointed at or focused last comes first. */
let inputs: Input[] = [];

const MOVED = 4;
/** A turn of the wheel that follows another one so soon scrolls what that one did, also where a timeline has come to be below the pointer meanwhile. */
const SCROLLS_MS = 300;
const ZOOM_KEYS: Record<string, number> = { w: -1, s: 1 }, PAN_KEYS: Record<string, number> = { a: 1, d: -1, arrowleft: 1, arrowright: -1 };

export class Input {
  private held = new Set<string>();
  private from?: { x: number; y: number; chooses: boolean; moved: boolean };
  private last = { x: 0, y: 0 };
  private pointer?: number;
  private scrolled = -SCROLLS_MS; // when a wheel last turned elsewhere

  /** `everywhere`: keys are for it wherever the pointer and the focus are. */
  constructor(private readonly canvas: HTMLCanvasElement, private readonly frame: HTMLElement, private readonly to: Target, signal: AbortSignal, private readonly everywhere: boolean) {
    const on = <K extends keyof HTMLElementEventMap>(name: K, f: (e: HTMLElementEventMap[K]) => void) =>
      canvas.addEventListener(name, f as EventListener, { signal, passive: false });
    on("wheel", (e) => this.wheel(e));
    on("pointerdown", (e) => this.down(e));
    on("pointermove", (e) => this.move(e));
    on("pointerup", (e) => this.up(e));
    on("pointercancel", () => (this.from = undefined));
    on("pointerleave", () => {
      this.pointer = undefined;
      to.leave();
    });
    on("dblclick", (e) => to.fitAt(e.offsetX, e.offsetY));
    inputs.push(this);
    signal.addEventListener("abort", () => (inputs = inputs.filter((i) => i !== this)));
    frame.addEventListener("focusin", () => this.comeFirst(), { signal });
    addEventListener("wheel", (e) => inputs.some((i) => i.canvas === e.target) || (this.scrolled = e.timeStamp), { signal, passive: true });
    addEventListener("keydown", (e) => this.keyDown(e), { signal });
    addEventListener("keyup", (e) => this.held.delete(e.key.toLowerCase()), { signal });
    addEventListener("blur", () => this.held.clear(), { signal });
  }

  private comeFirst(): void {
    inputs = [this, ...inputs.filter((i) => i !== this)];
  }

  /** Whether a key is meant for this timeline. */
  private get listens(): boolean {
    return inputs.find((i) => i.everywhere || i.pointer !== undefined || i.frame.contains(document.activeElement)) === this;
  }

  private wheel(e: WheelEvent): void {
    if (e.timeStamp - this.scrolled < SCROLLS_MS) {
      this.scrolled = e.timeStamp;
      return;
    }
    const unit = e.deltaMode === 1 ? 18 : e.deltaMode === 2 ? 400 : 1, dx = e.deltaX * unit, dy = e.deltaY * unit;
    e.preventDefault();
    if (e.shiftKey || (e.offsetX < GUTTER && !e.ctrlKey)) this.to.pan(0, -(dy || dx));
    else if (Math.abs(dx) > Math.abs(dy)) this.to.pan(-dx, 0);
    else this.to.zoom(Math.exp(Math.max(-1, Math.min(1, dy * (e.ctrlKey ? 0.01 : 0.0022)))), e.offsetX);
  }

  private down(e: PointerEvent): void {
    if (e.button !== 0) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(e.pointerId);
    this.from = { x: e.offsetX, y: e.offsetY, chooses: e.shiftKey || (this.to.inRuler(e.offsetY) && e.offsetX > GUTTER), moved: false };
    this.last = { x: e.offsetX, y: e.offsetY };
  }

  private move(e: PointerEvent): void {
    const f = this.from, x = e.offsetX, y = e.offsetY;
    this.pointer = x;
    this.comeFirst();
    if (!f) {
      this.to.hover(x, y);
      return;
    }
    if (!f.moved && Math.hypot(x - f.x, y - f.y) < MOVED) return;
    f.moved = true;
    this.to.leave();
    if (f.chooses) this.to.choosing(f.x, f.y, x, y, false);
    else this.to.pan(x - this.last.x, y - this.last.y);
    this.last = { x, y };
  }

  private up(e: PointerEvent): void {
    const f = this.from;
    this.from = undefined;
    if (!f) return;
    if (!f.moved) this.to.click(e.offsetX, e.offsetY);
    else if (f.chooses) this.to.choosing(f.x, f.y, e.offsetX, e.offsetY, true);
  }

  private keyDown(e: KeyboardEvent): void {
    const t = e.target as HTMLElement, key = e.key.toLowerCase();
    if (e.ctrlKey || e.metaKey || e.altKey || t.matches?.("input, select, textarea") || !this.listens) return;
    const own = t === this.canvas || t === document.body || t.tagName === "MAIN";
    if (key in ZOOM_KEYS || (key in PAN_KEYS && (own || key.length === 1))) {
      this.held.add(key);
      this.to.invalidate();
    } else if (own && (key === "arrowup" || key === "arrowdown")) this.to.pan(0, key === "arrowup" ? 40 : -40);
    else if (own && (key === "pageup" || key === "pagedown")) this.to.pan(0, key === "pageup" ? 300 : -300);
    else if (key === "escape") this.to.escape();
    else if (key === "f") this.to.fitChosen();
    else if (key === "0") this.to.fitAll();
    else if (key === "m") this.to.flag();
    else if (key === "." || key === ",") this.to.neighbour(key === "." ? 1 : -1);
    else if (key === "n") this.to.hit(e.shiftKey ? -1 : 1);
    else return;
    if (own || !key.startsWith("arrow")) e.preventDefault();
  }

  get holds(): boolean {
    return this.held.size > 0;
  }

  /** What held keys do in `ms` of time; false when there are none. */
  advance(ms: number): boolean {
    for (const key of this.held) {
      if (ZOOM_KEYS[key]) this.to.zoom(Math.exp(ZOOM_KEYS[key] * ms * 0.003), this.pointer ?? (GUTTER + this.canvas.clientWidth) / 2);
      if (PAN_KEYS[key]) this.to.pan(PAN_KEYS[key] * ms * 0.9, 0);
    }
    return this.held.size > 0;
  }
}
