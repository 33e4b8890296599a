// kill -9 of a real process at every step of an export, a merge and a restore: nothing is dropped
// before it is verified, nothing is lost or duplicated, and the next run finishes the interrupted
// work.
import { fork } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { aText, DAY, on, openCold, type TestCold, textSum } from './a_cold.ts';

let cold: TestCold;
beforeAll(async () => {
  cold = await openCold();
});
afterEach(() => cold.clean());
afterAll(() => cold.close());

/** Runs the work in its own process and kills that process at the given step. */
async function killAt(step: string, work: 'retire' | 'restore', day: number): Promise<void> {
  const child = fork(new URL('../../support/retention_worker.ts', import.meta.url), [], {
    env: {
      ...process.env,
      TEST_CLICKHOUSE_URL: cold.store.database.url,
      TEST_OBJECTS: `file://${cold.folder}/objects`,
      TEST_TEMP: path.join(cold.folder, 'tmp'),
      TEST_STEP: step,
      TEST_WORK: work,
      TEST_NOW: String(on(day)),
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

const texts = (): Promise<string> => cold.value('SELECT count() FROM span_texts');
/** Returns the checksum of each organization's texts, over objects and store together. */
const sums = async (): Promise<string[]> => [await cold.value(textSum('org_a')), await cold.value(textSum('org_b'))];
const restoreAll = async (): Promise<void> => {
  for (const org of ['org_a', 'org_b']) await cold.restore(org);
};
/** Checks that no partial file, staged row or unfinished object is left. */
async function expectTidy(files: number): Promise<void> {
  expect(cold.files()).toHaveLength(files);
  expect(
    readdirSync(cold.folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.partial')),
  ).toEqual([]);
  for (const table of ['cold_rows', 'cold_staging'])
    expect([table, await cold.value(`SELECT count() FROM ${table}`)]).toEqual([table, '0']);
  expect(
    await cold.value("SELECT count() FROM cold_objects FINAL WHERE next_key != '' OR state IN ('writing', 'verified')"),
  ).toBe('0');
}

const landDays = (): Promise<void> =>
  cold.land([
    aText(DAY),
    aText(DAY),
    aText(DAY + 1),
    aText(DAY, { org_id: 'org_b' }),
    aText(DAY + 1, { org_id: 'org_b' }),
  ]);

it('exports killed at one step after the other', async () => {
  await landDays();
  const before = await sums();
  for (const step of ['snapshot', 'writing', 'uploading', 'written', 'verified', 'exported']) {
    await killAt(step, 'retire', DAY + 31);
    expect([step, await texts()]).toEqual([step, '5']);
  }
  await cold.retire(DAY + 31);
  expect(await texts()).toBe('0');
  await expectTidy(4);
  await restoreAll();
  expect(await sums()).toEqual(before);
});

it.each(['dropped', 'settled'] as const)('an export killed at %s is completed by the next one', async (step) => {
  await landDays();
  const before = await sums();
  await killAt(step, 'retire', DAY + 31);
  await cold.retire(DAY + 31);
  expect(await texts()).toBe('0');
  await expectTidy(4);
  await restoreAll();
  expect(await sums()).toEqual(before);
});

it('merges killed at one step after the other', async () => {
  await cold.land([aText(DAY), aText(DAY, { org_id: 'org_b' })]);
  await cold.retire(DAY + 30);
  await cold.land([aText(DAY), aText(DAY, { org_id: 'org_b' })]);
  for (const step of ['writing', 'uploading', 'written', 'verified', 'exported', 'dropped'])
    await killAt(step, 'retire', DAY + 31);
  await cold.retire(DAY + 31);
  expect(await texts()).toBe('0');
  await expectTidy(2);
  await restoreAll();
  const whole = await sums();
  expect(whole.map((sum) => sum.split(':')[0])).toEqual(['2', '2']);
  await cold.retire(DAY + 62);
  await restoreAll();
  expect(await sums()).toEqual(whole);
});

it.each(['writing', 'verified', 'replaced'] as const)(
  'what a merge killed at %s leaves behind can be restored',
  async (step) => {
    await cold.land([aText(DAY)]);
    await cold.retire(DAY + 30);
    await cold.land([aText(DAY)]);
    await killAt(step, 'retire', DAY + 31);
    await cold.restore('org_a');
    expect(await texts()).toBe('2');
  },
);

it('restores killed at one step after the other', async () => {
  await landDays();
  const before = await sums();
  await cold.retire(DAY + 31);
  for (const step of ['staged', 'unpacked']) await killAt(step, 'restore', DAY + 31);
  await restoreAll();
  expect(await sums()).toEqual(before);
  expect(await cold.value('SELECT count() FROM cold_staging')).toBe('0');
});
