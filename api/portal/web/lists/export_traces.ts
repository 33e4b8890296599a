// Exports traces into one NDJSON file: one request after another, each read as it streams. The file is
// made in the browser's memory, which EXPORT_BYTES_MAX bounds.
import { errorOfAnswer, errorOfThrown } from '../client/error.ts';
import { download } from './download.ts';

const EXPORT_BYTES_MAX = 256_000_000;

interface ExportOptions {
  /** True: the service replaces personal data by the organization's PII policy. */
  anonymize: boolean;
  signal: AbortSignal;
  /** Called with the number of traces that are done. */
  onProgress: (done: number) => void;
}

/**
 * Downloads the traces as a file.
 * @returns truncated true if the file reached its maximum size before the last trace
 * @throws RequestError
 */
export async function exportTraces(
  org_id: string,
  trace_ids: readonly string[],
  { anonymize, signal, onProgress }: ExportOptions,
): Promise<{ truncated: boolean }> {
  const parts: Blob[] = [];
  let bytes = 0;
  for (const [at, trace_id] of trace_ids.entries()) {
    onProgress(at);
    const part = await exportOne(org_id, trace_id, anonymize, signal);
    bytes += part.size;
    if (bytes > EXPORT_BYTES_MAX) break;
    parts.push(part);
  }
  download(new Blob(parts, { type: 'application/x-ndjson' }), `traces-${parts.length}.ndjson`);
  return { truncated: bytes > EXPORT_BYTES_MAX };
}

async function exportOne(org_id: string, trace_id: string, anonymize_pii: boolean, signal: AbortSignal): Promise<Blob> {
  let answer: Response;
  try {
    answer = await fetch(`/v1/traces/${encodeURIComponent(trace_id)}/export`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Org-Id': org_id },
      body: JSON.stringify({ format: 'ndjson', anonymize_pii }),
      signal,
    });
    if (answer.ok) return new Blob([withTraceId(await answer.text(), trace_id)]);
  } catch (thrown) {
    throw errorOfThrown(thrown);
  }
  const body: unknown = await answer.json().catch(() => null);
  throw errorOfAnswer(answer.status, body, answer.headers);
}

/** Returns the lines with the id of their trace in front, which the spans of one trace do not repeat. */
function withTraceId(ndjson: string, trace_id: string): string {
  const lines = ndjson.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => `{"trace_id":${JSON.stringify(trace_id)},${line.slice(1)}\n`).join('');
}
