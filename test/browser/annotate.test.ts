// Annotation by keys alone: a queue is made, filled and labelled without the mouse, answers are taken
// back, pairs are compared, and two people never see one item.
import type { Page } from 'playwright-core';
import { expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, axeViolations, expectNoFaults, faultsOf, openPage, orgPath, settled } from './support/browser.ts';
import { aPerson } from './support/person.ts';

let sent = 0;
const unique = (name: string): string => `${name}-${Date.now()}-${++sent}`;

interface Progress {
  done: number;
  left: number;
  scores: { given: number; values: { value: string; count: number }[] }[];
}

/** Sends traces of one agent. Resolves once they are listed. */
async function send(agent_id: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => unique('trc'));
  const events = ids.map((trace_id, at) => ({
    name: `${agent_id} run`,
    outcome: 'success',
    duration_ms: 100 * (at + 1),
    trace_id,
    span_id: 'root',
    attributes: { agent_id },
  }));
  await api(`/orgs/${inject('portal').org_id}/ingest/custom`, { events });
  await eventually(
    async () => {
      const { meta } = (await (await api(`/v1/traces?agent_id=${agent_id}&limit=1`)).json()) as {
        meta: { total: number };
      };
      return meta.total === count;
    },
    { what: 'landed traces' },
  );
  return ids;
}

async function makeQueue(body: Record<string, unknown>, trace_ids: readonly string[]): Promise<string> {
  const made = (await (await api('/v1/annotation-queues', { name: unique('Queue'), ...body })).json()) as {
    data: { queue_id: string };
  };
  await api(`/v1/annotation-queues/${made.data.queue_id}/items`, { trace_ids });
  return made.data.queue_id;
}
const progressOf = async (queue_id: string): Promise<Progress> =>
  ((await (await api(`/v1/annotation-queues/${queue_id}/progress`)).json()) as { data: Progress }).data;

const CORRECT = { name: 'correct', type: 'categorical', options: ['yes', 'no'] };
/** Returns the trace on the screen, by the link to its page. */
const shown = async (page: Page): Promise<string> => {
  const href = await page.getByRole('link', { name: 'Open the full trace' }).first().getAttribute('href');
  return decodeURIComponent(href?.split('/').at(-1) ?? '');
};
const openLabel = async (queue_id: string): Promise<Page> => {
  const page = await openPage({ at: `~/annotate/${queue_id}/label` });
  await page.getByRole('form', { name: 'Scores' }).waitFor();
  await settled(page);
  return page;
};

