// The cost of an open page for ingest: the same load with and without a live list beside it, in
// turns, so that a machine that becomes slower meets both alike.
import { median } from 'simple-statistics';
import { BATCH_EVENTS, batchBody } from '../../bench/bodies.ts';
import { runLoad } from '../../bench/ingest.ts';
import { figureRow, type PortalRun } from '../../bench/portal_rows.ts';
import { type Section, thousands } from '../../bench/report.ts';
import { sqlRunner } from '../../bench/store.ts';
import { seededRandom } from '../../bench/vocabulary.ts';
import { inProfile, load, type Session } from './session.ts';

const ROUNDS = 3;
const SECONDS_MAX = 20;
const BODIES = 64;
const LANES = 8;
const LESS_MAX = 0.03;

interface Round {
  events_per_s: number;
  cpu_us_per_event: number;
}

/** Returns the section of ingest with and without an open page. @throws Error when the store cannot be asked */
export async function ingestCost(session: Session, run: PortalRun): Promise<Section> {
  const { target, vocabulary, progress } = run;
  if (target.clickhouseUrl === null) throw new Error('--ingest looks into ClickHouse: name it by --clickhouse-url');
  const random = seededRandom(53);
  const bodies = Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random));
  const options = {
    target,
    runSql: sqlRunner(target.clickhouseUrl),
    format: 'custom',
    bodies,
    bodyEvents: BATCH_EVENTS,
    lanes: LANES,
    rate: Infinity,
    seconds: Math.min(run.seconds, SECONDS_MAX),
    progress,
  };
  const measure = async (): Promise<Round> => {
    const { to_queryable_per_s, cpu_s, acknowledged } = await runLoad(options);
    const cpu = Object.values(cpu_s).reduce((sum, seconds) => sum + seconds, 0);
    return { events_per_s: to_queryable_per_s, cpu_us_per_event: (cpu * 1e6) / acknowledged };
  };
  const rounds: Record<'without' | 'with', Round[]> = { without: [], with: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    progress(`portal: ingest without a page, round ${round + 1} of ${ROUNDS}`);
    rounds.without.push(await measure());
    progress(`portal: ingest beside a live list, round ${round + 1} of ${ROUNDS}`);
    rounds.with.push(
      await inProfile(session, async (context) => {
        await load(context, session.at('/traces?t=1h&live=1'), { present: ['[role="grid"]'] });
        return measure();
      }),
    );
  }
  const medianOf = (kind: 'without' | 'with', name: keyof Round): number =>
    median(rounds[kind].map((round) => round[name]));
  const rows = (['without', 'with'] as const).flatMap((kind) => {
    const perSecond = medianOf(kind, 'events_per_s');
    const cpu = medianOf(kind, 'cpu_us_per_event');
    const page = kind === 'with' ? 'beside a live list' : 'without a page';
    return [
      figureRow(`events to queryable, ${page}`, {
        value: perSecond,
        unit: 'per_s',
        words: `${thousands(perSecond)}/s`,
        note: `median of ${ROUNDS}`,
      }),
      figureRow(`CPU of the service an event, ${page}`, { value: cpu, unit: 'us', words: `${thousands(cpu)} µs` }),
    ];
  });
  const less = 1 - medianOf('with', 'events_per_s') / medianOf('without', 'events_per_s');
  rows.push(
    figureRow('events to queryable that an open live list costs', {
      value: less,
      unit: 'share',
      words: `${(less * 100).toFixed(1)} %`,
      most: LESS_MAX,
      bar: `≤ ${LESS_MAX * 100} %`,
      note: 'the browser runs on the same cores',
    }),
  );
  return { title: 'Ingest with and without an open page of the portal', rows, data: rounds };
}
