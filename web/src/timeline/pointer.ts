// What is under the pointer: the time, the row, the event, and what is said of them.
import { h } from "../dom";
import { time, timePoint } from "../format";
import type { Curves } from "./curves";
import { tickText, topOf, type Scene } from "./scene";
import { GUTTER, type Band, type Layout } from "./layout";
import { zoomOf, type Info, type Origin } from "./model";
import { BUSY, COUNT, DUR, ITEM, NAME, START, firstBehind, type Tiles } from "./tiles";

export interface Hit {
  band: Band;
  lane: number; // of the track
  item: Float64Array; // ITEM numbers
}

/** Parts of the timeline that it is over. */
interface Under {
  scene: Scene;
  layout: Layout;
  tiles: Tiles;
  curves: Curves;
  info: Info;
  origin: Origin;
  view: HTMLElement;
  canvas: HTMLElement;
}

export class Pointer {
  readonly tip = h("div", { class: "tip", hidden: true, role: "tooltip" });

  constructor(private readonly of: Under) {}

  timeAt(x: number): number {
    return this.of.scene.camera.from + (x - GUTTER) * this.of.scene.camera.scale;
  }

  inRuler(y: number): boolean {
    return y < topOf(this.of.info);
  }

  bandAt(y: number): Band | undefined {
    return this.of.layout.at(y - topOf(this.of.info), this.of.view.scrollTop);
  }

  hitAt(x: number, y: number): Hit | undefined {
    const band = this.bandAt(y), at = y - topOf(this.of.info) + (band?.stuck ? 0 : this.of.view.scrollTop);
    if (!band?.track || x < GUTTER || this.inRuler(y)) return undefined;
    const lane = this.of.layout.laneAt(band, at), { scale } = this.of.scene.camera, from = this.timeAt(x - 1.5), to = this.timeAt(x + 1.5), ns = this.timeAt(x);
    let best: Float64Array | undefined, far = Infinity;
    if (lane < 0) return undefined;
    for (const p of this.of.tiles.pieces(zoomOf(this.of.info, scale), from, to, band.track.track)) {
      const items = p.lanes[lane];
      if (!items) continue;
      for (let i = firstBehind(items, from); i < items.length && items[i + START] < to; i += ITEM) {
        const off = Math.max(0, items[i + START] - ns, ns - items[i + START] - items[i + DUR]);
        if (off < far) [far, best] = [off, items.subarray(i, i + ITEM)];
      }
    }
    return best && { band, lane, item: best };
  }

  hover(x: number, y: number): void {
    this.of.scene.hover = { x, band: x < GUTTER && !this.inRuler(y) ? this.bandAt(y) : undefined };
    const hit = this.hitAt(x, y), text = hit ? this.describe(hit) : this.describePlace(x, y);
    this.tip.hidden = !text;
    if (text) {
      this.tip.textContent = text;
      const right = x > this.of.scene.width / 2;
      this.tip.style.left = right ? "" : `${x + 14}px`;
      this.tip.style.right = right ? `${this.of.scene.width - x + 14}px` : "";
      this.tip.style.top = `${Math.min(y + 16, this.of.scene.height - 74) + this.of.view.scrollTop}px`;
    }
    this.of.canvas.style.cursor = x < GUTTER ? "pointer" : hit ? "pointer" : "crosshair";
  }

  private describe(hit: Hit): string {
    const i = hit.item, name = this.of.tiles.names.get(i[NAME]) ?? "", role = this.of.tiles.roles[hit.band.track!.device ? "gpu" : "span"].get(i[NAME]), start = tickText(i[START], Math.max(1, this.of.scene.camera.scale));
    if (i[COUNT] === 1) return `${name}\n${role ? `${role}, ` : ""}${time(i[BUSY])} from ${start}${i[BUSY] > i[DUR] ? "; drawn up to the next in its row" : ""}`;
    const busy = i[DUR] > 0 ? `, busy ${((100 * i[BUSY]) / i[DUR]).toFixed(1)} % of ${time(i[DUR])}` : "";
    return `${i[COUNT]} events${busy}, from ${start}\nthe longest: ${name}`;
  }

  private describePlace(x: number, y: number): string {
    if (x < GUTTER) {
      if (this.inRuler(y)) return this.of.info.times ? `The first event began at ${timePoint(BigInt(this.of.info.first_ns))} on the clock of the ${this.of.origin.ranks ? "job" : "recording"}` : "";
      const b = this.bandAt(y);
      if (b?.stuck !== "peek" && b?.kind !== "process" && x > GUTTER - 24) return b?.stuck ? "Unpin: back to its place" : "Pin: keep it in view, above all others";
      return b ? [b.title, b.track ? `${b.track.slices.toLocaleString("en-US")} events, ${b.track.lanes} rows` : b.note].filter((t) => t).join("\n") : "";
    }
    if (this.inRuler(y)) return "";
    const b = this.bandAt(y);
    return b?.curve ? this.of.curves.describe(b.curve, this.timeAt(x)) : "";
  }

  leave(): void {
    this.tip.hidden = true;
    this.of.scene.hover = undefined;
  }
}
