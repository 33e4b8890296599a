// Personal data: how much of it is found on the labelled cases, the cost of redacting an event
// alone, and the cost to the whole pipeline: the same load with the policy off and on, in
// alternation on one service.
import { createPriceBook } from '../../pipeline/domain/pricing/pricing.ts';
import { spansOf } from '../../pipeline/domain/decode/decode.ts';
import { PiiRedactor } from '../../pipeline/domain/pii/pii.ts';
import { spanCells, textCells } from '../../pipeline/landing/row_encoders.ts';
import { PII_KINDS, type CustomPattern } from '../../schemas/records/pii_policy.ts';
import { piiCases, scorePii } from '../support/pii_cases.ts';
import { BATCH_EVENTS, batchBody, Body } from './bodies.ts';
import { runLoad, type RunResult } from './ingest.ts';
import { percentile, thousands, type ReportRow, type Section, atMost, type Measure, type Unit } from './report.ts';
import type { RunSql } from './store.ts';
import type { Target } from './target.ts';
import { type Random, seededRandom, type Vocabulary } from './vocabulary.ts';

const CUSTOM: readonly CustomPattern[] = [
  { label: 'EMPLOYEE', pattern: 'EMP-\\d{6}' },
  { label: 'IBAN', pattern: '\\b[A-Z]{2}\\d{2}[A-Z0-9]{11,30}\\b' },
];
/** Numbers as texts contain them: none is personal, but each has to be checked. */
const NUMBERS = 'On 2026-11-21 at 09:50 order 4711-2026 took 1234 ms and cost 12.50 EUR, version 2.14.1 of 3.';
const PERSONAL =
  'Ann Lee, ann.lee@example.com, +1 415 555 2671, paid with 4111 1111 1111 1111 from 203.0.113.7; EMP-123456.';
const PERSONAL_ONE_IN = 10;
const PURE_BODIES = 10;
const PURE_TURNS = 30;
const PURE_WARM_TURNS = 8;
const LOAD_BODIES = 64;
const LOAD_LANES = 8;
/** Off and on alternate, so that both see the same machine. */
const LOAD_TURNS = ['off', 'on', 'on', 'off', 'off', 'on', 'on', 'off'] as const;
/** A policy takes effect within a second. */
const SETTLE_MS = 1500;
const COST_MAX = 0.2;
const COST_BAR = `≤ ${COST_MAX * 100} %`;

export interface PiiBenchOptions {
  target: Target;
  runSql: RunSql;
  vocabulary: Vocabulary;
  seconds: number;
  progress: (line: string) => void;
}

const offOn = ({ off, on }: { off: number; on: number }, unit: Unit): Measure[] => [
  { name: 'off', value: off, unit },
  { name: 'on', value: on, unit },
];
const percent = (part: number): string => `${(part * 100).toFixed(1)} %`;

/**
 * Returns batches like those of the ingest benchmark, with numbers in every text and persons in one
 * of ten.
 */
function bodyOf(vocabulary: Vocabulary, random: Random): Body {
  const { events } = JSON.parse(batchBody('texts', vocabulary, random).bytes.toString('latin1')) as {
    events: { attributes: Record<string, unknown> }[];
  };
  for (const [index, { attributes }] of events.entries()) {
    attributes['prompt'] = `${String(attributes['prompt'])} ${NUMBERS}`;
    if (index % PERSONAL_ONE_IN === 0) attributes['response'] = `${String(attributes['response'])} ${PERSONAL}`;
  }
  return new Body(JSON.stringify({ events }));
}

function foundRows(): ReportRow[] {
  return (['tuned', 'unseen'] as const).flatMap((set) => {
    const cases = piiCases(set);
    return scorePii(cases).map(({ kind, found, missed, wrong, precision, recall }) => ({
      what: `${set === 'tuned' ? 'labelled cases' : 'cases not tuned for'} (${cases.length}): ${kind}`,
      value: `precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)}`,
      note: `${found} right, ${missed} missed, ${wrong} wrong`,
    }));
  });
}

/**
 * Returns the CPU time of an event in a process that does nothing else, microseconds: medians of
 * alternating turns.
 */
