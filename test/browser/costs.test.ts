// The cost pages: their numbers are those of the API, one click leads to them, charts are read by
// keys and as tables, and each role sees what it may. The organization has a history of 40 days.
import type { Page } from 'playwright-core';
import { beforeAll, expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, overflow, settled } from './support/browser.ts';
import { OwnOrg } from './support/own_org.ts';

const DAY_MS = 86_400_000;
const DAYS = 40;
const MODELS = ['north', 'south', 'east', 'west', 'upper', 'lower', 'inner', 'outer', 'middle', 'last'];
const dayBefore = (ago: number): string =>
  new Date((Math.floor(Date.now() / DAY_MS) - ago) * DAY_MS).toISOString().slice(0, 10);

interface Sums {
  cost_usd: number;
  by_day: { cost_usd: number[] };
}
interface CostSeries {
  dates: string[];
  groups: (Sums & { group: { model: string | null } })[];
  other: Sums;
  total: Sums;
}
interface Forecast {
  days_of_data: number;
  mean_fallback: boolean;
  series: { date: string; predicted_usd: number; lower_ci: number; upper_ci: number }[];
}

let org: OwnOrg;

beforeAll(async () => {
  org = await OwnOrg.make();
  const events = Array.from({ length: DAYS }, (_, at) => DAYS - at).flatMap((ago) =>
    MODELS.map((model, at) => ({
      event_id: `evt_${ago}_${model}`,
      name: model,
      started_at: `${dayBefore(ago)}T10:00:00Z`,
      ended_at: `${dayBefore(ago)}T10:00:01Z`,
      outcome: 'success',
      attributes: {
        span_kind: 'llm',
        model,
        agent_id: at % 2 === 0 ? 'planner' : 'support',
        department: at % 3 === 0 ? 'sales' : 'research',
        input_tokens: 100 * (at + 1),
        output_tokens: 10,
        // Yesterday one model costs far more than on the days before it.
        cost_usd: ago === 1 && model === 'east' ? 90 : (10 - at) * (1 + (DAYS - ago) / 100 + (ago % 4) / 20),
      },
    })),
  );
  for (let from = 0; from < events.length; from += 100)
    await org.data('POST', `/orgs/${org.org_id}/ingest/custom`, { events: events.slice(from, from + 100) });
  await eventually(async () => (await seriesOf('days=60&group_by=model')).dates.length === 60 && (await landed()), {
    what: 'the whole history',
  });
  const { url, admin_token } = inject('portal');
  const job = await fetch(`${url}/admin/jobs/anomalies/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin_token}`, 'content-type': 'application/json' },
    body: '{}',
  });
  expect(job.status).toBe(200);
});

const seriesOf = (query: string): Promise<CostSeries> => org.data('GET', `/v1/cost/series?${query}`);

async function landed(): Promise<boolean> {
  const { data } = (await org.call('GET', '/v1/traces?limit=1')).json as { data: unknown };
  const { total } = await seriesOf('days=60&group_by=model');
  const sent = total.by_day.cost_usd.filter((usd) => usd > 0).length;
  return data !== undefined && sent === DAYS && (await unlanded()) === 0;
}

async function unlanded(): Promise<number> {
  const { json } = await org.call('POST', '/v1/analytics/query', {
    view: 'spans',
    measures: [{ measure: 'count' }],
    since: `${dayBefore(DAYS)}T00:00:00Z`,
  });
  const [stored] = (json.data as { totals: number[] }).totals;
  return DAYS * MODELS.length - (stored ?? 0);
}

/** Returns the rows of a table by the text of their cells, with the exact value that a cell names. */
const cellsOf = (page: Page, region: string): Promise<{ text: string; title: string | null }[][]> =>
  page
    .getByRole('region', { name: region, exact: true })
    .locator('tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) =>
        [...row.querySelectorAll('th, td')].map((cell) => ({
          text: cell.textContent.trim(),
          title: cell.getAttribute('title'),
        })),
      ),
    );

/** Returns the number that an exact text such as $1,204.5 means. */
const numberOf = (text: string | null | undefined): number => Number((text ?? '').replaceAll(/[$,]/g, ''));

const openCosts = async (path = '', role: 'admin' | 'member' = 'admin'): Promise<Page> => {
  const page = await org.open(role, `/costs${path}`);
  await settled(page);
  return page;
};

/** Resolves once a chart is drawn: some pixel of its canvas has a colour. */
const drawn = (page: Page, at = 0): Promise<void> =>
  eventually(
    () =>
      page
        .locator('main canvas')
        .nth(at)
        .evaluate((canvas: HTMLCanvasElement) => {
          const { data } = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
          return data.some((value, index) => index % 4 === 3 && value > 0);
        })
        .catch(() => false),
    { what: 'the chart' },
  );

