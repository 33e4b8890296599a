// Accepts one export, whichever transport it came by: identifies the caller, takes the request
// through admission, reads the export and stores its events. Takes the headers and a function that
// reads the body within the bounds; returns what was read once the log has stored it, or throws the
// error of the contract.
import type { IncomingHttpHeaders } from 'node:http';
import type { Admission } from '../../admission/admission.ts';
import type { AdmissionRequest } from '../../admission/admission_request.ts';
import { authenticateOrg, permit } from '../../http/auth.ts';
import { isBackfill } from '../../http/backfill.ts';
import { type BodyOptions, checkJsonType, MalformedBody } from '../../http/body.ts';
import { ApiError } from '../../http/errors.ts';
import type { UserScore } from '../../../schemas/codec.ts';
import type { EdgeDeps } from '../../http/mount.ts';
import { checkPinnedVersion, VERSION_HEADER } from '../../http/version.ts';
import { InvalidOtlp } from './answer.ts';
import { scoreOfEvaluation } from './evaluations.ts';
import { type Encoding, type ReadExport, readExport, type SpanEvent } from './events.ts';
import type { Signal } from './signals.ts';

export interface AcceptDeps {
  edge: Pick<EdgeDeps, 'auth' | 'bodyBytesMax' | 'now'>;
  admission: Pick<Admission, 'begin'>;
  /**
   * Stores events as ingest does: within the budget, and acknowledged by the log.
   * @throws ApiError
   */
  store: (admission: AdmissionRequest, events: readonly SpanEvent[], spentMs: number) => Promise<void>;
  /** Stores a score until its trace arrives. @throws ApiError rate_limited */
  queuePending: (score: UserScore) => Promise<void>;
  partitions: number;
}

/** Scores that are stored at a time. */
const SCORES_AT_ONCE = 50;

/** An export that has arrived, with its body unread. */
export interface ArrivedExport {
  signal: Signal;
  headers: IncomingHttpHeaders;
  /** Null: the content type names no encoding of OTLP. */
  encoding: Encoding | null;
  /** Takes the headers that admission adds to the answer. */
  setHeader: (name: string, value: string) => void;
  /** @throws ApiError, MalformedBody */
  readBody: (options: BodyOptions) => Promise<Buffer>;
}

/** Amounts accepted, for the metrics, and the organization of the credential; empty before it is known. */
export interface Accepted {
  events: number;
  bytes: number;
  org_id: string;
}

/**
 * Accepts an export.
 * @param accepted receives the organization and the amounts as they become known
 * @throws ApiError; InvalidOtlp where the body is no export
 */
export async function acceptExport(
  arrived: ArrivedExport,
  accepted: Accepted,
  { edge, admission: door, store, queuePending, partitions }: AcceptDeps,
): Promise<ReadExport> {
  const { signal, headers, encoding } = arrived;
  const asked = { method: 'POST', headers, pathOrg: undefined };
  const credential = await authenticateOrg(asked, edge.auth);
  accepted.org_id = credential.org_id;
  const admission = door.begin('otlp', arrived.setHeader);
  try {
    const backfill = isBackfill(headers);
    admission.identified(credential.org_id, credential, { backfill });
    permit(backfill ? 'ingest:backfill' : 'ingest:write', credential, asked, edge.auth);
    checkPinnedVersion(headers[VERSION_HEADER]);
    if (encoding === null)
      throw new ApiError('unsupported_media_type', 'Content-Type: must be application/x-protobuf or application/json');
    if (encoding === 'json') checkJsonType(headers['content-type']);
    const waited = (await admission.validated()) ?? 0;
    const raw = await arrived.readBody({ bytesMax: edge.bodyBytesMax, grow: admission.reserveBytes });
    const began = performance.now() - waited;
    const read = await admission.parsing(raw.length, () =>
      readExport(raw, {
        signal,
        encoding,
        org_id: credential.org_id,
        received_at: edge.now(),
        partitions,
        backfill,
        grow: admission.reserveBytes,
      }),
    );
    admission.parsed(read.events.length);
    if (read.events.length > 0) await store(admission, read.events, performance.now() - began);
    await queueScores(
      read.evaluations.map(({ result, event_hex }) =>
        scoreOfEvaluation(result, { event_hex, credential, now: edge.now() }),
      ),
      queuePending,
    );
    accepted.events = read.events.length;
    accepted.bytes = raw.length;
    return read;
  } catch (error) {
    throw error instanceof MalformedBody ? new InvalidOtlp(`body: ${error.message}`, error) : error;
  } finally {
    admission.release();
  }
}

/** @throws ApiError; the client sends the whole export again, and what is stored is recognized */
async function queueScores(scores: readonly UserScore[], queue: AcceptDeps['queuePending']): Promise<void> {
  try {
    for (let from = 0; from < scores.length; from += SCORES_AT_ONCE)
      await Promise.all(scores.slice(from, from + SCORES_AT_ONCE).map(queue));
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    const detail = 'The evaluation results could not be stored. Send the export again.';
    throw new ApiError('upstream_unavailable', detail, { cause });
  }
}
