// Retention on the real engine as of given instants: what it deletes, when, what it exports to
// where, and what it keeps.
import { createHash } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { readTree } from '../../../api/telemetry/traces/tree.ts';
import { ColdStorage } from '../../../pipeline/cold/cold_storage.ts';
import { ColdTables } from '../../../sql/stores/cold.ts';
import { storeOfOne } from '../../../sql/client/shards.ts';
import { aText, DAY, on, openCold, policyOf, type TestCold, textSum } from './a_cold.ts';

let cold: TestCold;
beforeAll(async () => {
  cold = await openCold();
});
afterEach(() => cold.clean());
afterAll(() => cold.close());

const texts = (org = 'org_a'): Promise<string> => cold.value(`SELECT count() FROM span_texts WHERE org_id = '${org}'`);
const spans = (org = 'org_a'): Promise<string> => cold.value(`SELECT count() FROM spans WHERE org_id = '${org}'`);
const states = (): Promise<string> =>
  cold.value('SELECT org_id, day, state, rows FROM cold_objects FINAL ORDER BY org_id, day FORMAT TSV');

describe('texts', () => {
  it('texts stay until their days are over, and are then in an object of their organization and day', async () => {
    await cold.land([aText(DAY), aText(DAY), aText(DAY + 1), aText(DAY, { org_id: 'org_b' })]);
    expect(await cold.retire(DAY + 29)).toMatchObject({ days_exported: 0, texts_dropped: 0 });
    expect([await texts(), cold.files()]).toEqual(['3', []]);
    expect(await cold.retire(DAY + 30)).toMatchObject({
      days_exported: 2,
      texts_exported: 3,
      texts_dropped: 3,
      texts_waiting: 0,
    });
    expect([await texts(), await texts('org_b'), await spans()]).toEqual(['1', '0', '3']);
    expect(cold.files()).toEqual(['org=org_a/day=2026-03-02.parquet', 'org=org_b/day=2026-03-02.parquet']);
    expect(await states()).toBe('org_a\t2026-03-02\tdropped\t2\norg_b\t2026-03-02\tdropped\t1');
    // The object is a self-contained Parquet file that any Parquet reader can open.
    const file = readFileSync(path.join(cold.folder, 'objects', cold.files()[0] ?? ''));
    expect([file.subarray(0, 4).toString(), file.subarray(-4).toString()]).toEqual(['PAR1', 'PAR1']);
    expect(await cold.value('SELECT count() FROM cold_rows')).toBe('0');
  });

  it('texts leave no copy in the attributes that repeat them, and return there with a restore', async () => {
    const messages = [{ role: 'user', content: 'zebra' }];
    const texts = { prompt: JSON.stringify(messages), response: 'okapi' };
    await cold.land([aText(DAY, { ...texts, attributes: { messages, output: 'okapi', n: 7 } })]);
    const attributes = () => cold.value('SELECT attributes FROM spans FORMAT TSVRaw');
    const left = () =>
      cold.value(`SELECT count() FROM span_texts WHERE position(prompt, 'zebra') > 0 OR response = 'okapi'`);
    expect(await left()).toBe('1');
    await cold.retire(DAY + 30);
    expect([await left(), JSON.parse(await attributes())]).toEqual([
      '0',
      { messages: { $ref: 'prompt', $json: true }, output: { $ref: 'response' }, n: 7 },
    ]);
    await cold.restore('org_a');
    const tree = await readTree(storeOfOne(cold.store.client), 'org_a', `trc_${DAY}`, new AbortController().signal);
    expect(tree.data.spans[0]?.attributes).toEqual({ messages, output: 'okapi', n: 7, span_kind: 'llm' });
  });

  it('a second run changes nothing more', async () => {
    await cold.land([aText(DAY), aText(DAY + 3)]);
    await cold.retire(DAY + 31);
    const before = [await texts(), await states(), cold.files()];
    expect(await cold.retire(DAY + 31)).toMatchObject({ days_exported: 0, days_merged: 0, texts_dropped: 0 });
    expect([await texts(), await states(), cold.files()]).toEqual(before);
  });

  it('the policy of the moment applies: one taken back before the run has no effect, and no other organization is touched', async () => {
    await cold.land([aText(DAY), aText(DAY, { org_id: 'org_b' })]);
    cold.policies.push(policyOf('org_a', { telemetry_events: { full_prompt_response_days: 7 } }));
    cold.policies.pop();
    await cold.retire(DAY + 10);
    expect([await texts(), await texts('org_b')]).toEqual(['1', '1']);
    cold.policies.push(policyOf('org_a', { telemetry_events: { full_prompt_response_days: 7 } }));
    await cold.retire(DAY + 10);
    expect([await texts(), await texts('org_b')]).toEqual(['0', '1']);
    // Longer than the retention that was stamped on the rows when they landed.
    cold.policies.push(policyOf('org_b', { telemetry_events: { full_prompt_response_days: 90 } }));
    await cold.retire(DAY + 60);
    expect(await texts('org_b')).toBe('1');
  });

  it('texts in a part without other rows are removed by dropping the part, others are masked', async () => {
    await cold.land([aText(DAY), aText(DAY, { org_id: 'org_b' })]);
    const both = await cold.retire(DAY + 30);
    expect(both).toMatchObject({ texts_dropped: 2, parts_dropped: 1, partitions_masked: 0 });
    await cold.land([aText(DAY + 1), aText(DAY + 1, { org_id: 'org_b' })]);
    cold.policies.push(policyOf('org_b', { telemetry_events: { full_prompt_response_days: 60 } }));
    expect(await cold.retire(DAY + 31)).toMatchObject({ texts_dropped: 1, parts_dropped: 0, partitions_masked: 1 });
    expect([await texts(), await texts('org_b')]).toEqual(['0', '1']);
  });

  it('texts that land late for a day join its object, and nothing in it is lost', async () => {
    const [early, late] = [aText(DAY), aText(DAY)];
    await cold.land([early]);
    await cold.retire(DAY + 30);
    await cold.land([late]);
    const sum = await cold.value(textSum('org_a'));
    expect(await cold.retire(DAY + 31)).toMatchObject({ days_merged: 1, texts_exported: 1, texts_dropped: 1 });
    expect(await states()).toBe('org_a\t2026-03-02\tdropped\t2');
    expect(cold.files()).toHaveLength(1);
    await cold.restore('org_a');
    const prompts = await cold.value(
      "SELECT span_id FROM span_texts WHERE org_id = 'org_a' ORDER BY log_seq FORMAT TSV",
    );
    expect(prompts.split('\n')).toEqual([early.span_id, late.span_id]);
    expect(sum).toMatch(/^1:/);
  });

  it('texts on their way to the searched table are taken by the next run', async () => {
    await cold.store.landSpans([aText(DAY)]);
    const retired = cold.retire(DAY + 30);
    await cold.moveTexts();
    expect(await retired).toMatchObject({ texts_waiting: 0, texts_dropped: 1 });
  });

  it('the policies of many organizations are applied in ranges of ids', async () => {
    const orgs = Array.from({ length: 600 }, (_, index) => `org_${String(index).padStart(4, '0')}`);
    await cold.land(
      ['org_0000', 'org_0249', 'org_0250', 'org_0599', 'org_zzz'].map((org_id) => aText(DAY, { org_id })),
    );
    for (const org_id of orgs)
      cold.policies.push(
        policyOf(org_id, { telemetry_events: { full_prompt_response_days: org_id === 'org_0250' ? 60 : 10 } }),
      );
    await cold.retire(DAY + 10);
    expect(
      await cold.value(
        'SELECT groupArray(org_id) FROM (SELECT org_id FROM span_texts ORDER BY org_id) SETTINGS optimize_use_projections = 0',
      ),
    ).toBe("['org_0250','org_zzz']");
  });
});

