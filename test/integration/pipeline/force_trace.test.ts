// force_trace on the real engine without tail sampling: what the pipeline stores of a trace's later
// events, also after kill -9 and after another worker takes over.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { keptByRate, PROFILE_RATE } from '../../../pipeline/domain/traces/keep_rules.ts';
import { logged, startTestPipeline, type TestPipeline } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';

const [FORCED = '', PLAIN = ''] = Array.from({ length: 50 }, (_, i) => `trace-${i}`).filter(
  (id) => !keptByRate(id, PROFILE_RATE.balanced),
);
let pipeline: TestPipeline;

beforeAll(async () => {
  pipeline = await startTestPipeline({
    SERVICE_SAMPLING_PROFILE: 'balanced',
    SERVICE_TRACE_GRACE_MS: '100',
    SERVICE_TRACE_IDLE_MS: '100',
  });
});
afterAll(() => pipeline.close());

let sent = 0;
/** Sends one event of each trace and waits until the rows of both traces count it. */
async function sendBoth(attributes: Record<string, unknown> = {}): Promise<void> {
  sent += 1;
  const event = (trace_id: string, own: Record<string, unknown>) =>
    logged('custom', { name: `step ${sent}`, trace_id, outcome: 'success', duration_ms: 1, attributes: own });
  await pipeline.log.publish([event(FORCED, attributes), event(PLAIN, {})], () => 0);
  await eventually(
    async () => (await pipeline.database.run('SELECT min(spans), count() FROM analyst_traces')).trim() === `${sent}\t2`,
    { what: `the rows of both traces with ${sent} spans` },
  );
}
const sampled = async (trace_id: string): Promise<string> =>
  (
    await pipeline.database.run(
      `SELECT arrayMap(s -> s.2, arraySort(groupArray((log_seq, sampled)))) FROM spans WHERE trace_id = '${trace_id}'`,
    )
  ).trim();

it('a forced trace keeps every later event in full, also after kill -9, a takeover and its completion', async () => {
  await sendBoth();
  await sendBoth({ force_trace: true });
  await sendBoth();
  await pipeline.replaceWorker();
  await sendBoth();
  await pipeline.replaceWorker();
  await sendBoth();
  expect(await sampled(FORCED)).toBe('[false,true,true,true,true]');
  expect(await sampled(PLAIN)).toBe('[false,false,false,false,false]');
});
