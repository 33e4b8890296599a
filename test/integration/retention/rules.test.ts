// What retention clears and deletes in each table of the real engine, by that table's days, and
// what it leaves unchanged.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { aText, DAY, on, openCold, policyOf, type TestCold } from './a_cold.ts';

let cold: TestCold;
beforeAll(async () => {
  cold = await openCold();
});
afterEach(() => cold.clean());
afterAll(() => cold.close());

const rows = async (sql: string): Promise<string[]> => {
  const text = await cold.value(`${sql} FORMAT TSV`);
  return text === '' ? [] : text.split('\n');
};
const counts = (table: string): Promise<string[]> =>
  rows(`SELECT org_id, count() FROM ${table} GROUP BY org_id ORDER BY org_id`);
const time = (day: number): string => `'${new Date(on(day)).toISOString().slice(0, 23).replace('T', ' ')}'`;

describe('attributes', () => {
  const attributes = (): Promise<string[]> => rows('SELECT org_id, attributes FROM spans ORDER BY org_id, started_at');

  it('attributes of a month that is due for every organization are emptied; tokens and cost stay', async () => {
    await cold.land([aText(DAY, { attributes: { a: 1 } }), aText(DAY, { org_id: 'org_b', attributes: { b: 2 } })]);
    const before = await rows(
      'SELECT org_id, sum(cost_usd), sum(input_tokens), count() FROM spans GROUP BY org_id, toDate(started_at), model ORDER BY org_id',
    );
    expect(await cold.retire(DAY + 364)).toMatchObject({ attributes_cleared: 0 });
    expect(await cold.retire(DAY + 365)).toMatchObject({ attributes_cleared: 2 });
    expect(await attributes()).toEqual(['org_a\t{}', 'org_b\t{}']);
    expect(
      await rows(
        'SELECT org_id, sum(cost_usd), sum(input_tokens), count() FROM spans GROUP BY org_id, toDate(started_at), model ORDER BY org_id',
      ),
    ).toEqual(before);
    expect(await cold.retire(DAY + 366)).toMatchObject({ attributes_cleared: 0 });
  });

  it('attributes of several months are emptied in one run, and younger months keep theirs, also while it waits', async () => {
    const days = [DAY, DAY + 31, DAY + 62, DAY + 93];
    for (const day of days) await cold.land([aText(day, { attributes: { day } })]);
    await cold.land([aText(DAY + 93, { org_id: 'org_b', attributes: { b: 2 } })]);
    const left = (): Promise<string[]> =>
      rows("SELECT attributes FROM spans WHERE attributes != '{}' ORDER BY attributes");
    const young = ['{"b":2}', `{"day":${DAY + 93}}`];
    // Mutations requested while merges are stopped run once merges start again.
    await cold.value('SYSTEM STOP MERGES spans');
    const retired = cold.retire(DAY + 62 + 365);
    try {
      const waiting =
        "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND table = 'spans' AND NOT is_done";
      await eventually(async () => (await cold.value(waiting)) === '3');
      expect(await left()).toEqual(expect.arrayContaining(young));
    } finally {
      await cold.value('SYSTEM START MERGES spans');
    }
    expect(await retired).toMatchObject({ attributes_cleared: 3 });
    expect(await left()).toEqual(young);
  });

  it("attributes of one organization in a month are emptied without touching another's", async () => {
    await cold.land([
      aText(DAY, { attributes: { a: 1 } }),
      aText(DAY + 9, { attributes: { a: 2 } }),
      aText(DAY, { org_id: 'org_b', attributes: { b: 2 } }),
    ]);
    cold.policies.push(
      policyOf('org_a', { telemetry_events: { full_prompt_response_days: 3, metadata_only_days: 5 } }),
    );
    expect(await cold.retire(DAY + 5)).toMatchObject({ attributes_cleared: 1 });
    expect(await attributes()).toEqual(['org_a\t{}', 'org_a\t{"a":2}', 'org_b\t{"b":2}']);
  });
});