it('one click leads from Home to what each model cost, and every number is that of the API', async () => {
  const page = await org.open('admin', '');
  await settled(page);
  await page.getByRole('navigation').getByRole('link', { name: 'Costs' }).click();
  await page.waitForURL((url) => url.pathname.endsWith('/costs'));
  await settled(page);
  await drawn(page);
  const { groups, total } = await seriesOf('days=30&group_by=model');
  const rows = await cellsOf(page, 'Cost by model');
  const shown = rows.map(([name, cost]) => [name?.text, numberOf(cost?.title)]);
  expect(shown).toEqual([...groups.map(({ group, cost_usd }) => [group.model, cost_usd]), ['All', total.cost_usd]]);
  expectNoFaults(page);
});

it('the stack adds up to the costs of each day, as the table behind the chart shows', async () => {
  const page = await openCosts('?days=14');
  await drawn(page);
  await page.keyboard.press('Shift+T');
  const rows = await cellsOf(page, 'Cost by day and model');
  const { dates, total, groups } = await seriesOf('days=14&group_by=model');
  expect(rows.map(([day]) => day?.text)).toEqual(dates);
  for (const [at, [, all, first]] of rows.entries()) {
    expect(numberOf(all?.title)).toBeCloseTo(total.by_day.cost_usd[at] ?? Number.NaN, 9);
    expect(numberOf(first?.title)).toBe(groups[0]?.by_day.cost_usd[at]);
  }
  // Eight models have a part of their own; the other two are one part.
  const sums = rows.map((cells) => cells.slice(2, -1).reduce((sum, { title }) => sum + numberOf(title), 0));
  for (const [at, sum] of sums.entries()) expect(sum).toBeCloseTo(total.by_day.cost_usd[at] ?? Number.NaN, 9);
  expect(rows.at(-2)?.at(-1)?.text).toContain('Anomaly');
  expectNoFaults(page);
});

it('keys read the chart day by day and part by part, and Enter shows the traces of that part', async () => {
  const page = await openCosts('?days=14');
  await drawn(page);
  const chart = page.getByRole('slider', { name: /^Cost by day and model\. / });
  await chart.focus();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowUp');
  expect(await chart.getAttribute('aria-valuetext')).toContain(dayBefore(1));
  expect(await chart.getAttribute('aria-valuetext')).toMatch(/, (?:north|east) \$/);
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.endsWith('/traces'));
  const { searchParams } = new URL(page.url());
  expect(searchParams.get('since')).toBe(`${dayBefore(1)}T00:00:00.000Z`);
  expect(['north', 'east']).toContain(searchParams.get('model'));
  await settled(page);
  await page.getByText('1 trace', { exact: true }).waitFor();
  expectNoFaults(page);
});

it('a name of the legend is highlighted by the focus, and a value keeps its colour on the next tab', async () => {
  const page = await openCosts();
  await drawn(page);
  const pixels = (): Promise<string> =>
    page
      .locator('main canvas')
      .first()
      .evaluate((one: HTMLCanvasElement) => one.toDataURL());
  const before = await pixels();
  const first = page.getByRole('list', { name: 'Legend' }).getByRole('button').first();
  await first.focus();
  await eventually(async () => (await pixels()) !== before, { what: 'faded parts' });
  const colour = await first.locator('span').evaluate((one) => getComputedStyle(one).backgroundColor);
  await page.getByRole('tab', { name: 'Agent' }).click();
  await settled(page);
  await page.getByRole('tab', { name: 'Model' }).click();
  await settled(page);
  expect(await first.locator('span').evaluate((one) => getComputedStyle(one).backgroundColor)).toBe(colour);
  expectNoFaults(page);
});

it('the forecast shows the line and the interval of the API, and says how it was made', async () => {
  const page = await openCosts('/forecast');
  await drawn(page, 0);
  await drawn(page, 1);
  const forecast = await org.data<Forecast>('GET', '/v1/cost/forecast?days=30');
  await page.getByText(`a line through ${forecast.days_of_data} whole days of data`).waitFor();
  await page.keyboard.press('Shift+T');
  const rows = await cellsOf(page, 'Cost by day and its forecast');
  const ahead = rows.filter(([, , line]) => line?.title !== '–');
  expect(ahead.map(([day, , ...cells]) => [day?.text, ...cells.map(({ title }) => numberOf(title))])).toEqual(
    forecast.series.map(({ date, predicted_usd, lower_ci, upper_ci }) => [
      date,
      ...[predicted_usd, lower_ci, upper_ci].map(written),
    ]),
  );
  expectNoFaults(page);
});

/** The portal writes 15 significant digits, so that an amount under $1,000 is exact to nine places. */
const written = (value: number): number => expect.closeTo(value, 9) as number;

