// Timed requests to the reads of the service: one request at a time on a kept connection, timed from
// the request to the last byte of the answer.
import { Agent, request } from 'node:http';
import { z } from 'zod';
import { percentile, thousands } from './report.ts';
import type { Target } from './target.ts';

/** Runs of each read before those that count. */
export const WARM_RUNS = 2;

const answerShape = z.looseObject({ data: z.unknown(), meta: z.looseObject({}) });
type Answer = z.infer<typeof answerShape>;

interface Timed {
  ms: number;
  status: number;
  body: Buffer;
}

/** A path that is read, or a body that is sent to one. */
export type Ask = string | { path: string; body: unknown };

/** One kept connection to the service. */
export class Reader {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
  }

  get(ask: Ask): Promise<Timed> {
    const { url, org, key } = this.#target;
    const { path, body } = typeof ask === 'string' ? { path: ask, body: undefined } : ask;
    const headers = { authorization: `Bearer ${key}`, 'x-org-id': org, 'content-type': 'application/json' };
    const began = performance.now();
    return new Promise((resolve, reject) => {
      const req = request(
        url + path,
        { agent: this.#agent, method: body === undefined ? 'GET' : 'POST', headers },
        (res) => {
          const chunks: Buffer[] = [];
          res.on('data', (chunk: Buffer) => chunks.push(chunk));
          res.on('end', () => {
            resolve({ ms: performance.now() - began, status: res.statusCode ?? 0, body: Buffer.concat(chunks) });
          });
          res.on('error', reject);
        },
      );
      req.on('error', reject);
      req.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** @throws Error naming path, status and detail when the answer is not a success */
  async answer(ask: Ask): Promise<{ ms: number; answer: Answer }> {
    const { ms, status, body } = await this.get(ask);
    if (status !== 200)
      throw new Error(`${typeof ask === 'string' ? ask : ask.path}: ${status} ${body.toString('utf8').slice(0, 200)}`);
    return { ms, answer: answerShape.parse(JSON.parse(body.toString('utf8'))) };
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Milliseconds. */
export interface Bars {
  p50?: number;
  p99?: number;
}

/** One kind of read, with the time of each run. */
export interface Measured {
  what: string;
  bars?: Bars;
  times: number[];
  /** Errors instead of answers. */
  failed?: string[];
  note: string;
}

/** A read that fails this often is not repeated, so that the others are still measured. */
const FAILED_MAX = 3;

const rows = ({ data }: Answer): number => (Array.isArray(data) ? data.length : 0);

/**
 * Times one kind of read.
 * @param ask returns the request of the next run
 * @param warm runs before those that count
 */
export async function timed(
  reader: Reader,
  what: string,
  runs: number,
  ask: () => Ask,
  bars?: Bars,
  warm = WARM_RUNS,
): Promise<Measured> {
  const times: number[] = [];
  const shown: number[] = [];
  const failed: string[] = [];
  let meta: Answer['meta'] = {};
  for (let run = -warm; run < runs && failed.length < FAILED_MAX; run += 1) {
    const asked = await reader.answer(ask()).catch((error: unknown) => {
      failed.push(error instanceof Error ? error.message : String(error));
      return null;
    });
    if (asked === null) continue;
    const { ms, answer } = asked;
    meta = answer.meta;
    if (run >= 0) {
      times.push(ms);
      shown.push(rows(answer));
    }
  }
  const facts = [
    shown.some((count) => count > 0) ? `${thousands(percentile(shown, 0.5))} rows` : '',
    typeof meta['total'] === 'number' ? `total ${thousands(meta['total'])}` : '',
    meta['truncated'] === true
      ? `truncated${typeof meta['candidates'] === 'number' ? `, ${thousands(meta['candidates'])} candidates` : ''}`
      : '',
    ...failed.slice(0, 1).map((first) => `${failed.length} failed, such as ${first}`),
  ];
  return {
    what,
    times,
    failed,
    note: facts.filter((fact) => fact !== '').join(', '),
    ...(bars === undefined ? {} : { bars }),
  };
}