describe('postings', () => {
  const weeks = (): Promise<string> => cold.value('SELECT arraySort(groupUniqArray(toUInt16(week))) FROM span_words');
  /** Monday of the week in which the texts of a day are dropped under the default policy. */
  const weekOf = (day: number): number => DAY + 7 * Math.floor((day + 30 - DAY) / 7);

  it('postings of a week are dropped once no text of the week is left, neither moved nor waiting to be', async () => {
    const both = [weekOf(DAY), weekOf(DAY + 7)];
    const left = async () => [
      await cold.value('SELECT count() FROM span_texts'),
      JSON.parse(await weeks()) as number[],
    ];
    await cold.land([aText(DAY), aText(DAY, { org_id: 'org_b' })]);
    await cold.land([aText(DAY + 7)]);
    cold.policies.push(policyOf('org_c', { telemetry_events: { full_prompt_response_days: 60 } }));
    await cold.store.landSpans([aText(DAY, { org_id: 'org_c' })]);
    await cold.retire(DAY + 31);
    expect(await left()).toEqual(['1', both]);
    await cold.moveTexts();
    await cold.retire(DAY + 31);
    expect(await left()).toEqual(['2', both]);
    cold.policies.pop();
    await cold.retire(DAY + 31);
    expect(await left()).toEqual(['1', [weekOf(DAY + 7)]]);
  });

  it('a masked text has neither number nor words in the projection that search reads', async () => {
    await cold.land([aText(DAY), aText(DAY, { org_id: 'org_b' })]);
    cold.policies.push(policyOf('org_b', { telemetry_events: { full_prompt_response_days: 60 } }));
    expect(await cold.retire(DAY + 30)).toMatchObject({ partitions_masked: 1 });
    const projection = `mergeTreeProjection(${cold.store.database.database}, span_texts, p_docs)`;
    const found = (where: string) => cold.value(`SELECT groupArray(org_id) FROM ${projection} WHERE ${where}`);
    expect([await found('doc > 0'), await found('dl > 0')]).toEqual(["['org_b']", "['org_b']"]);
    // A run does not take masked texts for due ones.
    expect(await cold.retire(DAY + 31)).toMatchObject({ texts_dropped: 0, rows_deleted: 0, partitions_masked: 0 });
  });
});

