// What a picture of the timeline shows, and where things stand in it.
import type { Theme } from "./colors";
import { GUTTER, TOP_RULER, TOP_STEPS, type Band, type Layout } from "./layout";
import type { Mark } from "./marks";
import type { Camera, Counters, Details, Info, StepRoles, Window } from "./model";
import type { Tie } from "./ties";
import type { Tiles } from "./tiles";

/** What a colour says. */
export type Colours = "role" | "name" | "category";

export interface Scene {
  info: Info;
  layout: Layout;
  tiles: Tiles;
  camera: Camera;
  width: number; // of the canvas, with the labels
  height: number;
  scroll: number;
  theme: Theme;
  colours: Colours;
  search: string; // lower case; "" = none
  selected?: Details;
  window?: Window;
  hover?: { x: number; band?: Band };
  marks: Mark[];
  counters?: Counters;
  roles: StepRoles[];
  ties?: Tie[];
}

export function topOf(info: Info): number {
  return TOP_RULER + (info.steps.length ? TOP_STEPS : 0);
}

/** 1, 2 or 5 times a power of ten, so that ticks are at least `room` pixels apart. */
export function tickStep(scale: number, room: number): number {
  const least = Math.max(1, scale * room), ten = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((k) => k * ten).find((s) => s >= least)!;
}

/** A point in time with as many digits as steps of this length need. */
export function tickText(ns: number, step: number): string {
  const [size, unit] = Math.abs(ns) >= 1e9 ? [1e9, "s"] : Math.abs(ns) >= 1e6 ? [1e6, "ms"] : Math.abs(ns) >= 1e3 ? [1e3, "us"] : [1, "ns"];
  const digits = Math.max(0, Math.ceil(Math.log10(size as number) - Math.log10(step) - 1e-9));
  return `${(ns / (size as number)).toFixed(Math.min(digits, 9))} ${unit}`;
}

/** Where a time stands on the canvas. */
export function xOf(s: Scene, ns: number): number {
  return GUTTER + (ns - s.camera.from) / s.camera.scale;
}
