// Colours: the same for the same role everywhere and always, in the timeline and in charts. Those of the commonest device work are Okabe and Ito's;
// the others were chosen so that any two of device work, and any two of the host, are at least 14 apart (CIE76) for all kinds of colour vision.
// Where it is asked for, colours go by name instead.
import { dark } from "../chart";

/** What work is, with the words that reports and answers have for it. */
export interface Role {
  title: string;
  color: string;
  words: string[];
}

/** Of device work: by the class of a kernel. */
export const DEVICE_ROLES: Role[] = [
  { title: "gemm", color: "#0072b2", words: ["gemm", "rnn"] },
  { title: "convolution", color: "#742ebe", words: ["conv", "convolution"] },
  { title: "attention", color: "#009e73", words: ["attention"] },
  { title: "norm, softmax", color: "#f0e442", words: ["norm", "softmax"] },
  { title: "elementwise", color: "#56b4e9", words: ["elementwise", "optimizer", "random"] },
  { title: "reduce", color: "#876b31", words: ["reduce", "pool"] },
  { title: "copy kernel", color: "#cc79a7", words: ["copy", "embedding", "sort"] },
  { title: "Triton", color: "#93dca8", words: ["triton"] },
  { title: "communication", color: "#d55e00", words: ["communication", "comm"] },
  { title: "memcpy", color: "#e69f00", words: ["memcpy"] },
  { title: "memset", color: "#8a483f", words: ["memset"] },
  { title: "graph", color: "#565a68", words: ["graph"] },
  { title: "other kernel", color: "#c9cdd9", words: ["other", "unknown", "kernel_other"] },
];

/** Of ranges of the host. */
export const HOST_ROLES: Role[] = [
  { title: "step", color: "#5b6a6e", words: ["step"] },
  { title: "op", color: "#6dbf70", words: ["op", "cpu exec", "cpu_exec"] },
  { title: "communication", color: "#d55e00", words: ["communication", "comm"] },
  { title: "annotation", color: "#e3d06a", words: ["annotation", "user"] },
  { title: "module", color: "#98b2de", words: ["module"] },
  { title: "Python frame", color: "#d8def0", words: ["python"] },
  { title: "data loader", color: "#027395", words: ["data loader", "dataloader"] },
  { title: "runtime call", color: "#a46ddf", words: ["call", "runtime"] },
  { title: "waits for the GPU", color: "#790e3a", words: ["synchronization", "sync"] },
  { title: "allocation", color: "#60441d", words: ["allocation", "alloc"] },
  { title: "profiler", color: "#fbc0b9", words: ["overhead", "profiler"] },
  { title: "operating system", color: "#7e6f54", words: ["os call", "os"] },
  { title: "other", color: "#989a9d", words: ["other", "unknown"] },
];

/** Of a step as a whole: which kind of work had its time. */
const WHOLE: Role[] = [{ title: "kernel", color: "#0072b2", words: ["kernel", "kernels", "computation", "compute"] }, { title: "idle", color: "#e2e5e9", words: ["idle"] }];

function tableOf(...lists: Role[][]): Map<string, number> {
  const table = new Map<string, number>();
  for (const list of lists) list.forEach((r, i) => [r.title.toLowerCase(), ...r.words].forEach((w) => table.has(w) || table.set(w, i)));
  return table;
}

const ALL = [...DEVICE_ROLES, ...HOST_ROLES, ...WHOLE], BY_WORD = tableOf(ALL), DEVICE_WORDS = tableOf(DEVICE_ROLES), HOST_WORDS = tableOf(HOST_ROLES);

/** The colour of a role by any of its words, whatever their case: a kernel class ("gemm"), a role of a step ("Memcpy", "CPU Exec"), of a range ("call"). */
export function roleColor(word: string): string | undefined {
  const i = BY_WORD.get(word.toLowerCase());
  return i === undefined ? undefined : ALL[i].color;
}

/** What a rectangle is painted with. */
interface Paints {
  slice: string[];
  faint: string[]; // above those that are not busy all of the time
  onSlice: string[]; // text
}

