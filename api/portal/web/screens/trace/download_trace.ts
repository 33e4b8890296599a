// Downloads a trace as a file of one span per line.
import { errorOfAnswer, errorOfThrown, RequestError } from '../../client/error.ts';
import { toast } from '../../ui/toast.tsx';

async function readExport(org_id: string, traceId: string): Promise<Blob> {
  const answer = await fetch(`/v1/traces/${encodeURIComponent(traceId)}/export`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Org-Id': org_id },
    body: JSON.stringify({ format: 'ndjson' }),
  });
  if (answer.ok) return answer.blob();
  const body: unknown = await answer.json().catch(() => null);
  throw errorOfAnswer(answer.status, body, answer.headers);
}

/** Saves the export as a file; a failed export shows a message. */
export async function downloadTrace(org_id: string, traceId: string): Promise<void> {
  try {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(await readExport(org_id, traceId));
    link.download = `${traceId}.ndjson`;
    link.click();
    setTimeout(() => {
      URL.revokeObjectURL(link.href);
    }, 0);
  } catch (thrown) {
    const error = errorOfThrown(thrown);
    toast({ text: error instanceof RequestError ? error.detail : 'The export failed', tone: 'error' });
  }
}
