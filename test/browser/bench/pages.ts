// Measures what a person waits for on the pages of costs, comparison, prompts, evals and annotation:
// the page with nothing cached, and the next item after an answer.
import { timesRow } from '../../bench/portal_rows.ts';
import type { ReportRow } from '../../bench/report.ts';
import type { Target } from '../../bench/target.ts';
import type { Measuring } from './opens.ts';
import { makeRegistry } from './registry_data.ts';
import { act, inProfile, load, repeated } from './session.ts';
import type { Wanted } from './probe.ts';

const PAGE_BARS = { p50: 500, p95: 900 };
const NEXT_BARS = { p50: 50, p95: 100 };
const BUSY = 'main [aria-busy="true"]';
/** Items that are answered on one page; the queue has more than the runs of two pages take. */
const ANSWERS_MAX = 20;

/** Opens a page with nothing cached, again and again. */
async function page({ session, runs }: Measuring, name: string, path: string, wanted: Wanted): Promise<ReportRow> {
  const times = await repeated(
    session,
    runs,
    async (context) => (await load(context, session.at(path), { ...wanted, absent: [BUSY] })).seen.at,
  );
  return timesRow(`${name}, nothing cached`, times, PAGE_BARS);
}

/** Costs, and two traces of one size compared. */
export async function costsAndComparison(measuring: Measuring, size: number): Promise<ReportRow[]> {
  const { data } = measuring;
  const trace = data.large.get(size) ?? '';
  const small = `portal-${data.run}-small`;
  return [
    await page(measuring, 'Costs', '/costs', { present: ['main canvas', 'main table td'] }),
    await page(measuring, 'Costs, forecast', '/costs/forecast', { present: ['main canvas'] }),
    await page(measuring, 'two traces of 20 spans compared', `/compare/${small}-0/${small}-1`, {
      present: ['[role="grid"] [role="gridcell"]'],
    }),
    await page(measuring, `a trace of ${size} spans compared with one of 20`, `/compare/${small}-0/${trace}`, {
      present: ['[role="grid"] [role="gridcell"]'],
    }),
  ];
}

/** Prompts, evals and annotation. */
export async function registries(measuring: Measuring, target: Target): Promise<ReportRow[]> {
  const { prompt, eval_id, queue_id } = await makeRegistry(target, measuring.data);
  const rows = { present: ['[role="grid"] [role="gridcell"]'] };
  return [
    await page(measuring, 'Prompts', '/prompts', rows),
    await page(measuring, 'a prompt of 20 versions', `/prompts/${prompt}`, {
      present: ['nav li', 'main textarea'],
    }),
    await page(measuring, 'Evals', '/evals', rows),
    await page(measuring, 'an eval of 60 items', `/evals/${eval_id}`, rows),
    await page(measuring, 'Annotate: the first item', `/annotate/${queue_id}/label`, {
      present: ['form[aria-label="Scores"]'],
    }),
    await answers(measuring, queue_id),
  ];
}

/** The next item after an answer, which is loaded ahead. */
async function answers({ session, runs }: Measuring, queue_id: string): Promise<ReportRow> {
  const LINK = 'main a[href*="/traces/"]';
  const times = await inProfile(session, async (context) => {
    const wanted = { present: ['form[aria-label="Scores"]', LINK], absent: [BUSY] };
    const { page: opened } = await load(context, session.at(`/annotate/${queue_id}/label`), wanted);
    const measured: number[] = [];
    for (let n = -1; n < Math.min(runs, ANSWERS_MAX); n += 1) {
      const before = await opened.locator(LINK).first().getAttribute('href');
      await act(opened, { key: '1' }, { present: ['form[aria-label="Scores"] input:checked'] });
      const { ms } = await act(opened, { key: 'Enter' }, { changed: [LINK, 'href', before] });
      if (n >= 0) measured.push(ms);
    }
    return measured;
  });
  return timesRow('Annotate: Enter to the next item', times, NEXT_BARS);
}
