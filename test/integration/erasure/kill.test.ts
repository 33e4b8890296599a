// Worker processes that erase, each killed at another step: the next worker erases the same traces
// to the end, and reports the counts from before the first step. Dead letters that name the person
// are erased too.
import { type ChildProcess, fork } from 'node:child_process';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { ErasureRequests } from '../../../ops/exchange/erase_requests.ts';
import { JobRecords } from '../../../ops/exchange/job_records.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { publishRecord } from '../../../ops/platform/nats/publish_record.ts';
import { openSealer } from '../../../ops/platform/sealing.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { DEAD_LETTERS_STREAM, deadLetterSubject } from '../../../schemas/streams.ts';
import { deadLetterCodec } from '../../../schemas/codec.ts';
import { ERASE } from '../../../schemas/records/erasure.ts';
import { type LongJob, newLongJob } from '../../../schemas/records/job_record.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { aText, DAY, openCold, type TestCold } from '../retention/a_cold.ts';

/** Speed-up of the leases: they expire after 2.4 s of silence instead of 12 s. */
const HURRY = 5;
let nats: TestNats;
let cold: TestCold;
/** Second shard, whose objects are in the same folder. */
let other: TestCold;
let log: Log;
let records: JobRecords;
let asks: ErasureRequests;
let made = 0;
const children: ChildProcess[] = [];

beforeAll(async () => {
  [nats, cold] = await Promise.all([startTestNats(), openCold()]);
  other = await openCold(`file://${cold.folder}/objects`, 'b');
  log = await openLog(await connectNats({ url: nats.url, name: 'test', waitMs: 5000 }), {
    replicas: 1,
    logBytesMax: 64 * 1024 * 1024,
  });
  records = await JobRecords.open(log, () => undefined);
  asks = await ErasureRequests.open(log, await openSealer(log, undefined));
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await cold.clean();
  await other.clean();
});
afterAll(async () => {
  records.close();
  await log.nc.close();
  await nats.remove();
  await cold.close();
  await other.close();
});

/** Starts a worker that pauses at the given step. */
function aWorker(step: string, shards: readonly TestCold[] = [cold]): ChildProcess {
  made += 1;
  const child = fork(new URL('../../support/erase_worker.ts', import.meta.url), [], {
    env: {
      ...process.env,
      TEST_NATS_URL: nats.url,
      TEST_CLICKHOUSE_URL: shards.map(({ store }) => store.database.url).join(' '),
      TEST_OBJECTS: `file://${cold.folder}/objects`,
      TEST_TEMP: path.join(cold.folder, 'tmp'),
      TEST_STEP: step,
      TEST_WORKER: `w${made}`,
      TEST_HURRY: String(HURRY),
    },
  });
  children.push(child);
  return child;
}

async function killAt(step: string, shards?: readonly TestCold[]): Promise<void> {
  const child = aWorker(step, shards);
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const said = await Promise.race([
    new Promise((resolve) => child.once('message', resolve)),
    exited.then((code) => `ended with ${String(code)}`),
  ]);
  expect(said).toBe(step);
  child.kill('SIGKILL');
  await exited;
}

async function ask(attribute: string, value: string): Promise<() => LongJob | undefined> {
  made += 1;
  const job_id = `job_${made.toString(16).padStart(16, '0')}`;
  const args = { attribute, ask_id: await asks.create('org_a', value) };
  await records.create(
    newLongJob({ job_id, org_id: 'org_a', kind: ERASE, args, created_at: new Date().toISOString() }),
  );
  return () => records.all().find((job) => job.job_id === job_id);
}

async function bury(trace_id: string, text: string, org_id = 'org_a'): Promise<void> {
  made += 1;
  const letter = {
    stage: 'decode',
    reason: 'invalid',
    detail: '',
    partition: 0,
    log_seq: made,
    log_index: 0,
    died_at: 0,
    org_id,
    format: 'custom',
    event_hex: '',
    trace_id,
    received_at: 0,
    body: Buffer.from(text),
  };
  await publishRecord(log, deadLetterSubject('decode'), deadLetterCodec, letter, {
    msgID: `dead-${made}`,
    timeoutMs: 5000,
  });
}

