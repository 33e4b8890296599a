// A listed trace can be read on every night of its life, wherever a kill interrupts retention.
import { fork } from 'node:child_process';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { listTraces } from '../../../api/telemetry/traces/list.ts';
import { listQuery } from '../../../api/telemetry/traces/schema.ts';
import { readTree } from '../../../api/telemetry/traces/tree.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import type { TraceState } from '../../../pipeline/domain/traces/trace_state.ts';
import { storeOfOne } from '../../../sql/client/shards.ts';
import { tracesOf } from '../../support/store.ts';
import { wordsDeps } from '../../support/words.ts';
import { aText, DAY, on, openCold, policyOf, type TestCold } from './a_cold.ts';

const KEPT_DAYS = 3;
const LAST_MINUTE_MS = 86_399_000;
const signal = new AbortController().signal;

let cold: TestCold;
beforeAll(async () => {
  cold = await openCold();
});
afterEach(() => cold.clean());
afterAll(() => cold.close());

/** Returns a span with these start and end times: the day, and the milliseconds into it. */
const span = (trace_id: string, began: readonly [number, number], ended: readonly [number, number]): Span =>
  aText(began[0], { trace_id, started_at: on(...began), ended_at: on(...ended) });

const PLAIN = [span('plain', [DAY, 0], [DAY, 10])];
/** Begins before midnight and ends after it. */
const OVER_MIDNIGHT = [span('over_midnight', [DAY, LAST_MINUTE_MS], [DAY + 1, 60_000])];
const FOR_DAYS = [span('for_days', [DAY, 5000], [DAY + 4, 5000])];
/** Its last span begins on a later day than its other spans. */
const GOES_ON = [span('goes_on', [DAY, 0], [DAY, 10]), span('goes_on', [DAY + 2, 0], [DAY + 5, 10])];
const ALL = [PLAIN, OVER_MIDNIGHT, FOR_DAYS, GOES_ON];
/** The last night on which each trace is listed: the one before its last span is due. */
const LAST_LISTED = { plain: DAY, over_midnight: DAY, for_days: DAY, goes_on: DAY + 2 };

const stateOf = (spans: readonly Span[]): TraceState => tracesOf(spans)[0] as TraceState;

/** Lands every trace span by span, as pairs of rows in separate parts. */
async function landAll(org_id: string): Promise<void> {
  let version = 0;
  for (const trace of ALL) {
    const own = trace.map((one) => ({ ...one, org_id }));
    for (const [index, one] of own.entries()) {
      version += 1;
      await cold.store.landSpans([one]);
      const before =
        index === 0 ? [] : [{ state: stateOf(own.slice(0, index)), version: version - 1, sign: -1 as const }];
      await cold.store.landTraces([...before, { state: stateOf(own.slice(0, index + 1)), version, sign: 1 }]);
    }
  }
  await cold.moveTexts();
}

async function listed(org_id: string): Promise<string[]> {
  const { data, meta } = await listTraces(
    { ...wordsDeps(cold.store.client), now: () => on(DAY + 30) },
    org_id,
    listQuery.parse({}),
    signal,
  );
  expect(meta.total).toBe(data.length);
  return data.map(({ trace_id }) => trace_id).sort();
}

/**
 * Reads every listed trace.
 * @returns their ids
 */
async function expectReadable(org_id: string): Promise<string[]> {
  const ids = await listed(org_id);
  for (const id of ids) {
    const { data } = await readTree(storeOfOne(cold.store.client), org_id, id, signal);
    expect([id, data.spans.length > 0]).toEqual([id, true]);
  }
  return ids;
}

const telemetry_events = {
  full_prompt_response_days: KEPT_DAYS,
  metadata_only_days: KEPT_DAYS,
  delete_after_days: KEPT_DAYS,
};

describe('a listed trace', () => {
  it('a listed trace can be read on every night, and leaves the list on the night when its last span is deleted', async () => {
    for (const org of ['org_a', 'org_b']) await landAll(org);
    cold.policies.push(policyOf('org_a', { telemetry_events }));
    for (let night = DAY; night <= DAY + 10; night += 1) {
      await cold.retire(night);
      const expected = Object.entries(LAST_LISTED)
        .filter(([, last]) => night < last + KEPT_DAYS)
        .map(([id]) => id)
        .sort();
      expect([night - DAY, await expectReadable('org_a')]).toEqual([night - DAY, expected]);
    }
    for (const table of ['traces', 'spans', 'trace_lookup', 'span_texts'])
      expect([table, await cold.value(`SELECT count() FROM ${table} WHERE org_id = 'org_a'`)]).toEqual([table, '0']);
    expect(await expectReadable('org_b')).toEqual(Object.keys(LAST_LISTED).sort());
  });

  it('a listed trace that lost its spans and its look-up in an earlier run leaves the list on the next night', async () => {
    await landAll('org_a');
    for (const table of ['spans', 'trace_lookup', 'span_texts'])
      await cold.store.database.run(`TRUNCATE TABLE ${table}`);
    cold.policies.push(policyOf('org_a', { telemetry_events }));
    await cold.retire(DAY + KEPT_DAYS);
    expect(await listed('org_a')).toEqual([]);
  });

  it.each(['deleted traces', 'deleted span_texts', 'deleted spans', 'deleted trace_lookup'])(
    'a listed trace can be read when a run is killed at the step "%s", and the next run deletes the rest',
    async (step) => {
      await landAll('org_a');
      await killAt(step, DAY + KEPT_DAYS);
      expect(await expectReadable('org_a')).toEqual(['goes_on']);
      cold.policies.push(policyOf('org_a', { telemetry_events }));
      await cold.retire(DAY + KEPT_DAYS);
      expect(await expectReadable('org_a')).toEqual(['goes_on']);
      expect(await cold.value('SELECT groupUniqArray(trace_id) FROM spans')).toBe("['goes_on']");
      expect(await cold.value('SELECT uniqExact(trace_key) FROM trace_lookup')).toBe('1');
      await cold.retire(DAY + KEPT_DAYS + 2);
      expect(await listed('org_a')).toEqual([]);
    },
  );
});

/** Runs retention in its own process and kills that process at the given step. */
async function killAt(step: string, day: number): Promise<void> {
  const child = fork(new URL('../../support/retention_worker.ts', import.meta.url), [], {
    env: {
      ...process.env,
      TEST_CLICKHOUSE_URL: cold.store.database.url,
      TEST_OBJECTS: `file://${cold.folder}/objects`,
      TEST_TEMP: path.join(cold.folder, 'tmp'),
      TEST_STEP: step,
      TEST_WORK: 'retire',
      TEST_NOW: String(on(day)),
      TEST_DELETE_DAYS: String(KEPT_DAYS),
    },
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const said = await Promise.race([
    new Promise((resolve) => child.once('message', resolve)),
    exited.then((code) => `ended with ${String(code)}`),
  ]);
  expect(said).toBe(step);
  child.kill('SIGKILL');
  await exited;
}
