// The jobs that people come to do, each with at most the clicks and keys that it may take: to see why a
// run failed or was slow, to find one, to compare two, and to try a prompt.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';
import { api, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';
import { Hands } from './support/hands.ts';
import { OwnOrg } from './support/own_org.ts';
import { aPrompt } from './support/prompts.ts';

async function traceOf(query: string): Promise<string> {
  const { data } = (await (await api(`/v1/traces?limit=1&${query}`)).json()) as { data: { trace_id: string }[] };
  const id = data[0]?.trace_id;
  if (id === undefined) throw new Error(`no trace with ${query}`);
  return id;
}

describe('the first trace', () => {
  it('is sent by a command that one click copies with a key in it, and shows up by itself', async () => {
    const org = await OwnOrg.make();
    const page = await org.open('owner', '', { context: { permissions: ['clipboard-read', 'clipboard-write'] } });
    const hands = new Hands(page);
    await page.getByRole('heading', { level: 1, name: 'Send data' }).waitFor();
    await hands.click(page.getByRole('button', { name: 'Create key and copy command' }));
    await page.getByText('Copied the command with a new key.').waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    await promisify(execFile)('sh', ['-c', command]);
    await page.getByText(/arrived, 2 spans/).waitFor();
    await page.getByRole('link', { name: 'plan' }).waitFor();
    hands.expectAtMost({ clicks: 1, keys: 0 });
    // Home led here while there was no trace, and now shows it.
    await page.getByRole('link', { name: 'Home', exact: true }).click();
    await page.getByRole('link', { name: /^Traces 1 / }).waitFor();
    await settled(page);
    expect(new URL(page.url()).pathname).toBe(`/o/${org.org_id}`);
    expectNoFaults(page);
  });
});

describe('why a run failed', () => {
  it('stands on its page without a click, and is two clicks from Home', async () => {
    const page = await openPage({ at: `~/traces/${await traceOf('agent_id=checkout-agent')}` });
    const span = page.getByRole('region', { name: 'Span', exact: true });
    await page.getByRole('region', { name: 'Cause of the failure' }).getByText('card_declined').waitFor();
    await span.getByText('Error: card_declined: the issuer declined the payment').first().waitFor();
    expectNoFaults(page);
    // Other tests send failed traces of their own, so Home is that of another organization.
    const org = await OwnOrg.make();
    const event = { outcome: 'error', duration_ms: 10, trace_id: 'job-failed' };
    await org.data('POST', `/orgs/${org.org_id}/ingest/custom`, {
      events: [
        { ...event, name: 'pay order', span_id: 'root' },
        {
          ...event,
          name: 'charge_card',
          span_id: 'charge',
          parent_span_id: 'root',
          attributes: { span_kind: 'tool', output: 'Error: card_declined' },
        },
      ],
    });
    await expect.poll(async () => (await org.call('GET', '/v1/traces/job-failed')).status).toBe(200);
    const home = await org.open('member', '');
    const hands = new Hands(home);
    await hands.click(home.getByRole('link', { name: /^pay order/ }));
    await home.getByRole('region', { name: 'Span', exact: true }).getByText('card_declined').first().waitFor();
    hands.expectAtMost({ clicks: 2, keys: 0 });
    expectNoFaults(home);
  });
});

describe('a run in which a user said something', () => {
  it('is found by /, the words and Enter', async () => {
    const page = await openPage({ at: '~/' });
    await settled(page);
    const hands = new Hands(page);
    await hands.press('/');
    await page.waitForURL((url) => url.pathname === orgPath('/search'));
    await page.waitForFunction(() => document.activeElement?.getAttribute('type') === 'search');
    await hands.type('cracked lid');
    await hands.press('Enter');
    await page.waitForURL((url) => url.pathname.startsWith(orgPath('/traces/')));
    expect(new URL(page.url()).searchParams.get('find')).toBe('cracked lid');
    hands.expectAtMost({ clicks: 0, keys: 2 });
    expectNoFaults(page);
  });
});

describe('why a run was slow or expensive', () => {
  it('stands over its spans without a click, and one click goes to the first span of a part', async () => {
    const page = await openPage({ at: `~/traces/${await traceOf('agent_id=travel-planner')}` });
    const where = page.getByRole('region', { name: 'Where time and cost went' });
    await where.getByText('search_flights').waitFor();
    expect(await where.getByRole('list').first().getByRole('listitem').count()).toBeLessThanOrEqual(6);
    const hands = new Hands(page);
    await hands.click(where.getByRole('button', { name: /search_flights/ }));
    await page
      .getByRole('treegrid')
      .getByRole('row', { selected: true, name: /search_flights/ })
      .waitFor();
    hands.expectAtMost({ clicks: 1, keys: 0 });
    await page.goto(orgPath('/traces?t=7d&tags=demo'));
    await settled(page);
    const inList = new Hands(page);
    await inList.click(page.getByRole('grid', { name: 'Traces' }).getByRole('button', { name: /^Cost/ }));
    await page.waitForURL((url) => url.searchParams.has('sort'));
    await settled(page);
    const since = new Date(Date.now() - 7 * 86_400_000).toISOString();
    const [dearest] = (
      (await (await api(`/v1/traces?tags=demo&limit=1&sort=cost_usd&since=${since}`)).json()) as {
        data: { root_span_name: string }[];
      }
    ).data;
    const first = page.getByRole('grid', { name: 'Traces' }).getByRole('row').nth(1);
    expect(await first.innerText()).toContain(dearest?.root_span_name ?? '-');
    inList.expectAtMost({ clicks: 1, keys: 0 });
    expectNoFaults(page);
  });
});

describe('whether the new version is better', () => {
  it('is one key from a failed trace', async () => {
    const agent_id = `job-compare-${Date.now()}`;
    const send = (trace_id: string, outcome: string, minutes: number) =>
      api(`/orgs/${inject('portal').org_id}/ingest/custom`, {
        events: [
          {
            name: 'answer',
            trace_id,
            span_id: trace_id,
            outcome,
            started_at: new Date(Date.now() - minutes * 60_000).toISOString(),
            duration_ms: 40,
            attributes: { agent_id, input: 'May I return it?', output: outcome },
          },
        ],
      });
    await send(`${agent_id}-worked`, 'success', 20);
    await send(`${agent_id}-failed`, 'error', 10);
    await expect
      .poll(async () => {
        const answer = await api(`/v1/traces?agent_id=${agent_id}&limit=1`);
        return ((await answer.json()) as { meta: { total: number } }).meta.total;
      })
      .toBe(2);
    const page = await openPage({ at: `~/traces/${agent_id}-failed` });
    await settled(page);
    const hands = new Hands(page);
    await hands.press('c');
    await page.waitForURL((url) => url.pathname === orgPath(`/compare/${agent_id}-worked/${agent_id}-failed`));
    await page.getByRole('grid', { name: 'Aligned spans' }).waitFor();
    hands.expectAtMost({ clicks: 0, keys: 1 });
    expectNoFaults(page);
  });

  it('is two clicks from the list of evals, with the interval of the difference', async () => {
    const { runs } = inject('judged');
    const page = await openPage({ at: `~/evals?dataset_id=${inject('judged').dataset_id}` });
    await settled(page);
    const hands = new Hands(page);
    await hands.click(page.getByRole('grid', { name: 'Evals' }).locator(`a[href$="/evals/${runs[1]}"]`));
    await hands.click(page.getByRole('button', { name: 'Compare with the eval before' }));
    await page.waitForURL((url) => url.pathname === orgPath(`/evals/compare/${runs[0]}/${runs[1]}`));
    await page.getByText(/^\+1 ± 1\.63: within chance \(95 % interval, 6 items with both scores\)/).waitFor();
    hands.expectAtMost({ clicks: 2, keys: 0 });
    expectNoFaults(page);
  });
});

describe('a changed prompt', () => {
  it('is edited, run on three real inputs and compared with four clicks', async () => {
    const name = `job-prompt-${Date.now()}`;
    await aPrompt(name, { org_id: inject('portal').org_id, api });
    const page = await openPage({ at: `~/prompts/${name}` });
    await settled(page);
    const hands = new Hands(page);
    await hands.click(page.getByRole('tab', { name: 'Playground' }));
    await page.getByRole('textbox', { name: 'question of input 3' }).waitFor();
    await hands.click(page.getByRole('textbox', { name: 'Template of Draft of 2' }));
    await hands.press('Control+End');
    await hands.type(' Be brief.');
    await hands.click(page.getByRole('button', { name: 'Run 6 calls' }));
    await page.getByText(/s, \$/).nth(5).waitFor();
    await hands.click(page.getByRole('button', { name: 'Show differences' }));
    await expect.poll(async () => (await page.locator('ins').allInnerTexts()).join()).toContain('brief');
    hands.expectAtMost({ clicks: 4, keys: 1 });
    expectNoFaults(page);
  });
});
