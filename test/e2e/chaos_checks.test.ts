import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { openLog, type Log } from '../../ops/platform/nats/open_log.ts';
import { sqlRunner, type RunSql } from '../bench/store.ts';
import { allCompleted, EventsRead, lagMessages, runChecks } from '../chaos/checks.ts';
import { Sender } from '../chaos/sender.ts';
import { Stack } from '../chaos/stack.ts';
import { eventually } from '../support/wait.ts';

const stack = new Stack();
let sender: Sender;
let runSql: RunSql;
let log: Log;
let events: EventsRead;

beforeAll(async () => {
  await stack.start();
  sender = new Sender(stack.address, { rate: 300, seed: 1 });
  runSql = sqlRunner(stack.address.clickhouseUrl);
  log = await openLog(await connectNats({ url: stack.address.natsUrl, name: 'test', waitMs: 5000 }), {
    replicas: 1,
    logBytesMax: 2 ** 30,
  });
  events = new EventsRead(log);
  sender.start();
  await eventually(() => sender.acknowledged > 300);
  await sender.stop();
  const rows = [...sender.expected.spans.values()].reduce((sum, count) => sum + count, 0);
  await eventually(
    async () =>
      Number(await runSql('SELECT count() FROM spans')) === rows &&
      (await runSql('SELECT count() FROM span_texts_recent')) === '0',
    { what: 'all rows landed and searchable' },
  );
  await eventually(() => allCompleted(events, sender.expected.traces), { what: 'all traces complete' });
  await eventually(async () => (await lagMessages(stack.address.url)) === 0, { what: 'no lag' });
});

afterAll(async () => {
  await log.nc.close();
  await stack.stop();
});

const breaches = async (): Promise<string[]> =>
  (await runChecks({ runSql, log, events, url: stack.address.url }, sender.expected))
    .filter(({ breach }) => breach)
    .map(({ what }) => what);

it('the chaos checks report nothing when no event was lost or doubled', async () => {
  expect(await breaches()).toEqual([]);
  expect(sender.faults).toEqual([]);
});

it('the chaos checks find a lost event, a doubled one, a foreign one, a missing text, a missing posting and a trace with a wrong sum', async () => {
  const settings = { mutations_sync: '2', lightweight_deletes_sync: '2' };
  const [lost = '', doubled = ''] = (
    await runSql("SELECT span_id FROM spans WHERE kind = 'event' ORDER BY span_id LIMIT 2")
  ).split('\n');
  const text = await runSql('SELECT span_id FROM span_texts ORDER BY span_id LIMIT 1');
  await runSql(`DELETE FROM spans WHERE span_id = '${lost}'`, settings);
  await runSql(`INSERT INTO spans SELECT * FROM spans WHERE span_id = '${doubled}'`);
  await runSql(
    `INSERT INTO spans SELECT * REPLACE (toUInt64(42) AS event_key) FROM spans WHERE span_id = '${doubled}' LIMIT 1`,
  );
  await runSql(`DELETE FROM span_texts WHERE span_id = '${text}'`, settings);
  await runSql('DELETE FROM span_words WHERE word % 2 = 0', settings);
  const found = await breaches();
  expect(found).toEqual(
    expect.arrayContaining([
      'acknowledged events lost',
      'events doubled',
      'rows of no acknowledged event',
      'texts',
      'words of all texts, in postings',
      'traces that are not the sum of their spans',
      'rows in spans',
      'spans: events, tokens in and out, bytes, cost',
    ]),
  );
});
