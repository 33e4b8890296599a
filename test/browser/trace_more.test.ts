// The other views of a trace, its actions, and a trace that is still open.
import type { Locator, Page } from 'playwright-core';
import { describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';

interface Event {
  name: string;
  span_id: string;
  parent_span_id?: string;
  duration_ms?: number;
  attributes?: Record<string, unknown>;
}

/** Sends events of one trace and resolves when its outline shows `total` spans. */
async function send(traceId: string, events: readonly Event[], total = events.length): Promise<void> {
  const { org_id } = inject('portal');
  await api(`/orgs/${org_id}/ingest/custom`, {
    events: events.map((event) => ({ outcome: 'success', duration_ms: 10, ...event, trace_id: traceId })),
  });
  await eventually(
    async () => {
      const answer = await api(`/v1/traces/${traceId}/outline`);
      return ((await answer.json()) as { meta: { total: number } }).meta.total === total;
    },
    { what: `${total} spans of ${traceId} to be stored` },
  );
}

async function traceOf(agent: string): Promise<string> {
  const { data } = (await (await api(`/v1/traces?limit=1&agent_id=${agent}`)).json()) as {
    data: { trace_id: string }[];
  };
  const id = data[0]?.trace_id;
  if (id === undefined) throw new Error(`no trace of ${agent}`);
  return id;
}

const openTrace = async (traceId: string, query = ''): Promise<Page> => {
  const page = await openPage({ at: `~/traces/${traceId}${query}` });
  await settled(page);
  return page;
};
const panel = (page: Page): Locator => page.getByRole('region', { name: 'Span', exact: true });
const spans = (page: Page): Locator => page.getByRole('treegrid', { name: 'Spans of the trace' });
const selected = (page: Page): Locator => spans(page).getByRole('row', { selected: true });

describe('the graph of steps', () => {
  it('shows every edge and label whole, and goes through the spans of a step', async () => {
    const page = await openTrace(await traceOf('document-indexer'), '?view=graph');
    const step = page.getByRole('button', { name: /^Tool call store_page/ });
    await step.waitFor();
    const outside = await page.locator('main svg:has(polyline)').evaluate((drawing) => {
      const sheet = drawing.getBoundingClientRect();
      return [...drawing.querySelectorAll('polyline, text')].filter((part) => {
        const box = part.getBoundingClientRect();
        return box.left < sheet.left || box.top < sheet.top || box.right > sheet.right || box.bottom > sheet.bottom;
      }).length;
    });
    expect(outside).toBe(0);
    await step.click();
    await panel(page).getByRole('heading', { name: 'store_page' }).waitFor();
    expect(await step.getAttribute('aria-pressed')).toBe('true');
    expectNoFaults(page);
  });

  it('says the same as a table', async () => {
    const page = await openTrace(await traceOf('checkout-agent'), '?view=graph');
    await page.getByRole('button', { name: /^Tool call charge_card/ }).waitFor();
    await page.keyboard.press('Shift+T');
    const row = page.getByRole('table').getByRole('row', { name: /charge_card/ });
    await row.first().waitFor();
    expect(await page.getByRole('columnheader', { name: 'Followed by' }).count()).toBe(1);
    expectNoFaults(page);
  });
});

describe('the list that a trace was opened from', () => {
  it('is walked by J and K without going back to it', async () => {
    const page = await openPage({ at: '~/traces?t=7d&tags=demo' });
    await settled(page);
    const row = page
      .getByRole('grid')
      .getByRole('row')
      .filter({ has: page.getByRole('gridcell') });
    await row.first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname.startsWith(orgPath('/traces/')));
    await settled(page);
    const first = new URL(page.url()).pathname;
    await page.keyboard.press('Shift+J');
    await page.waitForURL((url) => url.pathname !== first);
    await settled(page);
    await selected(page).waitFor();
    await page.keyboard.press('Shift+K');
    await page.waitForURL((url) => url.pathname === first);
    await settled(page);
    await selected(page).waitFor();
    expectNoFaults(page);
  });
});

describe('a trace that is opened from the list', () => {
  it('shows its head from the row of the list while its spans load', async () => {
    const page = await openPage({ at: '~/traces?t=7d&agent_id=checkout-agent' });
    await settled(page);
    const answers = Promise.withResolvers<undefined>();
    await page.route('**/v1/traces/*/outline', async (route) => {
      await answers.promise;
      await route.continue();
    });
    const row = page.getByRole('grid').getByRole('row').nth(1);
    const name = await row.getByRole('link').first().innerText();
    await row.getByRole('link').first().click();
    await page.waitForURL((url) => url.pathname.startsWith(orgPath('/traces/')));
    const trace_id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    await page.getByText(trace_id, { exact: true }).waitFor();
    await page.getByText('checkout-agent', { exact: true }).waitFor();
    await page.getByRole('heading', { level: 1, name }).waitFor();
    expect(await spans(page).count()).toBe(0);
    answers.resolve(undefined);
    await selected(page).waitFor();
    expectNoFaults(page);
  });
});

