// What the colours mean: the roles that were met, below the tools.
import { add, clear, h } from "../dom";
import { rolesOf, type Role } from "./colors";
import type { Tiles } from "./tiles";

export class Legend {
  readonly place = h("div", { class: "legend", "aria-label": "Colours" });
  private shown = -1;

  constructor(private readonly tiles: Tiles) {}

  /** Follows what was met. `visible`: colours go by role. */
  update(visible: boolean): void {
    const { span, gpu } = this.tiles.roles, size = visible ? span.size + gpu.size : 0;
    if (size === this.shown) return;
    this.shown = size;
    clear(this.place);
    if (!size) return;
    this.list("GPU", rolesOf(true, gpu.values()), gpu.size);
    this.list("Host", rolesOf(false, span.values()), span.size);
  }

  private list(title: string, roles: Role[], names: number): void {
    if (!names) return;
    add(this.place, h("b", {}, title));
    for (const r of roles) add(this.place, h("span", {}, h("i", { style: `background:${r.color}` }), r.title));
  }
}
