// Answers of the server that the page came from.
import { address, ApiError, type Args, type Progress, type Source } from "./api";
import { parseJson } from "./json";

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function reasonOf(answer: Response): Promise<string> {
  try {
    return ((await answer.json()) as { error: string }).error;
  } catch {
    return `the server answered ${answer.status}`;
  }
}

export class HttpSource implements Source {
  async get<T>(path: string, args: Args, signal?: AbortSignal, progress?: Progress): Promise<T> {
    const url = address(path, "input" in args ? { ...args, wait: 0 } : args);
    for (;;) {
      const answer = await fetch(url, { signal });
      if (answer.status === 202) {
        const at = (await answer.json()) as { done_bytes: number; total_bytes: number };
        progress?.(at.total_bytes > 0 ? at.done_bytes / at.total_bytes : undefined);
        await sleep(150);
        continue;
      }
      if (answer.status === 503) {
        await sleep(1000);
        continue;
      }
      if (!answer.ok) throw new ApiError(answer.status, await reasonOf(answer));
      return parseJson<T>(await answer.text());
    }
  }

  async file(path: string, args: Args, signal?: AbortSignal): Promise<Blob> {
    const answer = await fetch(address(path, args), { signal });
    if (!answer.ok) throw new ApiError(answer.status, await reasonOf(answer));
    return answer.blob();
  }

  /** The header tells the server that its own page asks. */
  async post<T>(path: string, args: Args, body: unknown): Promise<T> {
    const answer = await fetch(address(path, args), {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Opscope": "1" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new ApiError(answer.status, await reasonOf(answer));
    return (await answer.json()) as T;
  }

  async lacks(): Promise<string[]> {
    return [];
  }

  async timelineLacks(): Promise<string[]> {
    return [];
  }
}