it('10 traces are labelled with two keys each, and saving shows the next one without a request', async () => {
  const queue_id = await makeQueue({ scores: [CORRECT] }, await send(unique('ten'), 10));
  const page = await openLabel(queue_id);
  // Everything the next two items need is there: while no answer of the API arrives, they are shown.
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/v1/**', async (route) => {
    await held;
    await route.continue();
  });
  const seen = new Set<string>();
  for (let n = 0; n < 2; n++) {
    const before = await shown(page);
    seen.add(before);
    await page.keyboard.press(n % 2 === 0 ? '1' : '2');
    await page.keyboard.press('Enter');
    await eventually(async () => (await shown(page)) !== before);
    await page.getByText('No model calls').waitFor();
  }
  release();
  for (let n = 2; n < 10; n++) {
    const before = await shown(page);
    seen.add(before);
    await page.keyboard.press(n % 2 === 0 ? '1' : '2');
    await page.keyboard.press('Enter');
    if (n < 9) await eventually(async () => (await shown(page)) !== before);
  }
  await page.getByText('The queue is done').waitFor();
  expect(seen.size).toBe(10);
  await eventually(async () => (await progressOf(queue_id)).scores[0]?.given === 10);
  const { done, scores } = await progressOf(queue_id);
  expect({ done, values: scores[0]?.values }).toEqual({
    done: 10,
    values: [
      { value: 'no', count: 5 },
      { value: 'yes', count: 5 },
    ],
  });
  expectNoFaults(page);
});

it('somebody who is faster than the answers of the API waits for the next trace, and is not told that none is left', async () => {
  const queue_id = await makeQueue({ scores: [CORRECT] }, await send(unique('fast'), 8));
  const page = await openLabel(queue_id);
  const answers = Promise.withResolvers<undefined>();
  await page.route('**/v1/annotation-queues/**', async (route) => {
    await answers.promise;
    await route.continue();
  });
  const trace = page.getByRole('link', { name: 'Open the full trace' });
  while ((await trace.count()) > 0) {
    await page.keyboard.press('1');
    await page.keyboard.press('Enter');
  }
  expect(await page.getByText('Nothing is left for you').count()).toBe(0);
  answers.resolve(undefined);
  await trace.waitFor();
  expectNoFaults(page);
});

it('u takes the last answer back, Backspace goes back to correct it, s skips, w writes a comment', async () => {
  const queue_id = await makeQueue({ scores: [CORRECT] }, await send(unique('undo'), 3));
  const page = await openLabel(queue_id);
  const first = await shown(page);
  await page.keyboard.press('1');
  await page.keyboard.press('w');
  await page.keyboard.type('the first 1 was wrong');
  await page.keyboard.press('Control+Enter');
  await eventually(async () => (await shown(page)) !== first);
  await eventually(async () => (await progressOf(queue_id)).done === 1);
  await page.keyboard.press('u');
  await eventually(async () => (await shown(page)) === first);
  await eventually(async () => (await progressOf(queue_id)).done === 0);
  expect(await page.getByRole('textbox', { name: /Comment/ }).inputValue()).toBe('the first 1 was wrong');
  await page.keyboard.press('2');
  await page.keyboard.press('Enter');
  await eventually(async () => (await shown(page)) !== first);
  await page.keyboard.press('Backspace');
  await eventually(async () => (await shown(page)) === first);
  expect(await page.getByRole('radio', { name: /no/ }).isChecked()).toBe(true);
  await page.keyboard.press('1');
  await page.keyboard.press('Enter');
  await eventually(async () => {
    const { done, scores } = await progressOf(queue_id);
    return done === 1 && scores[0]?.values[0]?.value === 'yes' && scores[0].given === 1;
  });
  const second = await shown(page);
  await page.keyboard.press('s');
  await eventually(async () => (await shown(page)) !== second);
  await page.keyboard.press('s');
  await page.getByText('Nothing is left for you').waitFor();
  expect((await progressOf(queue_id)).left).toBe(2);
  expectNoFaults(page);
});

it('of a pair the left, the right or neither is chosen by key', async () => {
  const traces = await send(unique('pair'), 4);
  const scores = [{ name: 'better', type: 'preference' }];
  const queue_id = await makeQueue({ mode: 'pairwise', scores }, traces);
  const page = await openLabel(queue_id);
  const left = await shown(page);
  await page.keyboard.press('1');
  await page.keyboard.press('Enter');
  await eventually(async () => (await shown(page)) !== left);
  await page.keyboard.press('0');
  await page.keyboard.press('Enter');
  await page.getByText('The queue is done').waitFor();
  const scoreOf = async (trace_id: string): Promise<unknown> => {
    const { data } = (await (await api(`/v1/scores?trace_id=${trace_id}`)).json()) as { data: { value: unknown }[] };
    return data[0]?.value;
  };
  await eventually(async () => (await scoreOf(left)) === 'win');
  await eventually(
    async () => (await Promise.all(traces.map(scoreOf))).filter((value) => value === 'tie').length === 2,
  );
  expectNoFaults(page);
});

it('two people who label one queue never see one item', async () => {
  const queue_id = await makeQueue({ scores: [CORRECT] }, await send(unique('two'), 8));
  const page = await openLabel(queue_id);
  const other = await openPage({ loggedIn: false, at: '/login' });
  const { url } = inject('portal');
  const person = await aPerson(inject('portal'));
  await other.context().addCookies([{ ...person, url, httpOnly: true, sameSite: 'Strict' }]);
  await other.goto(orgPath(`/annotate/${queue_id}/label`));
  await other.getByRole('form', { name: 'Scores' }).waitFor();
  const seen: string[] = [];
  const work = async (who: Page): Promise<void> => {
    while (!(await who.getByText(/The queue is done|Nothing is left/).isVisible())) {
      const now = await shown(who).catch(() => '');
      if (now === '') continue;
      if (!seen.includes(`${now} ${who === page}`)) seen.push(`${now} ${who === page}`);
      await who.keyboard.press('1');
      await who.keyboard.press('Enter');
      await settled(who);
    }
  };
  await Promise.all([work(page), work(other)]);
  const traces = seen.map((one) => one.split(' ')[0]);
  expect(new Set(traces).size).toBe(traces.length);
  await eventually(async () => (await progressOf(queue_id)).done === 8);
});

it('a queue with two scores is created, and each digit goes to the score that shows it', async () => {
  const page = await openPage({ at: '~/annotate' });
  await page.getByRole('button', { name: 'Create queue' }).first().waitFor();
  await page.keyboard.press('n');
  const dialog = page.getByRole('dialog');
  const name = unique('Two scores');
  await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
  await dialog.getByRole('button', { name: 'Add score' }).click();
  const second = dialog.getByRole('group', { name: 'Score 2' });
  await second.getByRole('textbox', { name: 'Score' }).fill('tone');
  await second.getByRole('combobox', { name: 'Value' }).selectOption('A number');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('heading', { level: 1, name }).waitFor();
  const queue_id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  const [trace_id = ''] = await send(unique('two-scores'), 1);
  await api(`/v1/annotation-queues/${queue_id}/items`, { trace_ids: [trace_id] });
  const label = await openLabel(queue_id);
  for (const key of ['2', '4', 'Enter']) await label.keyboard.press(key);
  await label.getByText('The queue is done').waitFor();
  const scoresOf = async (): Promise<unknown> => {
    const { data } = (await (await api(`/v1/scores?trace_id=${trace_id}`)).json()) as {
      data: { name: string; value: unknown }[];
    };
    return data.map((score) => [score.name, score.value]).sort();
  };
  await expect.poll(scoresOf).toEqual([
    ['correct', 'partly'],
    ['tone', 4],
  ]);
  expectNoFaults(page);
});

it('a selection of the list goes into a new queue by keys, and the queue shows its progress', async () => {
  const agent_id = unique('select');
  await send(agent_id, 2);
  const page = await openPage({ at: '~/annotate' });
  await page.getByRole('button', { name: 'Create queue' }).waitFor();
  await page.keyboard.press('n');
  const name = unique('By keys');
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name }).waitFor();
  const queue_id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  await page.goto(orgPath(`/traces?agent_id=${agent_id}`));
  await page.getByRole('grid').getByRole('link').first().waitFor();
  await settled(page);
  for (const key of ['j', 'x', 'j', 'x', 'a']) await page.keyboard.press(key);
  await page.getByRole('combobox', { name: 'Queue' }).selectOption(queue_id);
  await page.getByRole('button', { name: 'Add traces' }).click();
  await page.getByText('Added 2 items.').waitFor();
  // The open items show by themselves until one is done.
  await page.goto(orgPath(`/annotate/${queue_id}`));
  await page.getByText('0 of 2').waitFor();
  await settled(page);
  expect(await page.getByRole('region', { name: 'Items' }).getByRole('listitem').count()).toBe(2);
  expectNoFaults(page);
});

it('a queue is edited by keys: its name, its instructions and the people per item', async () => {
  const queue_id = await makeQueue({ scores: [CORRECT], instructions: 'Old words' }, await send(unique('edit'), 1));
  const page = await openPage({ at: `~/annotate/${queue_id}` });
  await page.getByText('Old words').waitFor();
  await page.keyboard.press('e');
  const dialog = page.getByRole('dialog', { name: /^Edit / });
  const name = unique('Edited');
  await dialog.getByRole('textbox', { name: 'Name' }).fill(name);
  await dialog.getByRole('textbox', { name: 'Instructions' }).fill('New words');
  await dialog.getByRole('spinbutton', { name: 'People per item' }).fill('9');
  expect(await axeViolations(page)).toEqual([]);
  await page.keyboard.press('Control+Enter');
  // A refused number stays in its field with the reason.
  const people = dialog.getByRole('spinbutton', { name: 'People per item' });
  await people.and(page.locator('[aria-invalid], :invalid')).waitFor();
  await people.fill('2');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await page.getByText('New words').waitFor();
  const { data } = (await (await api(`/v1/annotation-queues/${queue_id}`)).json()) as { data: unknown };
  expect(data).toMatchObject({ name, instructions: 'New words', people_per_item: 2 });
  await settled(page);
  await page.getByRole('button', { name: 'Delete queue' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete queue' }).click();
  await page.waitForURL((url) => url.pathname === orgPath('/annotate'));
  await settled(page);
  // The browser reports the answer to the number that was refused.
  expect(faultsOf(page).filter((line) => !line.includes('422'))).toEqual([]);
});