describe('an object that is not what it was', () => {
  const object = (): string => path.join(cold.folder, 'objects', cold.files()[0] ?? '');

  it('an altered object keeps the late texts of its day, and of no other, in the store', async () => {
    await cold.land([aText(DAY), aText(DAY)]);
    await cold.retire(DAY + 30);
    await cold.land([aText(DAY), aText(DAY, { org_id: 'org_b' })]);
    const bytes = readFileSync(object());
    bytes[20] = (bytes[20] ?? 0) ^ 1;
    writeFileSync(object(), bytes);
    await expect(cold.retire(DAY + 31)).rejects.toThrow(/org=org_a\/day=2026-03-02.parquet is corrupt: its checksum/);
    expect([await texts(), await texts('org_b')]).toEqual(['1', '0']);
    rmSync(object());
    await expect(cold.retire(DAY + 31)).rejects.toThrow(
      /org=org_a\/day=2026-03-02.parquet cannot be read .*there is no such object/,
    );
    expect(await texts()).toBe('1');
  });

  it('an altered object is not restored, not even in part', async () => {
    await cold.land([aText(DAY), aText(DAY)]);
    await cold.retire(DAY + 30);
    const bytes = readFileSync(object());
    writeFileSync(object(), bytes.subarray(0, -1));
    await expect(cold.restore('org_a')).rejects.toThrow(/is corrupt: it has \d+ bytes instead of \d+/);
    rmSync(object());
    await expect(cold.restore('org_a')).rejects.toThrow(/there is no such object/);
    expect([await texts(), await cold.value('SELECT count() FROM cold_staging')]).toEqual(['0', '0']);
  });
});

