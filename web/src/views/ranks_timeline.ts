// One timeline of the ranks of a job: their device work on one clock, with arrows between the parts of a collective.
import { get } from "../api";
import { add, button, h } from "../dom";
import { choose } from "../parts";
import * as place from "../place";
import type { Info, Origin } from "../timeline/model";
import { Timeline } from "../timeline/timeline";
import "../timeline/timeline.css";
import type { View } from "../view";
import { runOf, type JobInfo } from "./job";

/** How many ranks are shown unless others are chosen. */
const AT_FIRST = 64;

/** "0, 1, 4 to 7" in the form of the address: "0,1,4..7". */
function listed(ranks: number[]): string {
  const out: string[] = [];
  for (let i = 0; i < ranks.length; ) {
    let k = i;
    while (k + 1 < ranks.length && ranks[k + 1] === ranks[k] + 1) k++;
    out.push(k > i ? `${ranks[i]}..${ranks[k]}` : String(ranks[i]));
    i = k + 1;
  }
  return out.join(",");
}

export const ranksTimeline: View = {
  id: "ranks-timeline",
  title: "Timeline of ranks",
  group: "Run",
  ofRun: true,
  async show(page, c) {
    const run = await runOf(c), job = await get<JobInfo>("/api/job", { run }, c.signal, c.progress);
    const ranks = c.args.ranks || listed(job.ranks.slice(0, AT_FIRST).map((r) => r.rank));
    const field = h("input", { type: "text", size: 20, value: ranks, "aria-label": "Ranks", title: "Numbers with commas, ranges as A..B" });
    const go = () => choose("ranks", field.value.trim(), ["ev", "win", "tracks", "shut", "from", "to"]);
    field.addEventListener("change", go);
    const unknown = job.ranks.filter((r) => r.clock === "unknown").map((r) => r.rank);
    add(page, h("div", { class: "choices" }, h("label", { class: "choice" }, h("span", {}, "Ranks"), field), button("Show", go),
      h("span", { class: "note" }, `${job.ranks.length} of ${job.world} ranks are here. Arrows lead from the rank that came first to a collective to the one that came last. `,
        h("a", { href: place.linkTo("job") }, "The job"))));
    if (unknown.length)
      add(page, h("p", { class: "note" }, `The clock${unknown.length > 1 ? "s" : ""} of rank${unknown.length > 1 ? "s" : ""} ${listed(unknown)} could not be compared with the others': these times stand as recorded.`));
    const origin: Origin = { path: "/api/job/timeline", args: { run, ranks }, ranks: ranks.includes("..") || ranks.includes(",") ? AT_FIRST : 1 };
    const info = await get<Info>(origin.path, origin.args, c.signal, c.progress);
    origin.ranks = new Set(info.tracks.map((t) => t.pid)).size;
    if (!c.signal.aborted) await new Timeline(page, c, info, { origin }).start();
  },
};
