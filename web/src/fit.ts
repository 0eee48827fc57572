// Widths of a table's columns: numbers are whole, names share what is left of the width, and those that are cut lose their middle.
import { add, h } from "./dom";

/** What a column asks for: the width of its heading and of its widest cell, in pixels. */
export interface Wish {
  wish: number;
  heading: number; // of it, what the heading needs
  numeric: boolean;
  first: boolean; // it says what a row is about
}

/** A column of text is no narrower than this, so that a name can still be told from another; what the row is about is wider. */
const LEAST = 110, LEAST_FIRST = 300;
/** Nor does a long name alone make it wider than this. */
const MOST = 900;

/** The widths of columns in a place of `width` pixels. What is left over goes to all, unless that is so much that rows become hard to follow. */
export function share(columns: Wish[], width: number): number[] {
  const want = columns.map((c) => Math.ceil(c.numeric ? c.wish : Math.min(c.wish, MOST))), sum = want.reduce((a, b) => a + b, 0), left = width - sum;
  if (left >= 0) {
    const each = left <= sum ? left / sum : 0, grown = want.map((w) => Math.floor(w * (1 + each)));
    if (each) grown[0] += width - grown.reduce((a, b) => a + b, 0);
    return grown;
  }
  // The widest texts give first, all to the same width.
  const least = want.map((w, i) => (columns[i].numeric ? w : Math.min(w, Math.max(columns[i].heading, columns[i].first ? LEAST_FIRST : LEAST))));
  const texts = want.map((w, i) => ({ w, least: least[i] })).filter((_x, i) => !columns[i].numeric);
  let low = 0, high = MOST;
  const used = (cap: number) => texts.reduce((n, t) => n + Math.max(t.least, Math.min(t.w, cap)), 0), room = width - want.reduce((n, w, i) => n + (columns[i].numeric ? w : 0), 0);
  while (low < high) {
    const cap = Math.ceil((low + high) / 2);
    if (used(cap) <= room) low = cap;
    else high = cap - 1;
  }
  return want.map((w, i) => (columns[i].numeric ? w : Math.max(least[i], Math.min(w, low))));
}

const canvas = document.createElement("canvas").getContext("2d");
const known = new Map<string, number>();

/** The width of a text in pixels. */
export function widthOf(text: string, font: string): number {
  const key = font + "\n" + text;
  let w = known.get(key);
  if (w === undefined) {
    if (canvas) canvas.font = font;
    w = canvas ? canvas.measureText(text).width : 7 * text.length;
    if (known.size > 20000) known.clear();
    known.set(key, w);
  }
  return w;
}

/** How many characters of the text stand at the start and at the end, where it is too wide: names differ at their ends, most of all in a number that stands there. */
function ends(text: string, width: number, font: string): [start: number, end: number] {
  let low = 0, high = text.length;
  const number = /\d+$/.exec(text)?.[0].length ?? 0;
  const halves = (n: number): [number, number] => {
    const end = Math.min(n, Math.max(Math.floor(n / 2), number));
    return [n - end, end];
  };
  const fits = ([a, b]: [number, number]) => widthOf(text.slice(0, a), font) + widthOf("…", font) + widthOf(text.slice(text.length - b), font) <= width;
  while (low < high) {
    const n = Math.ceil((low + high) / 2);
    if (fits(halves(n))) low = n;
    else high = n - 1;
  }
  return halves(low);
}

/** The text without its middle, no wider than `width`. */
export function middle(text: string, width: number, font: string): string {
  if (widthOf(text, font) <= width) return text;
  const [start, end] = ends(text, width, font);
  return `${text.slice(0, start)}…${text.slice(text.length - end)}`;
}

/** The same as elements, of which the whole text can be copied. */
export function elided(text: string, width: number, font: string): Node {
  if (widthOf(text, font) <= width) return document.createTextNode(text);
  const [start, end] = ends(text, width, font);
  return add(h("span", {}), text.slice(0, start), h("span", { class: "cut" }, text.slice(start, text.length - end)), text.slice(text.length - end));
}
