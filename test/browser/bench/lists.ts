// Measures the list and the search: hits after the last key, rows and facets after a filter, and
// what a live list costs while traces arrive.
import { setTimeout as pause } from 'node:timers/promises';
import type { ReportRow } from '../../bench/report.ts';
import { figureRow, p50p95, timesRow } from '../../bench/portal_rows.ts';
import { singleBody } from '../../bench/bodies.ts';
import { Load } from '../../bench/load.ts';
import { laneTarget, type Target } from '../../bench/target.ts';
import { seededRandom, type Vocabulary } from '../../bench/vocabulary.ts';
import { send } from './data.ts';
import type { Measuring } from './opens.ts';
import { act, cpuMeter, inProfile, load, repeated, until } from './session.ts';

const ROWS = '[role="grid"] [role="gridcell"]';
const FACETS = 'aside#facets';
const BUSY = 'main [aria-busy="true"]';
const FIELD = 'input[type="search"][aria-label="Search prompts and responses"]';
export const LIVE_TRACES_PER_S = 100;
const LIVE_CPU_SHARE = 0.15;
const LIVE_SECONDS = 10;
const LIVE_LANES = 4;
const LIVE_BODIES = 256;
const SHOWN_MS_MAX = 2000;

/** Types two words of a stored text and waits for the hits. */
export async function search({ session, data, runs }: Measuring): Promise<ReportRow[]> {
  const times = await repeated(session, runs, async (context, run) => {
    const { page } = await load(context, session.at('/search?t=7d'), { present: [FIELD] });
    const words = data.words(run);
    await act(page, { type: words.slice(0, -1), into: FIELD }, { present: [FIELD] });
    const hits = { present: ['[id^="hit-"]'], absent: [BUSY] };
    return (await act(page, { type: words.slice(-1), into: FIELD }, hits)).ms;
  });
  return [timesRow('search: last key to hits, 180 ms of it the pause', times, { p50: 250, p95: 450 })];
}

/** Chooses a facet. A filter chosen a second time is answered from the cache, so each run has a page of its own. */
export async function filter({ session, data, runs }: Measuring): Promise<ReportRow[]> {
  const { tag, agents, tracesOfAgent } = data.small;
  const results = await repeated(session, runs, async (context, run) => {
    const agent = agents[run % agents.length] ?? '';
    const button = `${FACETS} button[title^="${agent}:"]`;
    const { page } = await load(context, session.at(`/traces?t=7d&tags=${tag}`), { present: [ROWS, button] });
    return page.evaluate(
      async ([choice, total, facets]) => {
        const rows = {
          present: [`${choice}[aria-pressed="true"]`],
          absent: ['[role="grid"][aria-busy="true"]'],
          text: ['main', total] as const,
        };
        const counted = { ...rows, absent: [...rows.absent, `${facets}[aria-busy="true"]`] };
        const clicked = window.portalProbe.act({ click: choice }, rows);
        const after = window.portalProbe.until(counted);
        const [first, second] = await Promise.all([clicked, after]);
        return { rows: first.ms, facets: second.at - (first.at - first.ms) };
      },
      [button, `${tracesOfAgent} traces`, FACETS] as const,
    );
  });
  return [
    timesRow(
      'filter chosen: rows',
      results.map(({ rows }) => rows),
      { p50: 120 },
    ),
    timesRow(
      'filter chosen: facets',
      results.map(({ facets }) => facets),
      { p50: 250 },
    ),
  ];
}

/** Sends single-span traces at a steady rate until it is stopped. */
function traffic(target: Target, vocabulary: Vocabulary): Load {
  const random = seededRandom(41);
  return new Load({
    target: laneTarget(target),
    path: `/orgs/${target.org}/ingest/chatcompletion`,
    bodies: Array.from({ length: LIVE_BODIES }, () => singleBody(vocabulary, random)),
    bodyEvents: 1,
    lanes: LIVE_LANES,
    rate: LIVE_TRACES_PER_S,
  });
}

/** The live list beside 100 traces a second: the CPU of the page, and the wait until a trace is shown. */
export async function liveTail(
  { session, data, runs }: Measuring,
  target: Target,
  vocabulary: Vocabulary,
): Promise<ReportRow[]> {
  const sent = traffic(target, vocabulary);
  return inProfile(session, async (context) => {
    const { page } = await load(context, session.at('/traces?t=1h&live=1'), { present: [ROWS] });
    sent.start();
    try {
      const meter = await cpuMeter(page);
      const before = sent.acknowledged;
      await pause(LIVE_SECONDS * 1000);
      const share = await meter();
      const rate = (sent.acknowledged - before) / LIVE_SECONDS;
      const waits: number[] = [];
      for (let run = 0; run < runs; run += 1) {
        const traceId = `portal-${data.run}-live-${run}`;
        const shown = until(page, { present: [`[role="grid"] a[href$="/traces/${traceId}"]`] });
        const [seen, acknowledged] = await Promise.all([
          shown.then(() => performance.now()),
          send(target, [
            { name: 'live', trace_id: traceId, span_id: traceId, outcome: 'success', duration_ms: 20 },
          ]).then(() => performance.now()),
        ]);
        waits.push(Math.max(0, seen - acknowledged));
      }
      return [
        figureRow(`live list at ${LIVE_TRACES_PER_S} traces/s: CPU of the page`, {
          value: share,
          unit: 'share',
          words: `${(share * 100).toFixed(1)} % of a core`,
          most: LIVE_CPU_SHARE,
          bar: '≤ 15 % of a core',
          note: `${Math.round(rate)} traces/s acknowledged`,
        }),
        {
          ...timesRow('live list: acknowledged to shown', waits),
          bar: 'p95 ≤ 2 s',
          measures: p50p95(waits, { p95: SHOWN_MS_MAX }),
        },
      ];
    } finally {
      await sent.stop();
    }
  });
}
