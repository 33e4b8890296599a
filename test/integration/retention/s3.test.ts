// Cold storage in a bucket of an S3-compatible server: export, restore, and a bucket that rejects
// requests.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startTestS3, type TestS3 } from '../../support/s3.ts';
import { aText, DAY, keysOf, openCold, type TestCold, textSum } from './a_cold.ts';

let s3: TestS3;
const opened: TestCold[] = [];
beforeAll(async () => {
  s3 = await startTestS3();
});
afterEach(async () => {
  for (const cold of opened.splice(0)) await cold.close();
});
afterAll(() => s3.close());

async function openIn(url: string): Promise<TestCold> {
  const cold = await openCold(url);
  opened.push(cold);
  return cold;
}

it('cold storage in a bucket takes days out and gives them back, byte for byte', async () => {
  const cold = await openIn(s3.url);
  await cold.land([aText(DAY), aText(DAY + 1), aText(DAY, { org_id: 'org_b' })]);
  const before = await cold.value(textSum('org_a'));
  expect(await cold.retire(DAY + 31)).toMatchObject({ days_exported: 3, texts_dropped: 3 });
  const keys = await keysOf(cold.objects, '');
  expect(keys).toEqual([
    'org=org_a/day=2026-03-02.parquet',
    'org=org_a/day=2026-03-03.parquet',
    'org=org_b/day=2026-03-02.parquet',
  ]);
  await cold.land([aText(DAY, { org_id: 'org_b' })]);
  expect(await cold.retire(DAY + 31)).toMatchObject({ days_merged: 1 });
  expect(await cold.restore('org_a')).toMatchObject({ texts_restored: 2 });
  expect(await cold.value(textSum('org_a'))).toBe(before);
  expect(await cold.restore('org_b')).toMatchObject({ texts_restored: 2 });
  await cold.objects.delete('org=org_a/day=2026-03-02.parquet', new AbortController().signal);
  await cold.store.database.run('TRUNCATE TABLE span_texts');
  await expect(cold.restore('org_a')).rejects.toThrow(
    /org=org_a\/day=2026-03-02.parquet cannot be read .*there is no such object/,
  );
  expect(await cold.value('SELECT count() FROM span_texts')).toBe('0');
});

it('a bucket that rejects requests ends the job with the reason, and nothing is dropped', async () => {
  const cold = await openIn(s3.noBucketUrl);
  await cold.land([aText(DAY, { attributes: { a: 1 } }), aText(DAY + 1)]);
  await expect(cold.retire(DAY + 400)).rejects.toThrow(
    /cannot be written to s3:\/\/none\/some\/prefix: .*bucket does not exist/i,
  );
  expect(
    await cold.value("SELECT count(), (SELECT count() FROM spans WHERE attributes != '{}') FROM span_texts FORMAT TSV"),
  ).toBe('2\t1');
});
