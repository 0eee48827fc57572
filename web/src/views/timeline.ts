// The timeline: every range and every piece of device work.
import { get, source } from "../api";
import { add, h } from "../dom";
import { Timeline } from "../timeline/timeline";
import type { Info } from "../timeline/model";
import "../timeline/timeline.css";
import type { View } from "../view";

export const timeline: View = {
  id: "timeline",
  title: "Timeline",
  group: "Run",
  shows: { "": {} },
  async show(page, c) {
    const info = await get<Info>("/api/timeline", { input: c.input }, c.signal, c.progress);
    for (const text of await source.timelineLacks(c.input)) add(page, h("p", { class: "note" }, text));
    if (!c.signal.aborted) await new Timeline(page, c, info).start();
  },
};
