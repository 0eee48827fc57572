// Search by name: all hits in order of time, one after the other.
import { get } from "../api";
import { add, button, h } from "../dom";
import { count, time } from "../format";
import type { Context } from "../view";
import { tickText } from "./scene";
import { trackTitle } from "./layout";
import { menu } from "./menus";
import type { Found, Info, Origin, Slice } from "./model";

const LISTED = 10000, LISTED_AT_ONCE = 200;

export class Search {
  private readonly box = h("input", { type: "search", placeholder: "Search events", "aria-label": "Search events by name", size: 20 });
  private readonly said = h("span", { class: "found", "aria-live": "polite" });
  private readonly list = menu("List", "All hits, in order of time", (place) => this.fill(place));
  readonly parts: HTMLElement[];
  private found?: Found;
  private text = "";
  private at = -1;
  private asked = 0;
  private timer = 0;

  constructor(private readonly c: Context, private readonly info: Info, private readonly origin: Origin, private readonly to: { jump(e: Slice): void; searched(text: string): void }) {
    const before = button("‹", () => this.walk(-1), { title: "Previous hit (N)", "aria-label": "Previous hit" });
    const after = button("›", () => this.walk(1), { title: "Next hit (n)", "aria-label": "Next hit" });
    this.parts = [this.box, before, after, this.said, this.list];
    this.box.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.find(this.box.value), 250);
    });
    this.list.hidden = true;
    this.box.addEventListener("keydown", (e) => this.key(e));
    // The page may be shown anew a moment after something was typed: the address has it by then.
    c.signal.addEventListener("abort", () => {
      if (!this.timer) return;
      clearTimeout(this.timer);
      this.text = this.box.value;
      this.at = -1;
      this.to.searched(this.text);
    });
  }

  private async key(e: KeyboardEvent): Promise<void> {
    if (e.key === "Enter") {
      clearTimeout(this.timer);
      this.timer = 0;
      if (this.box.value !== this.text) await this.find(this.box.value);
      this.walk(e.shiftKey ? -1 : 1);
    } else if (e.key === "Escape") {
      this.clear();
      this.box.blur();
    }
  }

  /** Of the address. */
  get place(): Record<string, string | undefined> {
    return { q: this.text, hit: this.at >= 0 ? String(this.at) : "" };
  }

  async start(text: string): Promise<void> {
    this.box.value = text;
    await this.find(text);
    this.walk(1);
  }

  async restore(text: string, hit: number, jump: boolean): Promise<void> {
    this.box.value = text;
    await this.find(text);
    if (!this.found?.events.length) return;
    this.at = Math.min(hit, this.found.events.length - 1);
    this.say();
    if (jump) this.to.jump(this.found.events[this.at]);
  }

  clear(): void {
    this.box.value = "";
    this.find("");
  }

  private async find(text: string): Promise<void> {
    const mine = ++this.asked;
    this.timer = 0;
    this.text = text;
    this.at = -1;
    this.found = undefined;
    this.list.open = false;
    this.list.hidden = true;
    this.to.searched(text);
    if (!text) {
      this.said.textContent = "";
      return;
    }
    try {
      const found = await get<Found>(`${this.origin.path}/find`, { ...this.origin.args, text, limit: LISTED }, this.c.signal);
      if (mine === this.asked) this.found = found;
    } catch (e) {
      if (!this.c.signal.aborted) this.said.textContent = e instanceof Error ? e.message : String(e);
      return;
    }
    if (mine === this.asked) this.say();
  }

  private say(): void {
    const f = this.found;
    if (!f) return;
    const cut = f.found > f.events.length ? ` (the first ${count(f.events.length)} can be walked through)` : "";
    this.list.hidden = !f.found;
    this.said.textContent = f.found ? `${this.at >= 0 ? `${count(this.at + 1)} of ` : ""}${count(f.found)}, ${time(f.total_ns)} in all${cut}` : "nothing found";
  }

  /** All hits, so many at a time. */
  private fill(place: HTMLElement): void {
    const hits = this.found?.events ?? [], rows = h("ol", {}), more = button("", () => append());
    let n = 0;
    const append = () => {
      for (const end = Math.min(hits.length, n + LISTED_AT_ONCE); n < end; n++) add(rows, this.row(hits[n], n));
      more.hidden = n >= hits.length;
      more.textContent = `${count(hits.length - n)} more`;
    };
    append();
    add(place, rows, more);
  }

  private row(e: Slice, i: number): HTMLElement {
    const jump = () => {
      this.at = i;
      this.say();
      this.to.jump(e);
    };
    return h("li", {}, h("button", { type: "button", class: "jump", onclick: jump, title: e.name },
      h("i", {}, tickText(e.start, 1000)), h("span", {}, e.name), h("i", {}, trackTitle(this.info.tracks[e.track])), h("i", {}, time(e.dur))));
  }

  walk(step: number): void {
    const n = this.found?.events.length ?? 0;
    if (!n) return;
    this.at = this.at < 0 ? (step > 0 ? 0 : n - 1) : (this.at + step + n) % n;
    this.say();
    this.to.jump(this.found!.events[this.at]);
  }
}
