import type { Page } from 'playwright-core';
import { describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';

interface Event {
  name: string;
  trace_id: string;
  span_id?: string;
  parent_span_id?: string;
  outcome?: string;
  duration_ms?: number;
  attributes?: Record<string, unknown>;
}

/** Sends the events of one trace and resolves when its outline shows all of them. */
async function send(traceId: string, events: Omit<Event, 'trace_id'>[]): Promise<void> {
  const { org_id } = inject('portal');
  await api(`/orgs/${org_id}/ingest/custom`, {
    events: events.map((event) => ({ outcome: 'success', duration_ms: 10, ...event, trace_id: traceId })),
  });
  await eventually(async () => (await spansOf(traceId)) === events.length, { what: `${traceId} to be stored` });
}

async function spansOf(traceId: string): Promise<number> {
  const answer = await api(`/v1/traces/${traceId}/outline`).catch(() => null);
  if (answer === null) return 0;
  const { meta } = (await answer.json()) as { meta: { total: number } };
  return meta.total;
}

async function traceOf(agent: string): Promise<string> {
  const { data } = (await (await api(`/v1/traces?limit=1&agent_id=${agent}`)).json()) as {
    data: { trace_id: string }[];
  };
  const id = data[0]?.trace_id;
  if (id === undefined) throw new Error(`no trace of ${agent}`);
  return id;
}

const selected = (page: Page) => page.getByRole('treegrid').getByRole('row', { selected: true });
const panel = (page: Page) => page.getByRole('region', { name: 'Span', exact: true });
const selects = (page: Page, name: string): Promise<void> =>
  eventually(async () => (await selected(page).innerText()).includes(name), { what: `the row ${name} to be selected` });
const openTrace = async (traceId: string, query = ''): Promise<Page> => {
  const page = await openPage({ at: `~/traces/${traceId}${query}` });
  await settled(page);
  return page;
};

describe('a failed trace', () => {
  it('opens on the span that caused the failure, with its error readable', async () => {
    const page = await openTrace(await traceOf('checkout-agent'));
    expect(await page.getByRole('region', { name: 'Cause of the failure' }).innerText()).toContain('card_declined');
    await selected(page).waitFor();
    expect(await selected(page).innerText()).toContain('charge_card');
    expect(await panel(page).innerText()).toContain('Error: card_declined: the issuer declined the payment');
    expectNoFaults(page);
  });

  it('opens on the span that the address names instead, and shows what the address shows', async () => {
    const traceId = await traceOf('checkout-agent');
    const page = await openTrace(traceId);
    await page.keyboard.press('k');
    await page.waitForURL((url) => url.searchParams.has('span'));
    const before = await selected(page).innerText();
    await page.reload();
    await settled(page);
    await selected(page).waitFor();
    expect(await selected(page).innerText()).toBe(before);
  });

  it('shows where the time went', async () => {
    const page = await openTrace(await traceOf('checkout-agent'));
    expect(await page.getByRole('region', { name: 'Where time and cost went' }).innerText()).toMatch(/idle\s+66\s%/);
  });
});

describe('a trace of 2,000 spans', () => {
  it('is walked by keyboard alone: rows, folds, errors and matches', async () => {
    const page = await openTrace(await traceOf('document-indexer'));
    await selected(page).waitFor();
    expect(await selected(page).innerText()).toContain('store_page');
    await page.keyboard.press('ArrowLeft');
    await selects(page, 'batch 25');
    await page.keyboard.press('ArrowLeft');
    await eventually(async () => (await selected(page).getAttribute('aria-expanded')) === 'false', {
      what: 'a folded row',
    });
    await page.keyboard.press('.');
    await selects(page, 'store_page');
    await page.keyboard.press('/');
    await page.keyboard.type('batch 3');
    await page.keyboard.press('Enter');
    await selects(page, 'batch 3');
    expect(await page.getByRole('treegrid').getByRole('row').count()).toBeLessThan(120);
    expectNoFaults(page);
  });
});

describe('texts of a trace', () => {
  it('the conversation says each message once', async () => {
    const page = await openTrace(await traceOf('kitchenware-support'), '?view=conversation');
    const conversation = page.getByRole('region', { name: 'Conversation' });
    await conversation.getByText('I would like my money back').first().waitFor();
    expect(await conversation.getByText('I would like my money back').count()).toBe(1);
    expectNoFaults(page);
  });

  it('a prompt of more than 4 MB opens', async () => {
    const traceId = 'browser-large-prompt';
    const prompt = `${'All work and no play. '.repeat(200_000)}The needle.`;
    await send(traceId, [{ name: 'large', span_id: 'large', attributes: { input: prompt, span_kind: 'tool' } }]);
    const page = await openTrace(traceId);
    await panel(page).getByText('All work and no play.').first().waitFor();
    expectNoFaults(page);
  });

  it('a word that stands only in a text is found, and its span selected', async () => {
    const page = await openTrace(await traceOf('kitchenware-support'));
    await page.keyboard.press('/');
    await page.keyboard.type('cracked');
    await page.keyboard.press('Enter');
    await eventually(async () => (await panel(page).innerText()).includes('cracked'), {
      what: 'the match in the panel',
    });
  });
});

describe('hostile data', () => {
  it('markup, scripts, control characters and right-to-left names are text: nothing runs, nothing overflows', async () => {
    const traceId = 'browser-hostile';
    const hostile = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>';
    await send(traceId, [
      {
        name: hostile,
        span_id: 'root',
        attributes: { input: hostile, output: `javascript:alert(1) ${'x'.repeat(10_000)}` },
      },
      { name: '\u202Eevil\u0007name', span_id: 'rtl', parent_span_id: 'root', attributes: { [hostile]: hostile } },
      {
        name: 'w'.repeat(1000),
        span_id: 'long',
        parent_span_id: 'root',
        attributes: { n: 1e308, deep: { a: [hostile] } },
      },
    ]);
    const page = await openTrace(traceId);
    for (const tab of ['Input/Output', 'Attributes', 'Raw']) {
      await panel(page).getByRole('tab', { name: tab }).click();
      await settled(page);
    }
    await panel(page).getByRole('tab', { name: 'Messages' }).click();
    await panel(page).getByRole('button', { name: 'Rendered' }).first().click();
    await settled(page);
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    expect(await page.title()).not.toBe('owned');
    expect(await page.locator('main img').count()).toBe(0);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(
      0,
    );
    expectNoFaults(page);
  });

  it('a trace that does not exist is named, with the way back', async () => {
    const page = await openPage({ at: '~/traces/trc_00000000deadbeef' });
    await page.getByText('There is no such trace').waitFor();
    await page.getByRole('link', { name: 'Show the list of traces' }).waitFor();
    expect(new URL(page.url()).pathname).toBe(orgPath('/traces/trc_00000000deadbeef'));
  });
});
