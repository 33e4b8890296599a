// Streams one whole text of a span as text/plain. The store sends the length of the text before the
// text, so a response that ends early is detected, and no text is ever in memory as a whole.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { renderTemplate, readTemplate } from '../../../sql/client/template.ts';
import { ApiError } from '../../http/errors.ts';
import type { TraceDeps } from './deps.ts';
import type { TextSide } from './schema.ts';
import { CHILDREN_MAX, findSpan, placeOf, saidOf } from './span.ts';
import { readChildIds } from './store.ts';

const QUERY = 'trace_span_text';
const TEMPLATE = readTemplate('trace/text.sql');
const TIMEOUT_MS = 300_000;
/** A caller that reads nothing for this long is disconnected. */
const STALL_MS = 30_000;
/** Maximum bytes of the number that precedes a text. */
const LENGTH_BYTES_MAX = 10;

/** Serves GET /v1/traces/{trace_id}/spans/{span_id}/texts/{text}. */
export async function streamText(
  deps: TraceDeps,
  orgId: string,
  asked: { trace_id: string; span_id: string; text: TextSide },
  res: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const range = await deps.locate(orgId, asked.trace_id, signal);
  const row = await findSpan(deps, range, asked.span_id, signal);
  const params = { ...placeOf(range, row), [asked.text]: true };
  const chunks = deps.clickhouse.bytes({
    name: QUERY,
    timeoutMs: TIMEOUT_MS,
    signal,
    ...renderTemplate(TEMPLATE, params),
  });
  const first = (await beginningOf(chunks)) ?? { length: 0, rest: Buffer.alloc(0) };
  if (first.length === 0) {
    const children = await readChildIds(
      deps.clickhouse,
      { ...range, span_id: row.span_id, rows: CHILDREN_MAX },
      { signal },
    );
    const said = Buffer.from((await saidOf(deps, range, row, children, signal))?.[asked.text] ?? '');
    first.length = said.length;
    first.rest = said;
  }
  if (first.length === 0)
    throw new ApiError(
      'text_not_found',
      `The store has no ${asked.text} of this span; text_state of the span says why.`,
    );
  res.writeHead(200, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': first.length,
    'Content-Disposition': `attachment; filename="${fileName(asked)}"`,
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; sandbox",
  });
  let sent = 0;
  const send = async (bytes: Buffer): Promise<void> => {
    sent += bytes.length;
    if (bytes.length > 0 && !res.write(bytes))
      await once(res, 'drain', { signal: AbortSignal.any([signal, AbortSignal.timeout(STALL_MS)]) });
  };
  await send(first.rest);
  for await (const chunk of chunks) await send(chunk);
  if (sent !== first.length) throw new Error(`the store sent ${sent} of ${first.length} bytes of a text`);
  res.end();
}

/** Reads the length of the text; null if the store has no row. */
async function beginningOf(chunks: AsyncGenerator<Buffer>): Promise<{ length: number; rest: Buffer } | null> {
  let bytes: Buffer = Buffer.alloc(0);
  for (;;) {
    const next = await chunks.next();
    if (next.done === true) return null;
    bytes = Buffer.concat([bytes, next.value]);
    const end = bytes.findIndex((byte) => byte < 0x80);
    if (end === -1 && bytes.length < LENGTH_BYTES_MAX) continue;
    let length = 0;
    for (let at = end; at >= 0; at--) length = length * 128 + ((bytes[at] ?? 0) & 0x7f);
    return { length, rest: bytes.subarray(end + 1) };
  }
}

const fileName = ({ trace_id, span_id, text }: { trace_id: string; span_id: string; text: TextSide }): string =>
  `${trace_id}_${span_id}_${text}.txt`.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(-200);
