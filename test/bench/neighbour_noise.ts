// The noises of a neighbour: each kind as data, with bodies built once.
import { eventHex } from '../../pipeline/domain/traces/ids.ts';
import type { IngestEvent } from '../../schemas/codec.ts';
import { BATCH_EVENTS, batchBody, Body, MARK, singleBody } from './bodies.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

export const NOISES = [
  'share',
  'batches',
  'singles',
  'huge',
  'traces',
  'names',
  'spread',
  'refused',
  'undecodable',
  'unlandable',
] as const;
export type NoiseName = (typeof NOISES)[number];

/** Events a second of each quiet organization, which is each organization's share. */
export const SHARE = 25;
export const TIMES_SHARE = 20;

export const DESCRIPTIONS: Record<NoiseName, string> = {
  share: `${TIMES_SHARE} times its share: ${TIMES_SHARE * SHARE} single events/s`,
  batches: 'batches of 200 on 16 connections, as fast as acknowledged',
  singles: 'single events on 64 connections, as fast as acknowledged',
  huge: 'single events of 4.8 MiB on 4 connections',
  traces: 'four traces that grow by 1,000 spans a request, 4 connections',
  names: 'every event with an agent, model, user, session and tag of its own',
  spread: 'batches of 200 events that began over 20 years',
  refused: 'broken JSON, deep JSON, broken texts and batches with a bad last event, 64 connections',
  undecodable: 'events in the log that no decoder takes, 1,000/s',
  unlandable: 'events in the log whose rows the store refuses, 50/s',
};

export interface Noise {
  format: string;
  bodies: readonly Body[];
  bodyEvents: number;
  lanes: number;
  /** Events a second; Infinity: as fast as they are answered. */
  rate: number;
  /**
   * Set for events that no API admits: they are written to the log itself, one message at a time;
   * the number makes their ids.
   */
  events?: (org: string, number: number) => IngestEvent[];
}

const BODIES = 64;
const HUGE_BYTES = 4.8 * 1024 * 1024;
const TRACE_SPANS = 1000;
const TRACES = 4;
const BAD_BYTES = 256 * 1024;
const DEEP_LEVELS = 100_000;
const SPREAD_DAYS = 7300;
const DAY_MS = 86_400_000;
const UNDECODABLE_EVENTS = 100;
const UNLANDABLE_EVENTS = 5;
/** Beyond what any time column can represent. */
const NEVER_MS = 8_000_000_000_000_000;

type Make = (vocabulary: Vocabulary) => Noise;

const many = (make: (index: number) => Body, count = BODIES): Body[] =>
  Array.from({ length: count }, (_, index) => make(index));
const custom = (bodies: readonly Body[], bodyEvents: number, lanes: number): Noise => ({
  format: 'custom',
  bodies,
  bodyEvents,
  lanes,
  rate: Infinity,
});

/** Returns one of a body's events; the mark makes it another event each time. */
const event = (
  index: number,
  fields: Record<string, unknown>,
  attributes: Record<string, unknown> = {},
): Record<string, unknown> => ({
  name: 'neighbour',
  outcome: 'success',
  duration_ms: 1,
  trace_id: `trc_${MARK}_${Math.floor(index / 20)}`,
  ...fields,
  attributes: { nonce: `${MARK}.${index}`, ...attributes },
});
const batch = (count: number, make: (index: number) => unknown): Body =>
  new Body(JSON.stringify({ events: Array.from({ length: count }, (_, index) => make(index)) }));

/** Bodies that the edge has to read before it can reject them. */
const BAD_BODIES: readonly (() => Body)[] = [
  () => new Body(`{"events": [${'{"name":"x"},'.repeat(BAD_BYTES / 13)}`),
  () =>
    new Body(
      `{"name":"deep","outcome":"success","duration_ms":1,"attributes":{"a":${'['.repeat(DEEP_LEVELS)}${']'.repeat(DEEP_LEVELS)}}}`,
    ),
  () =>
    new Body(
      `{"name":"text","outcome":"success","duration_ms":1,"attributes":{"input":"${'\u00e9\u00ff'.repeat(BAD_BYTES / 2)}"}}`,
    ),
  () => batch(BATCH_EVENTS * 5, (index) => (index === BATCH_EVENTS * 5 - 1 ? { name: 7 } : event(index, {}))),
];