describe('texts that are not stored', () => {
  /** Opens a trace as an owner, with another place for the texts of its selected span. */
  async function openWith(trace_id: string, text_state: string): Promise<Page> {
    const page = await openPage({ portal: inject('portal'), at: '~/me' });
    await page.route('**/v1/traces/*/spans/*', async (route) => {
      const answer = await route.fetch();
      const { data } = (await answer.json()) as { data: object };
      await route.fulfill({
        response: answer,
        json: { data: { ...data, text_state, texts_left_on: '2026-10-01', prompt: null, response: null } },
      });
    });
    await page.goto(orgPath(`/traces/${trace_id}?tab=io`));
    await settled(page);
    return page;
  }

  it('lead from cold storage to their restore, with the trace filled in', async () => {
    const trace_id = await traceOf('checkout-agent');
    const page = await openWith(trace_id, 'cold');
    await panel(page).getByText('They moved there on 2026-10-01.').waitFor();
    await panel(page).getByRole('link', { name: 'Restore the texts of this trace' }).click();
    const dialog = page.getByRole('dialog', { name: 'Restore texts from cold storage' });
    expect(await dialog.getByRole('textbox', { name: 'Traces' }).inputValue()).toBe(trace_id);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect(page.url()).not.toContain(trace_id);
    expectNoFaults(page);
  });

  it('lead from sampling to its rules', async () => {
    const page = await openWith(await traceOf('checkout-agent'), 'sampled_out');
    await panel(page).getByText('Sampling kept only the numbers').waitFor();
    await panel(page).getByRole('link', { name: 'Show which events are kept' }).click();
    await page.getByRole('heading', { name: 'Always kept' }).waitFor();
    expectNoFaults(page);
  });
});

describe('access to one thing', () => {
  it('is granted from the page of a trace, a judge and a dataset', async () => {
    const { judge_id, dataset_id } = inject('judged');
    const trace_id = await traceOf('checkout-agent');
    const page = await openPage({ portal: inject('portal'), at: `~/traces/${trace_id}` });
    await settled(page);
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Grant access' }).click();
    const resource = page.getByRole('dialog', { name: 'Create a grant' }).getByRole('textbox', { name: /^Id of/ });
    expect(await resource.inputValue()).toBe(trace_id);
    for (const [path, id] of [
      [`/judges/${judge_id}`, judge_id],
      [`/datasets/${dataset_id}`, dataset_id],
    ] as const) {
      await page.goto(orgPath(path));
      await page.getByRole('link', { name: 'Grant access' }).click();
      expect(await resource.inputValue()).toBe(id);
    }
    expectNoFaults(page);
  });

  it('is offered to nobody but owners', async () => {
    const page = await openPage({ at: `~/judges/${inject('judged').judge_id}` });
    await page.getByRole('button', { name: 'Edit judge' }).waitFor();
    expect(await page.getByRole('link', { name: 'Grant access' }).count()).toBe(0);
    expectNoFaults(page);
  });
});

describe('a model call', () => {
  it('is copied as a command that makes it again through the gateway', async () => {
    const permissions = ['clipboard-read', 'clipboard-write'];
    const traceId = await traceOf('kitchenware-support');
    const page = await openPage({ at: `~/traces/${traceId}`, context: { permissions } });
    await settled(page);
    await spans(page)
      .getByRole('row', { name: /gpt-4o-mini/ })
      .first()
      .click();
    await panel(page).getByRole('button', { name: 'Copy as a call of the gateway' }).click();
    await panel(page).getByRole('button', { name: 'Copied' }).waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    expect(command).toContain(`curl -s '${inject('portal').url}/v1/chat/completions'`);
    expect(command).toContain('"model": "gpt-4o-mini"');
    expect(command).toContain('my kettle came with a cracked lid');
    expectNoFaults(page);
  });
});

describe('the find of a trace', () => {
  it('takes the first Ctrl+F and leaves the second one to the browser', async () => {
    const page = await openTrace(await traceOf('checkout-agent'));
    await page.evaluate(() => {
      const note = (event: KeyboardEvent): void => {
        // The page has seen the key by then.
        if (event.key === 'f')
          setTimeout(() => {
            const { dataset } = document.documentElement;
            dataset['taken'] = `${dataset['taken'] ?? ''}${event.defaultPrevented ? ' page' : ' browser'}`;
          });
      };
      addEventListener('keydown', note, true);
    });
    const takenBy = (whom: string) =>
      page.waitForFunction((wanted) => document.documentElement.dataset['taken'] === wanted, whom);
    await page.keyboard.press('Control+f');
    await page.waitForFunction(() => document.activeElement?.getAttribute('type') === 'search');
    await takenBy(' page');
    await page.keyboard.press('Control+f');
    await takenBy(' page browser');
    expectNoFaults(page);
  });
});