describe('delete_after_days', () => {
  it('delete_after_days of telemetry removes spans, traces, look-ups, texts and objects, and leaves usage and costs', async () => {
    cold.policies.push(
      policyOf('org_a', {
        telemetry_events: { full_prompt_response_days: 10, metadata_only_days: 20, delete_after_days: 30 },
      }),
    );
    await cold.land([
      aText(DAY, { trace_id: 'trc_old' }),
      aText(DAY + 15, { trace_id: 'trc_new' }),
      aText(DAY, { org_id: 'org_b', trace_id: 'trc_old' }),
    ]);
    const usage = await rows(
      'SELECT org_id, sum(events), sum(cost_usd) FROM usage_events GROUP BY org_id ORDER BY org_id',
    );
    await cold.retire(DAY + 10);
    expect(cold.files()).toHaveLength(1);
    expect(await cold.retire(DAY + 30)).toMatchObject({ objects_deleted: 1 });
    for (const table of ['spans', 'traces', 'trace_lookup'])
      expect([table, ...(await counts(table))]).toEqual([table, 'org_a\t1', 'org_b\t1']);
    expect(await rows('SELECT org_id, trace_id FROM traces ORDER BY org_id')).toEqual([
      'org_a\ttrc_new',
      'org_b\ttrc_old',
    ]);
    expect(cold.files()).toEqual(['org=org_a/day=2026-03-17.parquet', 'org=org_b/day=2026-03-02.parquet']);
    expect(
      await rows('SELECT org_id, sum(events), sum(cost_usd) FROM usage_events GROUP BY org_id ORDER BY org_id'),
    ).toEqual(usage);
    expect(await cold.restore('org_a')).toMatchObject({ days: 1, texts_restored: 1 });
  });

  it('delete_after_days removes texts that were never exported without exporting them', async () => {
    cold.policies.push(
      policyOf('org_a', {
        telemetry_events: { full_prompt_response_days: 5, metadata_only_days: 5, delete_after_days: 5 },
      }),
    );
    await cold.land([aText(DAY)]);
    expect(await cold.retire(DAY + 5)).toMatchObject({ days_exported: 0, objects_deleted: 0 });
    expect([await counts('span_texts'), await counts('spans'), cold.files()]).toEqual([[], [], []]);
  });

  it('a trace with a corrected state is deleted with all of its rows', async () => {
    cold.policies.push(
      policyOf('org_a', {
        telemetry_events: { full_prompt_response_days: 1, metadata_only_days: 2, delete_after_days: 3 },
      }),
    );
    await cold.land([aText(DAY, { trace_id: 'trc_1' })]);
    await cold.store.landSpans([aText(DAY + 5, { trace_id: 'trc_1' })]);
    await cold.store.database.run(
      `INSERT INTO traces (org_id, anchor, trace_key, trace_id, started_at, ended_at, spans, sign, version) SELECT org_id, anchor, trace_key, trace_id, started_at, ended_at, spans, -1, version FROM traces`,
    );
    await cold.store.database.run(
      `INSERT INTO traces (org_id, anchor, trace_key, trace_id, started_at, ended_at, spans, sign, version) SELECT org_id, anchor, trace_key, trace_id, started_at, ended_at + INTERVAL 5 DAY, 2, 1, version + 1 FROM traces WHERE sign = 1`,
    );
    await cold.retire(DAY + 3);
    expect(await cold.value('SELECT sum(sign), sum(spans * sign) FROM traces FORMAT TSV')).toBe('1\t2');
    await cold.retire(DAY + 8);
    expect(await cold.value('SELECT sum(sign), count() FROM traces FORMAT TSV')).toBe('0\t0');
  });

  it('scores, usage and the audit log each have a delete_after_days of their own', async () => {
    const { database } = cold.store;
    const insert = async (day: number): Promise<void> => {
      for (const org of ['org_a', 'org_b']) {
        await database.run(
          `INSERT INTO judge_scores (org_id, judge_id, trace_id, scored_at) VALUES ('${org}', 'j', 't${day}', ${time(day)})`,
        );
        await database.run(
          `INSERT INTO usage_events (org_id, hour, day, agent_id, last_received_at, cost_usd) VALUES ('${org}', ${time(day).slice(0, 20)}', ${day}, 'a${day}', ${time(day)}, 1)`,
        );
        await database.run(
          `INSERT INTO agent_activity (org_id, agent_id, last_seen_at, landed_at) VALUES ('${org}', 'a${day}', ${time(day)}, now64(3))`,
        );
        await database.run(
          `INSERT INTO audit_log (org_id, created_at, audit_id, version) VALUES ('${org}', ${time(day)}, 'aud_${day}', 1), ('${org}', ${time(day)}, 'aud_${day}', 2)`,
        );
        await database.run(
          `INSERT INTO anomalies (org_id, day, anomaly_id, looked_at) VALUES ('${org}', ${day}, 'an${day}', now64(3))`,
        );
      }
    };
    await insert(DAY);
    await insert(DAY + 20);
    cold.policies.push(
      policyOf('org_a', {
        judge_scores: { delete_after_days: 10 },
        usage_events: { delete_after_days: 20 },
        audit_log: { delete_after_days: 15 },
      }),
    );
    await cold.retire(DAY + 14);
    expect(await counts('judge_scores')).toEqual(['org_a\t1', 'org_b\t2']);
    expect([await counts('usage_events'), await counts('anomalies')]).toEqual([
      ['org_a\t2', 'org_b\t2'],
      ['org_a\t2', 'org_b\t2'],
    ]);
    // The budget's month is not over, and its usage is the sum of these rows.
    await cold.retire(DAY + 20);
    expect(await counts('usage_events')).toEqual(['org_a\t2', 'org_b\t2']);
    await cold.retire(DAY + 30);
    for (const table of ['usage_events', 'anomalies'])
      expect([table, ...(await counts(table))]).toEqual([table, 'org_a\t1', 'org_b\t2']);
    expect(await rows('SELECT org_id, count() FROM audit_log FINAL GROUP BY org_id ORDER BY org_id')).toEqual([
      'org_a\t1',
      'org_b\t2',
    ]);
    // The time of an agent's last activity is kept for as long as drift detection needs it, even
    // when usage is kept for fewer days.
    expect(await counts('agent_activity')).toEqual(['org_a\t2', 'org_b\t2']);
    await cold.retire(DAY + 91);
    expect(await counts('agent_activity')).toEqual(['org_a\t1', 'org_b\t2']);
    // The defaults: scores never expire, everything else expires after seven years.
    await cold.retire(DAY + 2554);
    expect(await counts('usage_events')).toEqual(['org_b\t2']);
    await cold.retire(DAY + 2555);
    expect([await counts('usage_events'), await counts('judge_scores')]).toEqual([['org_b\t1'], ['org_b\t2']]);
  });
});

