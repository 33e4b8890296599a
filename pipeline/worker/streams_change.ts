// Brings the number of streams of the ingest log to SERVICE_LOG_STREAMS, once in the life of a
// worker. It waits while an earlier change is under way, because each change must have landed before
// the next. Workers that differ in the setting therefore change the number at most once each.
import type { Env } from '../../ops/platform/env.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';

const LOOK_MS = 1000;

export interface StreamsChangeDeps {
  env: Pick<Env, 'SERVICE_LOG_STREAMS'>;
  log: Pick<Log, 'streams'>;
  logger: Logger;
  /** Number of partitions of the log. */
  partitions: number;
}

/** Starts to wait for the change, and returns what stops it. A change that has begun is not stopped. */
export function startStreamsChange({ env, log, logger, partitions }: StreamsChangeDeps): () => void {
  const wanted = env.SERVICE_LOG_STREAMS;
  let isStopped = false;
  let timer: NodeJS.Timeout | null = null;
  const look = async (): Promise<void> => {
    const before = log.streams.layout.open.length;
    const isDone = await log.streams.change(wanted, partitions).catch((error: unknown) => {
      logger.warn({ err: error, streams: wanted }, 'the number of streams could not be changed; trying again');
      return false;
    });
    if (isDone && before !== wanted)
      logger.info({ before, streams: wanted }, 'the ingest log has another number of streams');
    if (!isDone && !isStopped) timer = setTimeout(() => void look(), LOOK_MS);
  };
  void look();
  return () => {
    isStopped = true;
    if (timer !== null) clearTimeout(timer);
  };
}
