// Sends pieces in batches, some requests at a time. A batch that the service refuses is sent again in
// halves until the pieces at fault are found; those are reported, and all others are stored.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { MillraceClient } from '../../client.ts';
import { MillraceError } from '../../errors.ts';
import type { Piece, Target } from './piece.ts';

const compress = promisify(gzip);
/** Characters of a body; the service takes 5 MiB. */
const BODY_CHARS_MAX = 1024 * 1024;
const REQUESTS_MAX = 4;
/** Statuses that say that the body is at fault. */
const FAULTY = new Set([400, 413, 422]);

interface Sent {
  line: number;
  piece: Piece;
}

export interface SenderOptions {
  client: MillraceClient;
  signal: AbortSignal;
  /** Called for records that the service did not take. */
  onRejected: (line: number, records: number, reason: string) => void;
}

interface OtlpAnswer {
  partialSuccess?: { rejectedSpans?: string | number; rejectedLogRecords?: string | number; errorMessage?: string };
}

export class Sender {
  readonly #options: SenderOptions;
  readonly #batches = new Map<Target, { sent: Sent[]; chars: number }>();
  readonly #running = new Map<Promise<void>, number>();
  #failure: unknown = null;
  /** Records that the service has stored. */
  accepted = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Takes a piece. Resolves when there is room for another. @throws MillraceError of an earlier batch */
  async add(line: number, piece: Piece): Promise<void> {
    const batch = this.#batches.get(piece.target) ?? { sent: [], chars: 0 };
    if (batch.chars + piece.text.length > BODY_CHARS_MAX && batch.sent.length > 0) {
      await this.#start(batch.sent);
      batch.sent = [];
      batch.chars = 0;
    }
    batch.sent.push({ line, piece });
    batch.chars += piece.text.length;
    this.#batches.set(piece.target, batch);
    if (batch.sent.length < piece.target.piecesMax) return;
    this.#batches.delete(piece.target);
    await this.#start(batch.sent);
  }

  /** Sends what waits. Resolves when everything was answered. @throws MillraceError */
  async end(): Promise<void> {
    for (const { sent } of this.#batches.values()) await this.#start(sent);
    this.#batches.clear();
    await Promise.all(this.#running.keys());
    this.#check();
  }

  /** The first line that may not be stored yet; every line before it was answered. */
  firstOpen(next: number): number {
    const waiting = [...this.#batches.values()].map(({ sent }) => sent[0]?.line ?? next);
    return Math.min(next, ...waiting, ...this.#running.values());
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure as Error;
  }

  async #start(sent: readonly Sent[]): Promise<void> {
    this.#check();
    const running = this.#send(sent).then(
      () => {
        this.#running.delete(running);
      },
      // The batch stays among the running ones, so that its lines are not taken for stored.
      (error: unknown) => {
        this.#failure ??= error;
      },
    );
    this.#running.set(running, sent[0]?.line ?? 0);
    if (this.#running.size >= REQUESTS_MAX) await Promise.race(this.#running.keys());
    this.#check();
  }

  async #send(sent: readonly Sent[]): Promise<void> {
    const [first] = sent;
    if (first === undefined) return;
    const { client, signal, onRejected } = this.#options;
    const { path, open, close } = first.piece.target;
    const body = await compress(open + sent.map(({ piece }) => piece.text).join(',') + close);
    const records = sent.reduce((sum, { piece }) => sum + piece.records, 0);
    try {
      const answer = await client.request<OtlpAnswer>('POST', path, {
        body,
        headers: { 'content-encoding': 'gzip', 'x-service-backfill': 'true' },
        signal,
      });
      const { rejectedSpans, rejectedLogRecords, errorMessage = '' } = answer.partialSuccess ?? {};
      const rejected = Number(rejectedSpans ?? rejectedLogRecords ?? 0);
      this.accepted += records - rejected;
      if (rejected > 0) onRejected(first.line, rejected, errorMessage);
    } catch (error) {
      if (!(error instanceof MillraceError) || !FAULTY.has(error.status ?? 0)) throw error;
      if (sent.length === 1) {
        onRejected(first.line, records, error.message);
        return;
      }
      const half = Math.ceil(sent.length / 2);
      await this.#send(sent.slice(0, half));
      await this.#send(sent.slice(half));
    }
  }
}