describe('incidents', () => {
  it('incidents lose their answers with the texts, and are deleted with telemetry; an open one stays', async () => {
    const { database } = cold.store;
    const columns = 'org_id, incident_id, cluster_id, status, sample, last_trace_at, resolved_at, version';
    await database.run(
      `INSERT INTO incidents (${columns}) VALUES ('org_a', 'inc_1', 'c', 'open', 'secret', ${time(DAY)}, ${time(0)}, 1), ('org_a', 'inc_1', 'c', 'resolved', 'secret', ${time(DAY)}, ${time(DAY + 1)}, 2), ('org_a', 'inc_2', 'c', 'open', 'secret', ${time(DAY)}, ${time(0)}, 1)`,
    );
    await database.run(
      `INSERT INTO incident_traces (org_id, cluster_id, at, trace_id, sample) VALUES ('org_a', 'c', ${time(DAY)}, 't', 'secret'), ('org_b', 'c', ${time(DAY)}, 't', 'secret')`,
    );
    cold.policies.push(
      policyOf('org_a', {
        telemetry_events: { full_prompt_response_days: 3, metadata_only_days: 4, delete_after_days: 5 },
      }),
    );
    await cold.retire(DAY + 3);
    expect(await rows('SELECT incident_id, sample FROM incidents FINAL ORDER BY incident_id')).toEqual([
      'inc_1\t',
      'inc_2\t',
    ]);
    expect(await rows('SELECT org_id, sample FROM incident_traces ORDER BY org_id')).toEqual([
      'org_a\t',
      'org_b\tsecret',
    ]);
    await cold.retire(DAY + 6);
    expect(await rows('SELECT incident_id, status FROM incidents FINAL')).toEqual(['inc_2\topen']);
    expect(await counts('incident_traces')).toEqual(['org_b\t1']);
  });
});
