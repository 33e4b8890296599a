// The ingest log fills with messages for one worker's partitions while another worker is idle: the
// janitor keeps truncating the log.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { INGEST_STREAM } from '../../../schemas/streams.ts';
import { startJanitor } from '../../../pipeline/worker/log_janitor.ts';
import { logged, PARTITIONS, startTestPipeline, type TestPipeline } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });

const PARTITION = 0;
const MIB = 1024 * 1024;

let pipeline: TestPipeline;

beforeAll(async () => {
  pipeline = await startTestPipeline();
});
afterAll(() => pipeline.close());

it('an empty message moves the checkpoints of idle partitions', async () => {
  const { log } = pipeline.log;
  const kv = await log.bucket('partitions');
  const checkpointOf = async (partition: number): Promise<number> =>
    (await kv.get(`partition.${partition}`))?.json<{ checkpoint: number }>().checkpoint ?? 0;
  await log.jsm.streams.update(INGEST_STREAM, { max_bytes: 4 * MIB });
  const event = (n: number) =>
    logged('custom', {
      name: `step ${n}`,
      outcome: 'success',
      duration_ms: 1,
      trace_id: 'endless',
      filler: 'x'.repeat(MIB / 2),
    });
  for (let n = 0; n < 6; n += 1) await pipeline.log.publish([event(n)], () => PARTITION);
  await eventually(async () => (await checkpointOf(PARTITION)) >= 6, { what: 'the landing' });
  let nudged = 0;
  const before = (await log.jsm.streams.info(INGEST_STREAM)).state.last_seq;
  // The idle worker's partitions have received no messages, so its checkpoint is 0.
  const janitor = startJanitor(log, createLogger('test', 'silent'), () => Array<number>(PARTITIONS).fill(0), 50);
  try {
    await eventually(async () => (nudged = (await log.jsm.streams.info(INGEST_STREAM)).state.last_seq) > before, {
      what: 'a message',
    });
  } finally {
    janitor.stop();
  }
  for (let partition = 0; partition < PARTITIONS; partition += 1)
    await eventually(async () => (await checkpointOf(partition)) >= nudged, {
      what: `the checkpoint of partition ${partition}`,
    });
  expect((await pipeline.database.run('SELECT count() FROM spans')).trim()).toBe('6');
});