describe('a score', () => {
  it('is added by keyboard and shows in the panel without a reload', async () => {
    const page = await openTrace(await traceOf('kitchenware-support'), '?tab=scores');
    await page.keyboard.press('b');
    const dialog = page.getByRole('dialog', { name: 'Add score' });
    await dialog.waitFor();
    await dialog.getByLabel('Name').fill('tone_of_voice');
    await dialog.getByLabel('Value').fill('0.75');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await eventually(async () => (await panel(page).innerText()).includes('tone_of_voice'), {
      what: 'the score in the panel',
    });
    expectNoFaults(page);
  });
});

describe('the JSON view', () => {
  it('opens what its find finds', async () => {
    const page = await openTrace(await traceOf('checkout-agent'), '?view=json');
    const tree = page.getByRole('tree', { name: 'Outline of the trace' });
    await tree.waitFor();
    const found = tree.getByRole('treeitem', { selected: true }).filter({ hasText: /: "charge_card"$/ });
    expect(await found.count()).toBe(0);
    await page.getByRole('searchbox', { name: 'Find in Outline of the trace' }).fill('charge_card');
    await found.waitFor();
    expectNoFaults(page);
  });
});

describe('a prompt of more than 256 KiB', () => {
  it('is read whole, to its last words', async () => {
    const traceId = 'browser-whole-prompt';
    const prompt = `${'All work and no play. '.repeat(20_000)}The needle.`;
    await send(traceId, [{ name: 'long', span_id: 'long', attributes: { input: prompt, span_kind: 'tool' } }]);
    const page = await openTrace(traceId, '?tab=io');
    await panel(page)
      .getByText(`${prompt.length.toLocaleString('en-US')} characters`)
      .waitFor();
    await panel(page).getByRole('searchbox', { name: 'Find in Input' }).fill('The needle.');
    await panel(page).locator('mark').filter({ hasText: 'The needle.' }).waitFor();
    expectNoFaults(page);
  });
});

describe('an open trace', () => {
  it('shows a span that arrives later without a reload', async () => {
    const traceId = 'browser-open-trace';
    // Its root is missing, so the trace stays open for a while after each span.
    const parent_span_id = 'root-that-is-still-running';
    const page = await openPage({ at: '~/traces?t=7d' });
    await settled(page);
    await send(traceId, [{ name: 'first_step', span_id: 'step-1', parent_span_id }]);
    await page.goto(orgPath(`/traces/${traceId}`));
    await spans(page).getByText('first_step').waitFor();
    await page.evaluate(() => {
      document.documentElement.dataset['notReloaded'] = 'true';
    });
    await send(traceId, [{ name: 'second_step', span_id: 'step-2', parent_span_id }], 2);
    await spans(page).getByText('second_step').waitFor();
    expect(await page.evaluate(() => document.documentElement.dataset['notReloaded'])).toBe('true');
    expectNoFaults(page);
  });
});

describe('the columns and attributes of a trace', () => {
  it('the width of the names changes by keys and holds after a reload', async () => {
    const page = await openTrace(await traceOf('checkout-agent'));
    const head = spans(page).getByRole('columnheader', { name: 'Name' });
    const widthOf = async (): Promise<number> => (await head.boundingBox())?.width ?? 0;
    const before = await widthOf();
    await page.getByRole('separator', { name: 'Width of the names' }).focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await eventually(async () => (await widthOf()) > before, { what: 'a wider column' });
    const after = await widthOf();
    await page.reload();
    await settled(page);
    await spans(page).waitFor();
    expect(await widthOf()).toBe(after);
    expectNoFaults(page);
  });

  it('an attribute leads to the traces that have it, by its link and by a click with Alt', async () => {
    const traceId = 'browser-attributes';
    await send(traceId, [{ name: 'placed', span_id: 'placed', attributes: { shop: { region: 'eu, west' } } }]);
    const page = await openTrace(traceId, '?tab=attributes');
    const isFiltered = (url: URL): boolean =>
      url.pathname === orgPath('/traces') && (url.searchParams.get('attributes.shop.region') ?? '').includes('west');
    await panel(page).getByRole('link', { name: 'Show the traces with shop.region eu, west' }).press('Enter');
    await page.waitForURL(isFiltered);
    await settled(page);
    await page.getByText('1 trace', { exact: true }).waitFor();
    await page.goBack();
    await settled(page);
    await panel(page)
      .getByRole('button', { name: 'eu, west' })
      .click({ modifiers: ['Alt'] });
    await page.waitForURL(isFiltered);
    await settled(page);
    expectNoFaults(page);
  });
});