it('the forecast of use names its limits, and how few days there are', async () => {
  await org.data('PUT', `/orgs/${org.org_id}/budget`, { tokens: { soft_limit: 1000, hard_limit: 900_000_000 } });
  const page = await openCosts('/forecast');
  // Use counts on the day on which it is received, which is today for the whole history.
  await page.getByText(/^Tokens: stays below the hard limit of 900M.tokens.*; reaches the soft limit/).waitFor();
  await page.getByText(/^The forecast begins after the first whole day of data\. There is none yet\./).waitFor();
  await page.getByRole('tab', { name: 'Storage' }).click();
  await page.waitForURL((url) => url.searchParams.get('resource') === 'storage_mb');
  expectNoFaults(page);
});

it('an anomaly stands in the list with its model and agent, and leads to the traces of its day', async () => {
  const page = await openCosts('/anomalies');
  const [anomaly] = await org.data<{ date: string; actual_usd: number; expected_usd: number }[]>(
    'GET',
    '/v1/cost/anomalies',
  );
  const [row] = await cellsOf(page, 'Anomalies found');
  expect(row?.map(({ text }) => text)).toEqual(expect.arrayContaining([dayBefore(1), 'east', 'planner']));
  expect([row?.[1], row?.[2]].map((cell) => numberOf(cell?.title))).toEqual(
    [anomaly?.actual_usd ?? 0, anomaly?.expected_usd ?? 0].map(written),
  );
  await page.getByRole('link', { name: dayBefore(1) }).click();
  await page.waitForURL((url) => url.searchParams.get('agent_id') === 'planner');
  expect(new URL(page.url()).searchParams.get('model')).toBe('east');
  expectNoFaults(page);
});

it('a threshold is tried out and then saved', async () => {
  const page = await openCosts('/anomalies?days=30');
  const before = await org.data<{ days: unknown[] }>('GET', '/v1/cost/anomalies/preview?days=30&z_threshold=1.5');
  const field = page.getByRole('textbox', { name: 'z-score' });
  await field.fill('150');
  await page.getByText('Must be a number above 0 and at most 99.').waitFor();
  await field.fill('1.5');
  await page.getByText(`would have marked ${before.days.length} of the last 30 days`).waitFor();
  expect(new URL(page.url()).searchParams.get('z_threshold')).toBe('1.5');
  await page.getByRole('button', { name: 'Save threshold' }).click();
  await page.getByText('The threshold is saved.').waitFor();
  expect(await org.data('GET', `/orgs/${org.org_id}/cost/anomaly-config`)).toEqual({
    z_threshold: 1.5,
    lookback_days: 30,
  });
  expectNoFaults(page);
});

it('a member reads costs and tries a threshold without being offered to save', async () => {
  const page = await openCosts('/anomalies', 'member');
  await page.getByRole('textbox', { name: 'z-score' }).fill('2');
  await settled(page);
  expect(await page.getByRole('button', { name: 'Save threshold' }).count()).toBe(0);
  for (const path of ['', '/forecast']) {
    await page.goto(`/o/${org.org_id}/costs${path}`);
    await settled(page);
  }
  expectNoFaults(page);
});

it('a viewer is told which permission costs need, and no request is refused', async () => {
  const page = await org.open('viewer', '/costs');
  await page.getByText('costs:read').waitFor();
  expectNoFaults(page);
});

it('Home shows the cost of today against its forecast and the anomaly as what needs somebody', async () => {
  const page = await org.open('admin', '');
  await settled(page);
  const forecast = await org.data<Forecast>('GET', '/v1/cost/forecast?days=1');
  const [today] = forecast.series;
  const tile = page.getByRole('link', { name: /^Cost today \(UTC\)/ });
  expect(await tile.textContent()).toContain(`$${(today?.predicted_usd ?? 0).toFixed(2)} expected`);
  const line = page.getByRole('link', { name: new RegExp(`^${dayBefore(1)} cost \\$`) });
  await line.click();
  await page.waitForURL((url) => url.searchParams.get('since') === `${dayBefore(1)}T00:00:00.000Z`);
  expectNoFaults(page);
});

it.each(['', '/forecast', '/anomalies?z_threshold=1'])(
  'the cost page "%s" meets WCAG 2.2 AA in both themes and does not scroll sideways at 320 pixels',
  async (path) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await org.open('admin', `/costs${path}`, { context: { colorScheme } });
      await settled(page);
      expect(await axeViolations(page)).toEqual([]);
      await page.keyboard.press('Shift+T');
      expect(await axeViolations(page)).toEqual([]);
      expectNoFaults(page);
    }
    const narrow = await org.open('admin', `/costs${path}`, { context: { viewport: { width: 320, height: 700 } } });
    await settled(narrow);
    expect(await overflow(narrow)).toBe(0);
    expect(await narrow.getByRole('heading', { level: 1 }).count()).toBe(1);
  },
);
