// What was odd about an input: said at the head of the pages where something of it could not be used.
import type { Input, Problem } from "./api";
import { h } from "./dom";
import { count, note } from "./format";

/** As the program says it, too. */
export const problemText = (p: Problem): string => note(p.message) + (p.count > 1 ? ` (${count(p.count)} such, this one first)` : "");

export const lossesOf = (i: Input): string[] => (i.met ?? []).filter((p) => p.level === "lost").map(problemText);

const MOST = 5;

/** Of the inputs that a page is about; nothing where nothing was lost. */
export function lossesBanner(inputs: Input[], several: boolean): HTMLElement | null {
  const said = inputs.flatMap((i) => lossesOf(i).map((text) => (several ? `${i.worker}: ${text}` : text)));
  if (!said.length) return null;
  const left = said.length - MOST;
  return h("aside", { class: "losses", "aria-label": "Not all of the input could be used" }, h("b", {}, "Not all of the input could be used: what is missing below may be in the rest."),
    h("ul", {}, ...said.slice(0, MOST).map((text) => h("li", {}, text)), left > 0 ? h("li", {}, `${left} more`) : null));
}
