// The timeline: every range and every piece of device work.
import { get } from "../api";
import { Timeline } from "../timeline/timeline";
import type { Info } from "../timeline/model";
import "../timeline/timeline.css";
import type { View } from "../view";

export const timeline: View = {
  id: "timeline",
  title: "Timeline",
  group: "Run",
  async show(page, c) {
    const info = await get<Info>("/api/timeline", { input: c.input }, c.signal, c.progress);
    if (!c.signal.aborted) await new Timeline(page, c, info).start();
  },
};
