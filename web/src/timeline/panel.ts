// The panel below the tracks: as high as the reader has made it, or folded to its title. That stays.
import { h } from "../dom";

export class PanelFrame {
  readonly panel = h("div", { class: "panel", tabindex: -1 });
  private readonly grip = h("div", { class: "grip", role: "separator", tabindex: 0, "aria-orientation": "horizontal", "aria-label": "Height of the panel; arrows change it", title: "Drag: height of the panel; double click: fold it" });
  readonly place = h("div", { class: "panel-frame" }, this.grip, this.panel);
  private height = 0; // 0 = as much as it needs
  private folded = false;

  constructor(private readonly key: string) {
    try {
      const kept = JSON.parse(localStorage.getItem(key) ?? "{}") as { height?: number; folded?: boolean };
      this.height = Number(kept.height) || 0;
      this.folded = !!kept.folded;
    } catch {
      // Without it.
    }
    let from: { y: number; height: number } | undefined;
    this.grip.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      from = { y: e.clientY, height: this.place.clientHeight };
      this.grip.setPointerCapture(e.pointerId);
      e.preventDefault();
    });
    this.grip.addEventListener("pointermove", (e) => from && this.set(from.height + from.y - e.clientY, false));
    for (const end of ["pointerup", "pointercancel"] as const) this.grip.addEventListener(end, () => ((from = undefined), this.keep()));
    this.grip.addEventListener("dblclick", () => this.fold());
    this.grip.addEventListener("keydown", (e) => {
      if (e.key !== "ArrowUp" && e.key !== "ArrowDown") return;
      e.preventDefault();
      e.stopPropagation();
      this.set(this.place.clientHeight + (e.key === "ArrowUp" ? 24 : -24), false);
      this.keep();
    });
    this.apply();
  }

  get isFolded(): boolean {
    return this.folded;
  }

  fold(): void {
    this.set(this.height, !this.folded);
    this.keep();
  }

  private set(height: number, folded: boolean): void {
    this.height = height && Math.max(60, height);
    this.folded = folded;
    this.apply();
  }

  private apply(): void {
    this.place.classList.toggle("folded", this.folded);
    this.place.style.flexBasis = this.height && !this.folded ? `${this.height}px` : "";
    this.place.classList.toggle("sized", this.height > 0 && !this.folded);
  }

  private keep(): void {
    try {
      localStorage.setItem(this.key, JSON.stringify({ height: Math.round(this.height), folded: this.folded }));
    } catch {
      // It is as it was the next time.
    }
  }
}