/**
 * Lands texts of two people, in cold storage and in the store. Each trace of the first person has a
 * step that names no person.
 */
async function landBoth(): Promise<void> {
  for (const name of ['cold', 'warm']) {
    await cold.land([
      aText(DAY, { trace_id: `ann_${name}`, user_id: 'ann' }),
      aText(DAY, { trace_id: `ann_${name}` }),
      aText(DAY, { trace_id: `bob_${name}`, user_id: 'bob' }),
      aText(DAY + 1, { trace_id: `bob_${name}`, user_id: 'bob' }),
      { ...aText(DAY, { trace_id: `ann_${name}`, user_id: 'ann' }), org_id: 'org_b' },
    ]);
    if (name === 'cold') await cold.retire(DAY + 31);
  }
}

it('an erasure killed at one step after the other is carried out to the end', async () => {
  await landBoth();
  await bury('ann_cold', 'of the trace');
  await bury('other', '{"user_id":"ann"}');
  await bury('other', '{"user_id":"anna"}');
  await bury('ann_cold', '{"user_id":"ann"}', 'org_b');
  const job = await ask('user_id', 'ann');
  for (const step of ['collected', 'erased', 'verified']) await killAt(step);
  aWorker('none');
  await eventually(() => ['complete', 'failed'].includes(job()?.status ?? ''), {
    withinMs: 120_000,
    what: 'the end of the job',
  });
  expect(job()).toMatchObject({
    status: 'complete',
    error: null,
    tries: 4,
    result: { matched_traces: 2, spans: 4, texts: 2, dead_letters: 2, remaining: 0 },
  });
  const rows = (where: string): Promise<string> =>
    cold.value(
      `SELECT sum(n) FROM (${['spans', 'span_texts', 'span_texts_recent', 'traces'].map((table) => `SELECT count() AS n FROM ${table} WHERE ${where}`).join(' UNION ALL ')}) SETTINGS apply_deleted_mask = 0`,
    );
  expect(await rows("org_id = 'org_a' AND startsWith(trace_id, 'ann')")).toBe('0');
  // Texts of another organization are in the same segments.
  const posted = (which: string): Promise<string> =>
    cold.value(
      `SELECT uniqExact(segment * 65536 + place) FROM span_words ARRAY JOIN places AS place WHERE segment * 65536 + place ${which} (SELECT doc FROM span_texts WHERE doc > 0)`,
    );
  expect([await posted('NOT IN'), await posted('IN')]).toEqual(['0', '3']);
  expect((await log.jsm.streams.info(DEAD_LETTERS_STREAM)).state.messages).toBe(2);
  for (const table of ['erasures', 'cold_staging'])
    expect([table, await cold.value(`SELECT count() FROM ${table}`)]).toEqual([table, '0']);
  expect(await cold.value("SELECT count() FROM cold_objects FINAL WHERE next_key != ''")).toBe('0');
  // One object for each organization and day; they hold only texts that the job does not erase.
  expect(cold.files()).toHaveLength(3);
  await cold.restore('org_a');
  await cold.restore('org_b');
  expect(
    await cold.value(
      'SELECT groupArray(n) FROM (SELECT concat(org_id, trace_id, toString(count())) AS n FROM span_texts GROUP BY org_id, trace_id ORDER BY n)',
    ),
  ).toBe("['org_abob_cold2','org_abob_warm2','org_bann_cold1','org_bann_warm1']");
});

