// Answers of the server that the page came from.
import { address, ApiError, type Args, type Progress, type Source } from "./api";
import { parseJson } from "./json";

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** By this header the server knows its own page: what an input lacks comes as 200, with the status aside, so that browsers log no error. */
const OURS = { "X-Opscope": "1" };
const statusOf = (answer: Response) => Number(answer.headers.get("X-Opscope-Status")) || answer.status;

/** Without an answer, as where the server has ended or the browser leaves the page, there is a reason, too. */
function ask(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, init).catch((e) => {
    throw e instanceof TypeError ? new ApiError(0, "The server does not answer. It may have ended.") : e;
  });
}

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
      const answer = await ask(url, { signal, headers: OURS });
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
      if (statusOf(answer) >= 400) throw new ApiError(statusOf(answer), await reasonOf(answer));
      return parseJson<T>(await answer.text());
    }
  }

  async file(path: string, args: Args, signal?: AbortSignal): Promise<Blob> {
    const answer = await ask(address(path, args), { signal, headers: OURS });
    if (statusOf(answer) >= 400) throw new ApiError(statusOf(answer), await reasonOf(answer));
    return answer.blob();
  }

  async post<T>(path: string, args: Args, body: unknown): Promise<T> {
    const answer = await ask(address(path, args), {
      method: "POST",
      headers: { "Content-Type": "application/json", ...OURS },
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
