// Colours: the same for the same name or category, everywhere and always.
import { dark } from "../chart";

export interface Theme {
  ground: string;
  raised: string;
  line: string;
  text: string;
  soft: string;
  strong: string;
  slice: string[]; // by hash
  onSlice: string;
  faint: string[];
  used: string;
  efficient: string;
  memory: string;
}

const HUES = 24;

export function theme(): Theme {
  const css = getComputedStyle(document.documentElement), value = (name: string) => css.getPropertyValue(name).trim();
  const night = dark(), slice: string[] = [], faint: string[] = [];
  for (let i = 0; i < HUES; i++) {
    const hue = Math.round((i * 360) / HUES), shade = i % 2 ? 6 : 0;
    slice.push(night ? `hsl(${hue} 42% ${34 + shade}%)` : `hsl(${hue} 58% ${70 + shade}%)`);
    faint.push(night ? `hsl(${hue} 30% 20%)` : `hsl(${hue} 45% 92%)`);
  }
  return {
    ground: value("--ground"), raised: value("--raised"), line: value("--line"), text: value("--text"), soft: value("--soft"), strong: value("--strong"),
    slice, faint, onSlice: night ? "#f2f5f8" : "#12161a",
    used: night ? "#2f5f86" : "#a9d2f0", efficient: night ? "#63b3ed" : "#2272ab", memory: night ? "#a5673f" : "#eebd97",
  };
}

/** A number of the name as a whole: counters and addresses in it do not matter ("Step#5", "0x7f3a"). */
export function hueOf(name: string): number {
  const text = name.replace(/0x[0-9a-f]+|#\d+/gi, "");
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  h ^= h >>> 15;
  return (h >>> 0) % HUES;
}