it('an erasure in two shards killed at one step after the other is carried out to the end in both', async () => {
  const shards = [cold, other];
  await cold.land([
    aText(DAY, { trace_id: 'ann_a', user_id: 'ann' }),
    aText(DAY, { trace_id: 'bob_a', user_id: 'bob' }),
    // A replay of a trace of the other shard.
    aText(DAY, { trace_id: 'again_a', attributes: { replay_of: 'ann_b' } }),
  ]);
  await other.land([
    aText(DAY, { trace_id: 'ann_b', user_id: 'ann' }),
    aText(DAY, { trace_id: 'bob_b', user_id: 'bob' }),
    aText(DAY, { trace_id: 'again_b', attributes: { replay_of: 'again_a' } }),
  ]);
  for (const shard of shards) await shard.retire(DAY + 31);
  await cold.land([aText(DAY + 40, { trace_id: 'ann_a', user_id: 'ann' })]);
  await other.land([aText(DAY + 40, { trace_id: 'ann_b', user_id: 'ann' })]);
  const job = await ask('user_id', 'ann');
  for (const step of ['collected', 'erased', 'verified', 'purged']) await killAt(step, shards);
  aWorker('none', shards);
  await eventually(() => ['complete', 'failed'].includes(job()?.status ?? ''), {
    withinMs: 120_000,
    what: 'the end of the job',
  });
  expect(job()).toMatchObject({
    status: 'complete',
    error: null,
    tries: 5,
    result: { matched_traces: 4, spans: 6, texts: 2, remaining: 0 },
  });
  for (const [name, shard] of [
    ['a', cold],
    ['b', other],
  ] as const) {
    for (const table of ['spans', 'traces'])
      expect([table, await shard.value(`SELECT groupUniqArray(trace_id) FROM ${table}`)]).toEqual([
        table,
        `['bob_${name}']`,
      ]);
    for (const table of ['erasures', 'cold_staging', 'span_texts', 'span_texts_recent'])
      expect([table, await shard.value(`SELECT count() FROM ${table}`)]).toEqual([table, '0']);
    await shard.restore('org_a');
    expect(await shard.value('SELECT groupArray(trace_id) FROM span_texts')).toBe(`['bob_${name}']`);
  }
  expect(cold.files()).toHaveLength(2);
});

it('an object with data of this person only is deleted whole, and a repeated erasure finds it done', async () => {
  await cold.land([aText(DAY, { trace_id: 'ann_cold', user_id: 'ann' })]);
  await cold.retire(DAY + 31);
  const job = await ask('user_id', 'ann');
  await killAt('proven');
  expect(cold.files()).toEqual([]);
  aWorker('none');
  await eventually(() => job()?.status === 'complete', { withinMs: 120_000, what: 'the end of the job' });
  expect(job()?.result).toMatchObject({ matched_traces: 1, spans: 1, remaining: 0 });
  const again = await ask('user_id', 'ann');
  await eventually(() => again()?.status === 'complete', { withinMs: 120_000, what: 'the end of the other job' });
  expect(again()?.result).toMatchObject({ matched_traces: 0, spans: 0, objects_searched: 0, remaining: 0 });
});

it('an erasure waits while a run of retention is in progress', async () => {
  const kv = await log.bucket('jobs');
  await cold.land([aText(DAY, { trace_id: 'ann_warm', user_id: 'ann' })]);
  const free = (await kv.get('retention'))?.json<Record<string, unknown>>();
  expect(free).toMatchObject({ name: 'retention', holder: '' });
  await kv.put('retention', JSON.stringify({ ...free, holder: 'w0' }));
  const job = await ask('user_id', 'ann');
  const beating = setInterval(
    () => void kv.put('retention', JSON.stringify({ ...free, holder: 'w0', failures: ++made })),
    200,
  );
  aWorker('none');
  await eventually(() => (job()?.beats ?? 0) > 5, { what: 'the job to be under way' });
  expect([job()?.status, await cold.value('SELECT count() FROM spans')]).toEqual(['running', '1']);
  clearInterval(beating);
  await kv.put('retention', JSON.stringify(free));
  await eventually(() => job()?.status === 'complete', { what: 'the end of the job' });
  expect(await cold.value('SELECT count() FROM spans')).toBe('0');
});
