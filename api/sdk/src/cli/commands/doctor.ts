// Checks the way from this machine into the service and back: address, key, clock, and one span that
// is sent and read again.
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { MillraceClient } from '../../client.ts';
import { MillraceError } from '../../errors.ts';
import { type Call, type Command, EXIT, type ExitCode, Unreachable } from '../command.ts';
import { milliseconds } from '../output.ts';
import type { Column, Tone } from '../table.ts';

/** The service refuses events that began further in the future. */
const CLOCK_MS_MAX = 300_000;
/** Beyond this, durations across machines mislead. */
const CLOCK_MS_WARN = 5000;
const ASK_EVERY_MS = 200;

interface Check {
  check: string;
  status: 'ok' | 'warning' | 'failed' | 'skipped';
  ms: number | null;
  detail: string;
}

const TONES: Readonly<Record<Check['status'], Tone | null>> = {
  ok: null,
  warning: 'warning',
  failed: 'bad',
  skipped: 'faint',
};

const COLUMNS: readonly Column<Check>[] = [
  { title: 'CHECK', value: ({ check }) => check },
  { title: 'STATUS', value: ({ status }) => status, tone: ({ status }) => TONES[status] },
  { title: 'TIME', value: ({ ms }) => (ms === null ? null : milliseconds(ms)), isRight: true },
  { title: 'DETAIL', value: ({ detail }) => detail },
];

export const doctor: Command = {
  name: 'doctor',
  usage: '',
  about: 'Checks address, key and clock, sends a span and waits until it can be read',
  args: [0, 0],
  options: {
    timeout: { type: 'string', value: 'SECONDS', about: 'How long to wait for the span. Default: 30' },
  },
  run: async ({ client, given, out, signal }) => {
    const seconds = given.whole('timeout', { min: 1, max: 600, fallback: 30 });
    const checks: Check[] = [];
    let code: ExitCode = EXIT.ok;
    try {
      for await (const check of diagnose(client, seconds * 1000, signal)) {
        checks.push(check);
        if (!out.isTable) await out.json(check);
        if (check.status === 'failed') code = EXIT.refused;
      }
    } finally {
      if (out.isTable) await out.records(checks, COLUMNS);
    }
    return code;
  },
};

/** @throws MillraceError, Unreachable */
async function* diagnose(client: MillraceClient, waitMs: number, signal: Call['signal']): AsyncGenerator<Check> {
  const [about, aboutMs] = await timed(() => client.ask('GET', '/v1/about', { signal }));
  const { data } = (await about.json()) as { data: { version: string; environment: string } };
  const detail = `${client.url}, API ${data.version}, ${data.environment}`;
  yield { check: 'address', status: 'ok', ms: aboutMs, detail };
  yield clockCheck(about.headers.get('date'));
  const trace_id = randomBytes(16).toString('hex');
  const [, sentMs] = await timed(() => sendSpan(client, trace_id, signal));
  yield { check: 'send', status: 'ok', ms: sentMs, detail: `span of trace ${trace_id} acknowledged` };
  const began = performance.now();
  for (;;) {
    const state = await client.get(`/v1/traces/${trace_id}`).then(() => 'there' as const, stateOf);
    const ms = Math.round(performance.now() - began);
    if (state === 'forbidden') {
      yield { check: 'read', status: 'skipped', ms: null, detail: 'the key may not read traces (scope traces:read)' };
      return;
    }
    if (state === 'there') {
      yield { check: 'read', status: 'ok', ms, detail: 'the span can be read' };
      return;
    }
    if (ms > waitMs)
      throw new Unreachable(`the span could not be read within ${waitMs / 1000} s: is the pipeline running?`);
    await pause(ASK_EVERY_MS, undefined, { signal });
  }
}

function stateOf(error: unknown): 'absent' | 'forbidden' {
  if (error instanceof MillraceError && error.code === 'trace_not_found') return 'absent';
  if (error instanceof MillraceError && error.code === 'forbidden') return 'forbidden';
  throw error;
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const began = performance.now();
  const result = await work();
  return [result, Math.round(performance.now() - began)];
}

function clockCheck(date: string | null): Check {
  // The header has whole seconds, so its time is half a second early on average.
  const ahead = Date.now() - (Date.parse(date ?? '') + 500);
  if (Number.isNaN(ahead))
    return { check: 'clock', status: 'skipped', ms: null, detail: 'the answer has no Date header' };
  const off = Math.abs(ahead);
  const status = off > CLOCK_MS_MAX ? 'failed' : off > CLOCK_MS_WARN ? 'warning' : 'ok';
  const detail =
    off <= 1000 ? 'agrees with the service' : `${milliseconds(off)} ${ahead > 0 ? 'ahead of' : 'behind'} the service`;
  return { check: 'clock', status, ms: null, detail };
}

/** Sends a span by OTLP, as applications do. */
async function sendSpan(client: MillraceClient, traceId: string, signal: AbortSignal): Promise<void> {
  const nanos = `${Date.now()}000000`;
  const span = {
    traceId,
    spanId: randomBytes(8).toString('hex'),
    name: 'millrace doctor',
    kind: 1,
    startTimeUnixNano: nanos,
    endTimeUnixNano: nanos,
    attributes: [{ key: 'tags', value: { arrayValue: { values: [{ stringValue: 'millrace-doctor' }] } } }],
  };
  const service = { key: 'service.name', value: { stringValue: 'millrace-doctor' } };
  const body = { resourceSpans: [{ resource: { attributes: [service] }, scopeSpans: [{ spans: [span] }] }] };
  const { partialSuccess } = await client.request<{ partialSuccess?: { errorMessage?: string } }>(
    'POST',
    '/v1/traces',
    {
      body,
      signal,
    },
  );
  if (partialSuccess?.errorMessage !== undefined && partialSuccess.errorMessage !== '')
    throw new MillraceError(`the service rejected the span: ${partialSuccess.errorMessage}`, { status: 422 });
}
