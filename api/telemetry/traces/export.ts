// Exports a trace of any size as a file: spans are read as they are written, a few at a time with
// their texts and children. The trace is never wholly in memory. The response begins once the first
// spans are read, so an unavailable store is an error response; a store that fails later breaks the
// response off, so a file that ends properly is complete.
import type { ServerResponse } from 'node:http';
import type { SpanTexts } from '../../../pipeline/domain/conversation/span_messages.ts';
import type { PiiRedactor, Redaction } from '../../../pipeline/domain/pii/pii.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { SpanItem } from '../../http/trace_items.ts';
import { type WrittenAnswers, writePart } from '../../http/written_answers.ts';
import { locateTrace, traceNotFound } from './locate.ts';
import type { ExportBody } from './schema.ts';
import { readChildren, type SpanRow, streamSpans, type TraceRange } from './store.ts';
import { messagesOf, placeKey, shownTexts, spanItem, textsOf } from './tree.ts';

/** A chunk ends at this many spans, or at this many bytes of their events. */
const CHUNK_SPANS_MAX = 500;
const CHUNK_BYTES_MAX = 8 * 1024 * 1024;

const MEDIA = { json: 'application/json', ndjson: 'application/x-ndjson' } as const;

export interface ExportDeps {
  /** Returns the redactor for the exports of an organization. */
  exporterOf: (org_id: string) => PiiRedactor;
  written: WrittenAnswers;
}

/** Options of an export; `redactor` replaces personal data, null keeps it. */
type ExportOptions = Omit<ExportBody, 'anonymize_pii'> & { redactor: PiiRedactor | null };

/** Writes the file to the response and ends the response. */
export async function exportTrace(
  clickhouse: ClickHouse,
  orgId: string,
  traceId: string,
  options: ExportOptions,
  res: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const range = await locateTrace(clickhouse, orgId, traceId, signal);
  const chunks = itemChunks(clickhouse, range, options, signal);
  const first = await chunks.next();
  if (first.done === true) throw traceNotFound();
  const json = options.format === 'json';
  const name = `${traceId.replaceAll(/[^A-Za-z0-9_.-]/g, '_')}.${options.format}`;
  res.writeHead(200, {
    'Content-Type': MEDIA[options.format],
    'Content-Disposition': `attachment; filename="${name}"`,
  });
  const lines = (items: readonly SpanItem[]): string =>
    items.map((item) => JSON.stringify(item)).join(json ? ',' : '\n');
  await writePart(
    res,
    `${json ? `{"trace_id":${JSON.stringify(traceId)},"spans":[` : ''}${lines(first.value)}`,
    signal,
  );
  for await (const items of chunks) await writePart(res, `${json ? ',' : '\n'}${lines(items)}`, signal);
  res.end(json ? ']}' : '\n');
}

async function* itemChunks(
  clickhouse: ClickHouse,
  range: TraceRange,
  options: ExportOptions,
  signal: AbortSignal,
): AsyncGenerator<SpanItem[]> {
  for await (const rows of rowChunks(streamSpans.stream(clickhouse, range, { signal }))) {
    const wanted = options.include_prompts || options.include_responses;
    const [texts, families] = await Promise.all([
      wanted ? textsOf(clickhouse, range, rows, { signal }) : null,
      readChildren(clickhouse, { ...range, span_ids: rows.map((row) => row.span_id) }, { signal }),
    ]);
    const children = new Map(families.map((family) => [family.parent_span_id, family.children]));
    const parents = families.filter((family) => wanted && family.has_messages).map((family) => family.parent_span_id);
    const said = await messagesOf(clickhouse, range, parents, signal);
    const items: SpanItem[] = [];
    for (const row of rows) {
      const own = (children.get(row.span_id) ?? []).filter((id) => id !== row.span_id);
      const shown = shownTexts(row, texts?.get(placeKey(row)), said);
      items.push(await shaped(spanItem(row, asked(shown, options), own), options));
    }
    yield items;
  }
}

/** Splits blocks of rows into chunks of bounded size as they arrive. */
export async function* rowChunks(blocks: AsyncIterable<readonly SpanRow[]>): AsyncGenerator<SpanRow[]> {
  let chunk: SpanRow[] = [];
  let bytes = 0;
  for await (const block of blocks) {
    for (const row of block) {
      chunk.push(row);
      bytes += row.storage_bytes;
      if (chunk.length < CHUNK_SPANS_MAX && bytes < CHUNK_BYTES_MAX) continue;
      yield chunk;
      chunk = [];
      bytes = 0;
    }
  }
  if (chunk.length > 0) yield chunk;
}

/** Returns the requested texts: attributes that refer to the others must not bring them back. */
function asked(texts: SpanTexts | undefined, options: ExportOptions): SpanTexts | undefined {
  if (texts === undefined) return undefined;
  return {
    ...texts,
    prompt: options.include_prompts ? texts.prompt : '',
    response: options.include_responses ? texts.response : '',
  };
}

async function shaped(item: SpanItem, options: ExportOptions): Promise<SpanItem> {
  const { prompt, response, ...rest } = item;
  const kept = {
    ...rest,
    ...(options.include_prompts && prompt !== undefined ? { prompt } : {}),
    ...(options.include_responses && response !== undefined ? { response } : {}),
  };
  if (options.redactor === null) return kept;
  return options.redactor.redact((redaction) => redactedItem(kept, redaction));
}

function redactedItem(kept: SpanItem, redaction: Redaction): SpanItem {
  return {
    ...kept,
    name: redaction.text(kept.name),
    tags: kept.tags.map((tag) => redaction.text(tag)),
    // Replaced before the attributes, which may repeat these texts.
    ...(kept.prompt === undefined ? {} : { prompt: redaction.textOrJson(kept.prompt) }),
    ...(kept.response === undefined ? {} : { response: redaction.textOrJson(kept.response) }),
    attributes: redaction.fields(kept.attributes),
  };
}