describe('a restore', () => {
  it('a restore brings back every byte of the requested days, once', async () => {
    await cold.land([
      aText(DAY),
      aText(DAY, { prompt: 'x'.repeat(200_000) }),
      aText(DAY + 1),
      aText(DAY + 2),
      aText(DAY, { org_id: 'org_b' }),
    ]);
    const before = await cold.value(textSum('org_a'));
    await cold.retire(DAY + 40);
    expect(await texts()).toBe('0');
    expect(await cold.restore('org_a', { since_day: DAY, until_day: DAY + 1 })).toEqual({
      days: 2,
      texts_found: 3,
      texts_restored: 3,
    });
    expect(await cold.restore('org_a')).toEqual({ days: 3, texts_found: 4, texts_restored: 1 });
    expect(await cold.value(textSum('org_a'))).toBe(before);
    expect(await cold.restore('org_a')).toMatchObject({ texts_restored: 0 });
    expect([await cold.value(textSum('org_a')), await texts('org_b')]).toEqual([before, '0']);
    // The text mover makes postings of restored texts by their words.
    expect(
      await cold.value(
        "SELECT countIf(doc = 0 AND dl > 2 AND position(words, ' response of spn ') > 0) FROM span_texts",
      ),
    ).toBe('4');
  });

  it('a restore of a large day reads row groups, and is equal to the byte', async () => {
    const place = 'toUInt16(7) AS partition, number AS log_seq, toUInt32(0) AS log_index, toUInt32(0) AS log_sub';
    const shared = `'org_a' AS org_id, toDateTime64(${on(DAY) / 1000} + number % 86400, 3, 'UTC') AS started_at, concat('trc_', toString(number % 900)) AS trace_id, toString(number) AS span_id, ${place}`;
    const columns = 'org_id, started_at, trace_id, span_id, partition, log_seq, log_index, log_sub';
    await cold.store.database.run(`INSERT INTO spans (${columns}) SELECT ${shared} FROM numbers(50000)`);
    await cold.store.database.run(
      `INSERT INTO span_texts (${columns}, event_key, model, outcome, cost_usd, prompt, response, dl, drop_on) SELECT ${shared}, number, 'm', 'success', number / 7, hex(sipHash128(number)), repeat(hex(cityHash64(number)), number % 40), 1 + (number % 40 > 0), toDate(${DAY + 30}) FROM numbers(50000)`,
    );
    const before = await cold.value(textSum('org_a'));
    expect(await cold.retire(DAY + 30)).toMatchObject({ days_exported: 1, texts_dropped: 50_000 });
    expect(await cold.restore('org_a', { trace_ids: ['trc_3', 'trc_4'] })).toMatchObject({
      texts_found: 112,
      texts_restored: 112,
    });
    expect(await cold.restore('org_a')).toMatchObject({ texts_found: 50_000, texts_restored: 49_888 });
    expect(await cold.value(textSum('org_a'))).toBe(before);
  });

  it('a restore splits texts again, a group at a time, also texts of several megabytes and of one instant', async () => {
    const long = (word: string): string => `${word} `.repeat(Math.ceil(5_000_000 / (word.length + 1)));
    const small = Array.from({ length: 50 }, (_, index) =>
      aText(DAY, { span_id: `a_${index}`, prompt: '', response: ' ,.' }),
    );
    const large = ['zebra', 'okapi', 'kudu', 'gnu'].map((word) =>
      aText(DAY, { span_id: `b_${word}`, prompt: long(word), response: word }),
    );
    await cold.land([...small, ...large]);
    const before = await cold.value(textSum('org_a'));
    await cold.retire(DAY + 30);
    // The first restore ends in the middle of the second group: three of the large texts fill the first.
    let calls = 0;
    class Cut extends ColdTables {
      override unpack(...[task, stamps, wordsOf, signal]: Parameters<ColdTables['unpack']>): Promise<number> {
        const cut: typeof wordsOf = (...texts) => {
          calls += 1;
          if (calls > 53) throw new Error('the worker is gone');
          return wordsOf(...texts);
        };
        return super.unpack(task, stamps, cut, signal);
      }
    }
    const tables = new Cut(cold.store.client);
    const storage = new ColdStorage({ store: cold.objects, tables, tempDir: `${cold.folder}/tmp`, now: () => 0 });
    const { signal } = new AbortController();
    const how = { traceIds: null, task: 'restore-1', stampsOf: () => ({ restoredOn: DAY, dropOn: DAY + 30 }) };
    const objects = await cold.cold.objectsOf('org_a');
    await expect(storage.restoreDays(objects, how, () => undefined, signal)).rejects.toThrow('the worker is gone');
    expect(await texts()).toBe('53');
    expect(await cold.restore('org_a')).toMatchObject({ texts_found: 54, texts_restored: 1 });
    expect(await cold.value(textSum('org_a'))).toBe(before);
    expect(
      await cold.value(
        "SELECT countIf(words = concat(prompt, response) AND dl = countSubstrings(words, response)), countIf(words = '' AND dl = 0) FROM span_texts FORMAT TSV",
      ),
    ).toBe('4\t50');
  });

  it('a restore of an object of an older version, which holds words too, splits the texts again', async () => {
    await cold.land([aText(DAY, { prompt: '[{"role":"user","content":"my\\nreservation"}]', response: 'yes' })]);
    const { signal } = new AbortController();
    const older = await buffer(
      cold.store.client.bytes({
        name: 'older_object',
        sql: `SELECT org_id, started_at, trace_id, span_id, event_key, model, outcome, cost_usd, prompt, response, 'older words' AS words, toUInt32(9) AS dl,
          [toUInt32(1)] AS reps, [toUInt32(2)] AS stop_reps, partition, log_seq, log_index, log_sub FROM span_texts FORMAT Parquet`,
        timeoutMs: 10_000,
        signal,
      }),
    );
    await cold.retire(DAY + 30);
    const [object] = await cold.cold.objectsOf('org_a');
    if (object === undefined) throw new Error('the day has no object');
    writeFileSync(path.join(cold.folder, 'objects', object.object_key), older);
    const sha256 = createHash('sha256').update(older).digest('hex');
    await cold.tables.write({ ...object, bytes: older.length, sha256 }, object);
    expect(await cold.restore('org_a')).toMatchObject({ texts_restored: 1 });
    expect(await cold.value('SELECT words, dl, reps, stop_reps FROM span_texts FORMAT TSV')).toBe(
      'my reservation yes\t3\t[]\t[]',
    );
  });

  it("a restore of traces brings back only them, and names those that are not the organization's", async () => {
    await cold.land([
      aText(DAY, { trace_id: 'trc_x' }),
      aText(DAY, { trace_id: 'trc_y' }),
      aText(DAY + 1, { trace_id: 'trc_x' }),
      aText(DAY, { org_id: 'org_b', trace_id: 'trc_b' }),
    ]);
    await cold.retire(DAY + 40);
    expect(await cold.restore('org_a', { trace_ids: ['trc_x', 'trc_b', 'trc_none'] })).toEqual({
      days: 2,
      texts_found: 2,
      texts_restored: 2,
      unknown_trace_ids: 2,
    });
    expect(await cold.value('SELECT DISTINCT org_id, trace_id FROM span_texts FORMAT TSV')).toBe('org_a\ttrc_x');
  });

  it('a restore lasts as long as the organization keeps texts, counted from it, and is then dropped without another export', async () => {
    await cold.land([aText(DAY), aText(DAY)]);
    await cold.retire(DAY + 30);
    const [file] = cold.files();
    await cold.restore('org_a', {}, on(DAY + 50));
    await cold.retire(DAY + 79);
    expect(await texts()).toBe('2');
    expect(await cold.retire(DAY + 80)).toMatchObject({
      days_kept: 1,
      days_exported: 0,
      texts_exported: 0,
      texts_dropped: 2,
    });
    expect([await texts(), cold.files()]).toEqual(['0', [file]]);
  });

  it('a restore of texts that an operator retired early is left alone by the next such run', async () => {
    await cold.land([aText(DAY)]);
    await cold.retire(DAY + 40);
    await cold.restore('org_a', {}, on(DAY + 1));
    await cold.retire(DAY + 41);
    expect(await texts()).toBe('1');
    await cold.retire(DAY + 70);
    expect(await texts()).toBe('0');
  });

  it('a restore does not bring back texts of deleted spans', async () => {
    await cold.land([aText(DAY), aText(DAY, { trace_id: 'trc_gone' })]);
    await cold.retire(DAY + 30);
    await cold.store.database.run("DELETE FROM spans WHERE trace_id = 'trc_gone'");
    expect(await cold.restore('org_a')).toEqual({ days: 1, texts_found: 2, texts_restored: 1 });
  });
});

describe('rewriting an object', () => {
  it('rewriting an object removes only the given texts; without any left the object is deleted', async () => {
    await cold.land([aText(DAY, { trace_id: 'trc_x' }), aText(DAY, { trace_id: 'trc_y' })]);
    await cold.retire(DAY + 30);
    const signal = new AbortController().signal;
    const take = async (trace_id: string): Promise<number> => {
      const [object] = await cold.cold.objectsOf('org_a');
      if (object === undefined) throw new Error('there is one');
      return cold.cold.rewrite(
        object,
        { sql: 'trace_id = {trace_id:String}', params: { trace_id } },
        'erase-1',
        signal,
      );
    };
    expect(await take('trc_none')).toBe(0);
    expect(await take('trc_x')).toBe(1);
    expect(cold.files()).toHaveLength(1);
    expect(readFileSync(path.join(cold.folder, 'objects', cold.files()[0] ?? '')).includes('trc_x')).toBe(false);
    await cold.restore('org_a');
    expect(await cold.value('SELECT DISTINCT trace_id FROM span_texts')).toBe('trc_y');
    expect(await take('trc_y')).toBe(1);
    expect([cold.files(), await cold.cold.objectsOf('org_a')]).toEqual([[], []]);
  });
});
