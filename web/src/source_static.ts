// Answers that an exported report holds in itself (src/serve/export.h). What is asked about a part of them is made here, as the server would.
import { ApiError, columnOf, type Args, type Cell, type Input, type Report, type ReportInfo, type Source, type State } from "./api";
import { parseJson } from "./json";
import { instances } from "./static/instances";
import { StaticTimeline, type Events, type Whole } from "./static/timeline";
import type { Info } from "./timeline/model";

type Place = [block: number, at: number];
interface Missing {
  status: number;
  answer: { error: string };
}

interface Index {
  version: number;
  state: State;
  blocks: string[];
  answers: Record<string, Record<string, Place | Missing>>;
}

/** Blocks of a report that is a directory come as scripts, each of which calls this. */
declare global {
  interface Window {
    opscopeBlock?: (name: string, text: string) => void;
  }
}

export function isReport(): boolean {
  return !!document.getElementById("opscope-index");
}

const OFF = "This is an exported report, which has no server to compute it. Serve the recording with `opscope serve` for that.";

async function unpack<T>(base64: string): Promise<T> {
  if (typeof DecompressionStream === "undefined") throw new ApiError(500, "This browser is too old to unpack the report: it lacks DecompressionStream.");
  const bytes = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return parseJson<T>(await new Response(stream).text());
}

function inline(id: string): string | undefined {
  return document.getElementById(`opscope-${id}`)?.textContent ?? undefined;
}

const waiting = new Map<string, (text: string) => void>();

/** The text of a block that is a file beside the page. */
function load(name: string): Promise<string> {
  window.opscopeBlock = (which, text) => waiting.get(which)?.(text);
  return new Promise((done, fail) => {
    const script = document.createElement("script");
    waiting.set(name, done);
    script.onerror = () => fail(new ApiError(500, `${name} is not beside this page, or cannot be read.`));
    script.src = name;
    document.head.append(script);
  });
}

