// Measures what a person does inside of an open trace: selecting spans, large texts, scrolling, zoom
// and find, and what the page holds in memory.
import { atMost, single, thousands, type ReportRow } from '../../bench/report.ts';
import { figureRow, FRAME_MS, megabytes, p50p95, taskRow, timesRow } from '../../bench/portal_rows.ts';
import { GRID, type Measuring, openFirstSmall } from './opens.ts';
import { act, heapOf, inProfile, load, longestTask, repeated, until } from './session.ts';
import type { Motion } from './probe.ts';

const SPAN_PANEL = '[aria-label="Span"]';
const FIND = 'input[aria-label^="Find names"]';
const FRAMES = 120;
const MOTIONS: readonly Motion[] = ['scroll', 'zoom', 'pan'];
const FIND_WORDS = ['step 4207', 'plan', 'work', 'step 99'];
const GROWTH_TRACES = 50;
const WARM_TRACES = 5;
const SKELETON = `${GRID} [role="row"][aria-selected="true"]`;

/** Selects spans that were not read before: when the mark moves, and when the text is there. */
export async function selectSpan({ session, data, runs }: Measuring): Promise<ReportRow[]> {
  const { trace_id, textOf, spans } = data.texts;
  const frames: number[] = [];
  const texts: number[] = [];
  while (texts.length < runs)
    await inProfile(session, async (context) => {
      const { page } = await load(context, session.at(`/traces/${trace_id}`), { text: [SPAN_PANEL, textOf(0)] });
      for (let place = 1; place < spans && texts.length < runs; place += 1) {
        const before = await page.locator(GRID).getAttribute('aria-activedescendant');
        // Both are watched in one action: the text comes after the mark.
        const [mark, text] = await page.evaluate(
          async ([grid, id, panel, words]) => {
            const shown = window.portalProbe.act({ key: 'j' }, { changed: [grid, 'aria-activedescendant', id] });
            const read = window.portalProbe.until({ text: [panel, words] });
            return Promise.all([shown, read]);
          },
          [GRID, before, SPAN_PANEL, textOf(place)] as const,
        );
        if (place === 1) continue;
        frames.push(mark.frames);
        texts.push(text.at - (mark.at - mark.ms));
      }
    });
  return [
    figureRow('span selected: frames until the mark moves, worst', {
      value: Math.max(...frames),
      unit: 'count',
      words: String(Math.max(...frames)),
      most: 1,
      bar: '≤ 1',
      note: `n=${frames.length}`,
    }),
    timesRow('span selected: its text of 50 KB there', texts, { p50: 60 }),
  ];
}

/** Opens a prompt of more than 4 MB. */
export async function largePrompt({ session, data, runs }: Measuring): Promise<ReportRow[]> {
  const { trace_id, begins } = data.prompt;
  const results = await repeated(session, runs, async (context) => {
    const { page } = await load(context, session.at(`/traces/${trace_id}`), { present: [SKELETON] });
    const seen = await act(page, { key: 'j' }, { text: [SPAN_PANEL, begins] });
    return { ms: seen.ms, task: await longestTask(page, seen.at - seen.ms) };
  });
  return [
    timesRow(
      'prompt of 4.4 MB: first screen',
      results.map(({ ms }) => ms),
      { p50: 150 },
    ),
    taskRow(
      'prompt of 4.4 MB: longest task',
      results.map(({ task }) => task),
      100,
    ),
  ];
}

/** Scrolls, zooms and pans once a frame. */
export async function motions({ session, data, runs }: Measuring, size: number): Promise<ReportRow[]> {
  const path = session.at(`/traces/${data.large.get(size) ?? ''}`);
  const rounds = Math.max(1, Math.ceil(runs / 10));
  return inProfile(session, async (context) => {
    const { page } = await load(context, path, { present: [SKELETON] });
    const rows: ReportRow[] = [];
    const tasks: number[] = [];
    for (const motion of MOTIONS) {
      const lengths: number[] = [];
      for (let round = -1; round < rounds; round += 1) {
        const since = await page.evaluate((grid) => {
          const scroller = document.querySelector(grid);
          if (scroller !== null) scroller.scrollTop = 0;
          return performance.now();
        }, GRID);
        const frames = await page.evaluate(([grid, how, count]) => window.portalProbe.move(grid, how, count), [
          GRID,
          motion,
          FRAMES,
        ] as const);
        if (round < 0) continue;
        lengths.push(...frames);
        tasks.push(await longestTask(page, since));
      }
      rows.push(framesRow(`${motion} over ${thousands(size)} spans: a frame`, lengths));
    }
    return [...rows, taskRow(`scroll, zoom, pan over ${thousands(size)} spans: longest task`, tasks, 50)];
  });
}

function framesRow(what: string, lengths: readonly number[]): ReportRow {
  // The clock of a page has a precision of a tenth of a millisecond.
  const rounded = lengths.map((length) => Math.round(length * 10) / 10);
  return { ...timesRow(what, rounded), bar: `p95 ≤ ${FRAME_MS} ms`, measures: p50p95(rounded, { p95: FRAME_MS }) };
}

/** Types into the find field of a trace. */
export async function find({ session, data, runs }: Measuring, size: number): Promise<ReportRow[]> {
  const path = session.at(`/traces/${data.large.get(size) ?? ''}`);
  const work: number[] = [];
  const shown: number[] = [];
  for (let run = 0; work.length < runs; run += 1)
    await inProfile(session, async (context) => {
      const { page } = await load(context, path, { present: [SKELETON, FIND] });
      for (const letter of FIND_WORDS[run % FIND_WORDS.length] ?? '') {
        const seen = await act(page, { type: letter, into: FIND }, { present: [FIND] });
        work.push(seen.work_ms);
        shown.push(seen.ms);
      }
    });
  return [
    timesRow(`find in ${thousands(size)} names: a keystroke`, work, { p50: 16, p95: 16 }, 'time of the main thread'),
    timesRow(`find in ${thousands(size)} names: keystroke to paint`, shown),
  ];
}

/** The heap after a large trace. */
export async function heapAfter({ session, data }: Measuring, size: number): Promise<ReportRow[]> {
  const path = session.at(`/traces/${data.large.get(size) ?? ''}`);
  return inProfile(session, async (context) => {
    const { page } = await load(context, path, { present: [SKELETON] });
    const bytes = await heapOf(page);
    const bar = size <= 10_000 ? { most: 60e6, bar: '≤ 60 MB' } : {};
    return [
      figureRow(`heap with a trace of ${thousands(size)} spans`, {
        value: bytes,
        unit: 'bytes',
        words: megabytes(bytes),
        ...bar,
      }),
    ];
  });
}

/** How much the heap grows over 50 traces of 20 spans. */
export async function heapGrowth(measuring: Measuring): Promise<ReportRow[]> {
  return inProfile(measuring.session, async (context) => {
    const page = await openFirstSmall(context, measuring);
    const walk = async (traces: number): Promise<number> => {
      for (let step = 0; step < traces; step += 1)
        await act(page, { key: 'J' }, { titleNot: await page.title(), absent: ['[data-stale="true"]'] });
      await until(page, { present: [SKELETON] });
      return heapOf(page);
    };
    const before = await walk(WARM_TRACES);
    const growth = (await walk(GROWTH_TRACES)) - before;
    return [
      {
        what: `heap growth over ${GROWTH_TRACES} traces`,
        value: megabytes(growth),
        bar: '≤ 5 MB',
        measures: single(growth, 'bytes', atMost(5e6)),
      },
    ];
  });
}
