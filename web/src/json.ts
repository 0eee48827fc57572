// JSON as the server writes it: integers of 64 bits, of which a number of JavaScript holds 53. Those beyond become BigInt, so that a time on
// the trace's clock is shown and saved digit by digit.

const LONG = /(?:^|[[,:\s])-?\d{16,}(?=[\],}\s]|$)/;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

export function parseJson<T>(text: string): T {
  if (!LONG.test(text)) return JSON.parse(text) as T;
  const mark = `integer ${Math.random()} `; // no string of a trace begins so
  const marked = text.replace(TOKEN, (t) => (t.length > 15 && /^-?\d+$/.test(t) && !Number.isSafeInteger(Number(t)) ? `"${mark}${t}"` : t));
  return JSON.parse(marked, (_key, v: unknown) => (typeof v === "string" && v.startsWith(mark) ? BigInt(v.slice(mark.length)) : v)) as T;
}