/** As export_ask_key in src/serve/export_asks.c. */
function keyOf(path: string, args: Args): string {
  const list = Object.entries(args).filter(([k, v]) => k !== "input" && v !== undefined && v !== "").map(([k, v]) => `${k}=${v}`).sort();
  return path.replace(/^\/api\//, "") + (list.length ? "?" + list.join("&") : "");
}

/** The sums of a report told per step, as report_per in src/query/per.c has them. */
function perStep(r: Report, sums: string[], steps: number): Report {
  const at = r.columns.flatMap((c, i) => (sums.includes(c.id) ? [i] : []));
  const columns = r.columns.map((c, i) => (at.includes(i) ? { ...c, id: `${c.id}_per_step`, type: "number" as const, help: `${c.help}; per step` } : c));
  return { ...r, columns, rows: r.rows.map((cells) => cells.map((v, i) => (at.includes(i) && v !== null ? Number(v) / steps : v))) };
}

/** Only rows with the text in a cell, whatever the case of ASCII letters. */
function filtered(r: Report, text: string): Report {
  const lower = (s: string) => s.replace(/[A-Z]/g, (c) => c.toLowerCase()), wanted = lower(text);
  return { ...r, rows: r.rows.filter((cells) => cells.some((v: Cell) => typeof v === "string" && lower(v).includes(wanted))) };
}

export class StaticSource implements Source {
  readonly off = OFF;
  private index?: Promise<Index>;
  private readonly blocks = new Map<number, Promise<unknown[]>>();
  private readonly timelines = new Map<string, Promise<StaticTimeline>>();

  private opened(): Promise<Index> {
    return (this.index ??= unpack<Index>(inline("index") ?? ""));
  }

  private block(index: Index, k: number): Promise<unknown[]> {
    let b = this.blocks.get(k);
    if (!b) {
      const text = inline(index.blocks[k]);
      b = (text === undefined ? load(index.blocks[k]) : Promise.resolve(text)).then((t) => unpack<unknown[]>(t));
      this.blocks.set(k, b);
    }
    return b;
  }

  private input(index: Index, key: string): Input {
    const x = index.state.inputs.find((i) => i.input === key);
    if (!x) throw new ApiError(404, `This report holds no input ${key}.`);
    if (x.state === "failed") throw new ApiError(422, x.error ?? "It could not be read.");
    return x;
  }

  /** undefined: the report was made without it; the error that the server had, where it had one. */
  private async held<T>(path: string, args: Args): Promise<T | undefined> {
    const index = await this.opened(), input = args.input === undefined ? "" : this.input(index, String(args.input)).input;
    const found = index.answers[input]?.[keyOf(path, args)];
    if (!found) return undefined;
    if (!Array.isArray(found)) throw new ApiError(found.status === 413 ? 422 : found.status, found.answer.error);
    return (await this.block(index, found[0]))[found[1]] as T;
  }

  private async must<T>(path: string, args: Args): Promise<T> {
    const answer = await this.held<T>(path, args);
    if (answer === undefined) throw this.absent(path, args);
    return answer;
  }

  private absent(path: string, args: Args): ApiError {
    const { input, ...rest } = args;
    return new ApiError(422, `This exported report does not hold ${keyOf(path, rest)}. \`opscope serve\` with the recording shows it.`);
  }

  private timeline(input: string): Promise<StaticTimeline> {
    let t = this.timelines.get(input);
    if (!t) this.timelines.set(input, (t = this.openTimeline(input)));
    return t;
  }

  private async openTimeline(input: string): Promise<StaticTimeline> {
    const info = await this.must<Info>("/api/timeline", { input });
    try {
      return new StaticTimeline(info, { events: await this.must<Events>("/api/timeline/events", { input }), selection: await this.must<Report>("/api/timeline/select", { input, limit: 1 }) });
    } catch (e) {
      if (!(e instanceof ApiError)) throw e;
      return new StaticTimeline(info, { whole: await this.must<Whole>("/api/timeline/whole", { input }) });
    }
  }

  /** Made of what is held; undefined: that cannot be done. */
  private async made(path: string, args: Args): Promise<unknown> {
    const input = String(args.input ?? "");
    if (path === "/api/sql") throw new ApiError(422, `SQL: ${OFF}`);
    if (path === "/api/instances") {
      const { by, step, op, direction, unknown, ...rest } = args, which = { step, op, direction, unknown };
      return instances(await this.must<Report>(path, { ...rest, by: "all" }), await this.must<Report>(path, { ...rest, by }), String(by), which);
    }
    if (path === "/api/timeline/counters") return this.must(path, { input, points: 4096 });
    if (path.startsWith("/api/timeline/")) return (await this.timeline(input)).answer(path.slice("/api/timeline/".length), args);
    if (path.startsWith("/api/report/") && args.per === "step") {
      const { per, group_by, ...rest } = args, which = { input, steps: args.steps, aggregation: args.aggregation };
      await this.must(path, { ...which, limit: 1, per }); // or why not
      const list = await this.must<{ reports: ReportInfo[] }>("/api/reports", {}), info = list.reports.find((x) => path === `/api/report/${x.name}`);
      if (!info?.sums || info.per_event.includes(String(group_by))) throw new ApiError(422, `report ${info?.name ?? path} has no sums over steps here`);
      return perStep(await this.must<Report>(path, { ...rest, group_by }), info.sum_columns, (await this.must<Report>("/api/report/steps", which)).rows.length);
    }
    if (path.startsWith("/api/report/") && args.filter !== undefined) {
      const { filter, ...rest } = args, whole = await this.held<Report>(path, rest);
      if (whole && columnOf(whole, "depth") < 0) return filtered(whole, String(filter));
    }
    return undefined;
  }

  async get<T>(path: string, args: Args, signal?: AbortSignal): Promise<T> {
    const index = await this.opened();
    if (path === "/api/state") return structuredClone(index.state) as T;
    const answer = (await this.held<T>(path, args)) ?? (await this.made(path, args));
    signal?.throwIfAborted();
    if (answer === undefined) throw this.absent(path, args);
    return structuredClone(answer) as T; // pages change what they get
  }

  async file(): Promise<Blob> {
    throw new ApiError(403, OFF);
  }

  async post<T>(): Promise<T> {
    throw new ApiError(403, OFF);
  }

  async lacks(input: string): Promise<string[]> {
    const index = await this.opened();
    return Object.entries(index.answers[input] ?? {}).flatMap(([key, x]) => (Array.isArray(x) || x.status !== 413 ? [] : [`${key}: ${x.answer.error}`]));
  }

  async timelineLacks(input: string): Promise<string[]> {
    return (await this.timeline(input)).lacks();
  }
}
