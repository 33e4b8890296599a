// An OpenAI-compatible upstream for tests: a real HTTP server that records its requests and answers
// as the test specifies. Supports /v1/chat/completions without streaming.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface UpstreamRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: { model: string; messages: { role: string; content: string }[]; [field: string]: unknown };
  /** Position among all requests, from 0. */
  index: number;
  /** Time of arrival, from performance.now(), in milliseconds. */
  at: number;
}

/** Answers a request, or leaves it unanswered. */
export type UpstreamBehaviour = (res: ServerResponse, request: UpstreamRequest) => void;

export interface TestUpstream {
  /** http://127.0.0.1:port/v1: the format of SERVICE_LLM_BASE_URL. */
  url: string;
  requests: UpstreamRequest[];
  /**
   * Sets the behaviour for subsequent requests: each behaviour of a list answers one request, and
   * the last answers all further ones.
   */
  behave(...behaviours: UpstreamBehaviour[]): void;
  /** Number of requests that have no answer yet. */
  readonly open: number;
  /** Highest number of requests that were open at the same time. */
  readonly openMax: number;
  close(): Promise<void>;
}

/** Answers with a completion of this text and usage. */
export const say =
  (
    text: string,
    usage: { prompt_tokens: number; completion_tokens: number } | null = { prompt_tokens: 100, completion_tokens: 20 },
  ): UpstreamBehaviour =>
  (res, { body, index }) => {
    const completion = {
      id: `chatcmpl-${index}`,
      object: 'chat.completion',
      created: 1_700_000_000,
      model: body.model,
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      ...(usage === null ? {} : { usage: { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens } }),
    };
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(completion));
  };

/** Answers with a judgement in the format that judges request. */
export const score = (value: number, reason = 'because'): UpstreamBehaviour =>
  say(JSON.stringify({ score: value, reason }));

/** Answers with an error in the vendor's format. */
export const fail =
  (status: number, headers: Record<string, string> = {}): UpstreamBehaviour =>
  (res) => {
    const error = { message: `failing with ${status}`, type: 'test', param: null, code: null };
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify({ error }));
  };

/** Waits `ms` milliseconds, then behaves as given. */
export const after =
  (ms: number, behaviour: UpstreamBehaviour): UpstreamBehaviour =>
  (res, request) => {
    setTimeout(() => {
      if (!res.destroyed) behaviour(res, request);
    }, ms);
  };

/** Breaks the connection. */
export const drop: UpstreamBehaviour = (res) => void res.socket?.resetAndDestroy();
/** Never answers. */
export const hang: UpstreamBehaviour = () => undefined;
/** Answers with the last message of the request, word for word. */
export const echo: UpstreamBehaviour = (res, request) => {
  say(request.body.messages.at(-1)?.content ?? '')(res, request);
};

/**
 * Starts an upstream. It answers with a judgement of 5 until behave() is called. The caller's
 * afterAll must call close().
 */
export async function startUpstream(): Promise<TestUpstream> {
  const requests: UpstreamRequest[] = [];
  let behaviours: UpstreamBehaviour[] = [score(5)];
  let open = 0;
  let openMax = 0;
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const path = req.url ?? '';
      if (req.method !== 'POST' || path !== '/v1/chat/completions') {
        res.writeHead(404).end();
        return;
      }
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as UpstreamRequest['body'];
      const request: UpstreamRequest = {
        path,
        headers: req.headers,
        body,
        index: requests.length,
        at: performance.now(),
      };
      requests.push(request);
      open++;
      openMax = Math.max(openMax, open);
      res.on('close', () => open--);
      const behaviour = behaviours.length > 1 ? behaviours.shift() : behaviours[0];
      behaviour?.(res, request);
    });
    req.on('error', () => undefined);
    res.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    behave: (...list) => {
      behaviours = list;
    },
    get open() {
      return open;
    },
    get openMax() {
      return openMax;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