export interface Theme extends Paints {
  ground: string;
  raised: string;
  line: string;
  text: string;
  soft: string;
  strong: string;
  used: string;
  efficient: string;
  memory: string;
  communication: string; // hidden behind other work; exposed, it has its own colour
  sampled: string;
}

const HUES = 24, SHADES = 3;

/** Where the paints of roles begin: `HUES` of names stand before them. */
const HOST_FROM = HUES, DEVICE_FROM = HOST_FROM + HOST_ROLES.length * SHADES;

type Rgb = [number, number, number];

function rgb(hex: string): Rgb {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Rgb;
}

/** `share` of b in a. */
function mixed(a: Rgb, b: Rgb, share: number): Rgb {
  return a.map((v, i) => Math.round(v + (b[i] - v) * share)) as Rgb;
}

function css(c: Rgb): string {
  return `rgb(${c.join(" ")})`;
}

/** Dark or light text, whichever is read better. */
function textOn(c: Rgb): string {
  const [r, g, b] = c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#12161a" : "#ffffff";
}

function paints(night: boolean): Paints {
  const out: Paints = { slice: [], faint: [], onSlice: [] }, ground: Rgb = night ? [22, 25, 29] : [255, 255, 255];
  for (let i = 0; i < HUES; i++) {
    const hue = Math.round((i * 360) / HUES), shade = i % 2 ? 6 : 0;
    out.slice.push(night ? `hsl(${hue} 42% ${34 + shade}%)` : `hsl(${hue} 58% ${70 + shade}%)`);
    out.faint.push(night ? `hsl(${hue} 30% 20%)` : `hsl(${hue} 45% 92%)`);
    out.onSlice.push(night ? "#f2f5f8" : "#12161a");
  }
  const role = (color: string, lighter: number) => {
    const c = mixed(rgb(color), [255, 255, 255], lighter);
    out.slice.push(css(c));
    out.faint.push(css(mixed(ground, c, night ? 0.28 : 0.22)));
    out.onSlice.push(textOn(c));
  };
  for (const r of HOST_ROLES) for (let k = 0; k < SHADES; k++) role(r.color, k * 0.14);
  for (const r of DEVICE_ROLES) role(r.color, 0);
  return out;
}

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement), value = (name: string) => style.getPropertyValue(name).trim(), night = dark();
  return {
    ...paints(night), ground: value("--ground"), raised: value("--raised"), line: value("--line"), text: value("--text"), soft: value("--soft"), strong: value("--strong"),
    used: night ? "#2f5f86" : "#a9d2f0", efficient: night ? "#63b3ed" : "#2272ab", memory: night ? "#a5673f" : "#eebd97",
    communication: night ? "#5e3a1f" : "#f6cdaa", sampled: night ? "#5d6b78" : "#b9c4ce",
  };
}

/** A number of the name as a whole: counters and addresses in it do not matter ("Step#5", "0x7f3a"). */
function hashOf(name: string): number {
  const text = name.replace(/0x[0-9a-f]+|#\d+/gi, "");
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  h ^= h >>> 15;
  return h >>> 0;
}

/** Which paint a name has. */
export function paintOfName(name: string): number {
  return hashOf(name) % HUES;
}

/** Which paint a role has. Ranges of the host with one role stand inside each other: they differ a little by name. */
export function paintOfRole(device: boolean, word: string, name: string): number {
  const i = (device ? DEVICE_WORDS : HOST_WORDS).get(word) ?? (device ? DEVICE_ROLES : HOST_ROLES).length - 1;
  return device ? DEVICE_FROM + i : HOST_FROM + i * SHADES + (hashOf(name) % SHADES);
}

/** The roles that these words name, in the order of a legend. */
export function rolesOf(device: boolean, words: Iterable<string>): Role[] {
  const met = new Set<number>(), list = device ? DEVICE_ROLES : HOST_ROLES;
  for (const w of words) met.add((device ? DEVICE_WORDS : HOST_WORDS).get(w) ?? list.length - 1);
  return list.filter((_, i) => met.has(i));
}

/** Text that is read well on a colour. */
export function textOnColor(hex: string): string {
  return textOn(rgb(hex));
}
