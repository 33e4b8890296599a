// An ingest log with several streams: every event lands exactly once, whoever owns its partition,
// whichever process is killed, and also while the number of streams changes.
import { afterEach, expect, it, vi } from 'vitest';
import { eventAt } from '../../../ops/exchange/dead_letters.ts';
import { CorrectionLog } from '../../../pipeline/jobs/correction_log.ts';
import type { LogLayout } from '../../../schemas/log_layout.ts';
import { LOG_LAYOUT_KEY } from '../../../schemas/records/log_layout.ts';
import { isIngestStream } from '../../../schemas/streams.ts';
import { StreamsPipeline, STREAM_PARTITIONS } from '../../support/streams_pipeline.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 });

let pipeline: StreamsPipeline;

afterEach(() => pipeline.close());

/** Waits until everything has landed, and checks that each event is counted once everywhere. */
async function expectEachOnce(): Promise<void> {
  await pipeline.landed();
  const events = pipeline.acknowledged;
  const each = { rows: events, events, positions: events, used: events, traces: events };
  // Traces and usage land a moment before or after the spans of the same batch.
  await eventually(async () => Object.values(await pipeline.counts()).every((count) => count >= events), {
    what: 'usage and traces',
  });
  expect(await pipeline.counts()).toEqual(each);
}

/** Waits until each trace is complete, and checks that its completion was published under one id. */
async function expectEachComplete(): Promise<void> {
  const completed = async () =>
    (await toldEvents(pipeline.log)).filter(({ event }) => event === 'trace.completed').map(({ event_id }) => event_id);
  await eventually(async () => new Set(await completed()).size >= pipeline.acknowledged, { what: 'trace.completed' });
  expect(new Set(await completed()).size).toBe(pipeline.acknowledged);
}

/** Returns the names of the streams of the log that exist. */
async function streamNames(): Promise<string[]> {
  const names: string[] = [];
  for await (const name of pipeline.log.jsm.streams.names()) if (isIngestStream(name)) names.push(name);
  return names.toSorted();
}

/** Resolves once a layout matches, as this process hears of it. */
async function layoutWith(matches: (layout: LogLayout) => boolean, what: string): Promise<LogLayout> {
  const { streams } = pipeline.log;
  if (!matches(streams.layout)) {
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => {
        reject(new Error(`no layout with ${what}`));
      }, 60_000);
      const stop = streams.onChange((layout) => {
        if (!matches(layout)) return;
        clearTimeout(late);
        stop();
        resolve();
      });
    });
  }
  return streams.layout;
}

it.each([2, 4])('with %i streams, each event of each partition lands once although its worker is killed', async (n) => {
  pipeline = await StreamsPipeline.start(n);
  const [first, second] = [pipeline.worker(n), pipeline.worker(n)];
  await Promise.all([first.ready, second.ready]);
  for (let round = 0; round < 10; round += 1) await pipeline.publish(40);
  first.kill('SIGKILL');
  for (let round = 0; round < 10; round += 1) await pipeline.publish(40);
  await expectEachOnce();
  second.kill('SIGKILL');
  await second.exited;
  await pipeline.publish(40);
  await pipeline.worker(n).ready;
  await expectEachOnce();
  await expectEachComplete();

  expect(await streamNames()).toHaveLength(n);
  for (const name of await streamNames())
    expect((await pipeline.log.jsm.streams.info(name)).state.messages).toBeGreaterThan(0);
  const rows = await pipeline.database.run(
    'SELECT trace_id, partition, log_seq, log_index FROM spans ORDER BY cityHash64(trace_id) LIMIT 50 FORMAT TSV',
  );
  for (const [trace_id, , log_seq, log_index] of rows
    .trim()
    .split('\n')
    .map((line) => line.split('\t')))
    expect(await eventAt(pipeline.log, Number(log_seq), Number(log_index))).toMatchObject({ event: { trace_id } });
});

it('a job that waits for everything in the log waits for each stream, while further events arrive', async () => {
  pipeline = await StreamsPipeline.start(3);
  await pipeline.publish(200);
  const stop = pipeline.load();
  const landed = new CorrectionLog(pipeline.log, STREAM_PARTITIONS).untilLanded(AbortSignal.timeout(60_000));
  await pipeline.worker(3).ready;
  await landed;
  expect((await pipeline.counts()).events).toBeGreaterThanOrEqual(200);
  await stop();
});

it.each([
  [1, 4],
  [4, 2],
  [2, 1],
])('a change from %i to %i streams while events arrive lands each event once', async (before, after) => {
  pipeline = await StreamsPipeline.start(before);
  const old = pipeline.worker(before);
  await old.ready;
  await pipeline.publish(100);
  // Unlanded events of a former worker must be read from the old streams.
  old.kill('SIGKILL');
  await old.exited;
  await pipeline.publish(100);
  const stop = pipeline.load();
  await pipeline.worker(after).ready;
  await layoutWith((layout) => !layout.isChanging && layout.open.length === after, `${after} streams alone`);
  await stop();
  await pipeline.publish(20);
  await expectEachOnce();
  await expectEachComplete();
  expect(await streamNames()).toEqual(pipeline.log.streams.layout.streams.map(({ name }) => name).toSorted());
});

/** Writes into the record that the log shall have 4 streams, as the first step of a change. */
async function wishForFour(): Promise<void> {
  const kv = await pipeline.log.bucket('service');
  await kv.put(LOG_LAYOUT_KEY, JSON.stringify({ ...pipeline.log.streams.layout.record, next: 4 }));
}

it.each([
  ['has written what it wishes', wishForFour],
  [
    'has closed the old stream',
    async () => {
      await wishForFour();
      await pipeline.log.jsm.streams.update('INGEST', { subjects: ['ingest_end.1.0'] });
    },
  ],
  [
    'has created the new streams',
    async () => {
      await wishForFour();
      await pipeline.log.streams.complete();
      await pipeline.publish(50);
    },
  ],
])('a change of a process that was killed when it %s is completed by the next worker', async (_when, begin) => {
  pipeline = await StreamsPipeline.start(1);
  await pipeline.publish(300);
  await begin();
  await pipeline.worker(4).ready;
  await layoutWith((layout) => !layout.isChanging && layout.open.length === 4, '4 streams alone');
  await pipeline.publish(50);
  await expectEachOnce();
  expect(await streamNames()).toEqual(['INGEST_2_0', 'INGEST_2_1', 'INGEST_2_2', 'INGEST_2_3']);
});

it('workers that are killed one after the other while the number changes lose and double no event', async () => {
  pipeline = await StreamsPipeline.start(1);
  await pipeline.publish(300);
  const stop = pipeline.load();
  const steps = [
    (layout: LogLayout) => layout.isChanging,
    (layout: LogLayout) => layout.record.generations.length === 2,
    (layout: LogLayout) => layout.streams[0]?.end !== null,
  ];
  for (const step of steps) {
    const worker = pipeline.worker(4);
    await layoutWith((layout) => step(layout) || layout.open.length === 4, 'the step');
    worker.kill('SIGKILL');
    await worker.exited;
  }
  await pipeline.worker(4).ready;
  await layoutWith((layout) => !layout.isChanging && layout.open.length === 4, '4 streams alone');
  await stop();
  await expectEachOnce();
});

it('more streams than partitions stop a worker with a line that names the setting and what is accepted', async () => {
  pipeline = await StreamsPipeline.start(1);
  await expect(pipeline.worker(9).ready).rejects.toThrow(
    `SERVICE_LOG_STREAMS is 9; the ingest log has ${STREAM_PARTITIONS} partitions, so it must be at most that`,
  );
});