function pureCost(vocabulary: Vocabulary, withRows: boolean): { off: number; on: number } {
  const random = seededRandom(31);
  const events = Array.from({ length: PURE_BODIES }, (_, body) => {
    const made = bodyOf(vocabulary, random);
    made.stamp(body);
    return (JSON.parse(made.bytes.toString('latin1')) as { events: { trace_id: string }[] }).events;
  }).flatMap((list) =>
    list.map((event, index) => ({
      org_id: 'org_bench',
      format: 'custom' as const,
      event_hex: index.toString(16).padStart(16, '0'),
      trace_id: event.trace_id,
      received_at: Date.now(),
      body: JSON.stringify(event),
    })),
  );
  const redactor = new PiiRedactor({ kinds: PII_KINDS, custom: CUSTOM, hash_key: null });
  const prices = createPriceBook(() => []);
  const place = { partition: 0, log_seq: 1, log_index: 0 };
  const turn = (used: PiiRedactor | null): number => {
    const before = process.cpuUsage();
    for (const event of events) {
      const spans = spansOf(
        { prices, maxPromptTokens: () => null, redactorOf: () => used },
        event,
        JSON.parse(event.body),
      );
      if (typeof spans === 'string') throw new Error(spans);
      if (!withRows) continue;
      for (const span of spans) {
        spanCells(span, place, 0, true);
        textCells(span, place, 0, 30);
      }
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / events.length;
  };
  const turns = Array.from({ length: PURE_TURNS }, () => [turn(null), turn(redactor)] as const).slice(PURE_WARM_TURNS);
  return {
    off: percentile(
      turns.map(([off]) => off),
      0.5,
    ),
    on: percentile(
      turns.map(([, on]) => on),
      0.5,
    ),
  };
}

async function setPolicy({ url, org, key }: Target, enabled: boolean): Promise<void> {
  const response = await fetch(`${url}/orgs/${org}/pii-policy`, {
    method: 'PUT',
    headers: { 'X-Org-Api-Key': key, 'X-Org-Id': org, 'Content-Type': 'application/json' },
    body: JSON.stringify({ enabled, kinds: PII_KINDS, custom: CUSTOM, mode: 'redact' }),
  });
  if (response.status !== 200) throw new Error(`PUT pii-policy: ${response.status} ${await response.text()}`);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}

/** Sums all turns of a kind. */
function summed(runs: readonly RunResult[]): { per_s: number; cpu_us: number } {
  const sum = (of: (run: RunResult) => number): number => runs.reduce((total, run) => total + of(run), 0);
  const events = sum((run) => run.acknowledged);
  const pipeline = sum((run) =>
    Object.entries(run.cpu_s).reduce((cpu, [part, used]) => cpu + (part === 'worker' ? used : 0), 0),
  );
  return { per_s: events / sum((run) => run.acknowledged / run.to_queryable_per_s), cpu_us: (pipeline / events) * 1e6 };
}

export async function benchPii({ target, runSql, vocabulary, seconds, progress }: PiiBenchOptions): Promise<Section> {
  progress('pii: labelled cases, then an event on its own');
  const decode = pureCost(vocabulary, false);
  const rows = pureCost(vocabulary, true);
  const random = seededRandom(32);
  const bodies = Array.from({ length: LOAD_BODIES }, () => bodyOf(vocabulary, random));
  const turns: Record<'off' | 'on', RunResult[]> = { off: [], on: [] };
  for (const kind of LOAD_TURNS) {
    await setPolicy(target, kind === 'on');
    progress(`pii: ingest with the policy ${kind}`);
    const each = Math.max(2, Math.round(seconds / LOAD_TURNS.length));
    const load = { bodies, bodyEvents: BATCH_EVENTS, lanes: LOAD_LANES, rate: Infinity, seconds: each };
    turns[kind].push(await runLoad({ target, runSql, format: 'custom', ...load, progress }));
  }
  const [off, on] = [summed(turns.off), summed(turns.on)];
  const us = (value: number): string => `${value.toFixed(1)} µs`;
  return {
    title: 'Personal data: all kinds and two own patterns; numbers in every text, persons in one of ten',
    rows: [
      ...foundRows(),
      {
        what: 'decode alone, CPU an event',
        value: `${us(decode.off)} off, ${us(decode.on)} on`,
        note: `+${us(decode.on - decode.off)}`,
        measures: offOn(decode, 'us'),
      },
      {
        what: 'decode and rows, CPU an event',
        value: `${us(rows.off)} off, ${us(rows.on)} on`,
        note: `+${us(rows.on - rows.off)}, ${percent(rows.on / rows.off - 1)}`,
        measures: offOn(rows, 'us'),
      },
      {
        what: 'pipeline process under load, CPU an event',
        value: `${us(off.cpu_us)} off, ${us(on.cpu_us)} on: ${percent(on.cpu_us / off.cpu_us - 1)}`,
        bar: COST_BAR,
        note: `${LOAD_TURNS.length} turns`,
        measures: [
          ...offOn({ off: off.cpu_us, on: on.cpu_us }, 'us'),
          { name: 'more', value: on.cpu_us / off.cpu_us - 1, unit: 'share', bar: atMost(COST_MAX) },
        ],
      },
      {
        what: 'events a second, until queryable',
        value: `${thousands(off.per_s)}/s off, ${thousands(on.per_s)}/s on: ${percent(1 - on.per_s / off.per_s)} less`,
        bar: COST_BAR,
        measures: [
          ...offOn({ off: off.per_s, on: on.per_s }, 'per_s'),
          { name: 'less', value: 1 - on.per_s / off.per_s, unit: 'share', bar: atMost(COST_MAX) },
        ],
      },
    ],
    data: { decode, rows, off, on },
  };
}