function logged(org: string, number: number, count: number, fields: Partial<IngestEvent>): IngestEvent[] {
  return Array.from({ length: count }, (_, index) => {
    const body = JSON.stringify(event(index, {}, { input: 'poison', number, index })).replaceAll(
      MARK,
      number.toString(16).padStart(10, '0'),
    );
    const trace_id = `trc_poison_${number}`;
    return {
      org_id: org,
      format: 'custom',
      event_hex: eventHex(body),
      trace_id,
      received_at: Date.now(),
      body,
      ...fields,
    };
  });
}

const MAKE: Record<NoiseName, Make> = {
  share: (vocabulary) => ({ ...MAKE.singles(vocabulary), lanes: 16, rate: TIMES_SHARE * SHARE }),
  batches: (vocabulary) => {
    const random = seededRandom(31);
    return custom(
      many(() => batchBody('texts', vocabulary, random)),
      BATCH_EVENTS,
      16,
    );
  },
  singles: (vocabulary) => {
    const random = seededRandom(32);
    return {
      ...custom(
        many(() => singleBody(vocabulary, random), 1024),
        1,
        64,
      ),
      format: 'chatcompletion',
    };
  },
  huge: (vocabulary) => {
    const text = vocabulary.text(20_000, seededRandom(33));
    const input = text.repeat(Math.ceil(HUGE_BYTES / text.length)).slice(0, HUGE_BYTES);
    return custom(
      many((index) => new Body(JSON.stringify(event(index, {}, { input }))), 4),
      1,
      4,
    );
  },
  traces: () =>
    custom(
      many((body) => batch(TRACE_SPANS, (index) => event(index, { trace_id: `trc_grows_${body % TRACES}` })), TRACES),
      TRACE_SPANS,
      4,
    ),
  names: () => {
    const own = (index: number): string => `${MARK}${index}`;
    const named = (index: number): unknown =>
      event(
        index,
        { tags: [`tag_${own(index)}`] },
        {
          span_kind: 'llm',
          model: `model_${own(index)}`,
          agent_id: `agent_${own(index)}`,
          user_id: `user_${own(index)}`,
          session_id: `session_${own(index)}`,
          department: `department_${own(index)}`,
        },
      );
    return custom(
      many(() => batch(BATCH_EVENTS, named), 16),
      BATCH_EVENTS,
      8,
    );
  },
  spread: (vocabulary) => {
    const random = seededRandom(34);
    const began = (): string => new Date(Date.now() - (random() % SPREAD_DAYS) * DAY_MS).toISOString();
    const dated = (index: number): unknown =>
      event(index, { started_at: began() }, { input: vocabulary.text(60, random) });
    return custom(
      many(() => batch(BATCH_EVENTS, dated), 16),
      BATCH_EVENTS,
      8,
    );
  },
  refused: () =>
    custom(
      many((index) => (BAD_BODIES[index % BAD_BODIES.length] ?? BAD_BODIES[0])?.() ?? new Body(''), 64),
      0,
      64,
    ),
  undecodable: () => ({
    ...custom([], 0, 0),
    events: (org, number) => logged(org, number, UNDECODABLE_EVENTS, { body: '{' }),
  }),
  unlandable: () => ({
    ...custom([], 0, 0),
    events: (org, number) => logged(org, number, UNLANDABLE_EVENTS, { received_at: NEVER_MS }),
  }),
};

export const noiseOf = (name: NoiseName, vocabulary: Vocabulary): Noise => MAKE[name](vocabulary);
