// The traces that the benchmark opens, sent through ingest and awaited until the reads of the portal
// show them. Tags and ids contain a number of the run, so that two runs on one service do not mix.
import { randomInt } from 'node:crypto';
import { z } from 'zod';
import type { Target } from '../../bench/target.ts';
import { seededRandom, type Vocabulary } from '../../bench/vocabulary.ts';
import { eventually } from '../../support/wait.ts';

const BATCH = 500;
const SENT_AT_ONCE = 2;
const STORED_MS_MAX = 180_000;
const BRANCHES = 8;
const SMALL_TRACES = 60;
const SMALL_SPANS = 20;
export const FILTER_AGENTS = 6;
const TEXT_SPANS = 40;
const TEXT_CHARS = 50_000;
/** Just below the largest body of a request. */
const PROMPT_CHARS = 4_400_000;
const SEARCHED_SPANS = 80;
const SEARCHED_WORDS = 80;
/** Rarer words than these are in few texts each. */
const COMMON_WORD_CHARS = 4;

const totalShape = z.looseObject({ meta: z.looseObject({ total: z.number() }) });

interface Event extends Record<string, unknown> {
  name: string;
  trace_id: string;
  span_id: string;
}

export interface PortalData {
  run: string;
  /** Id of the trace of each size. */
  large: ReadonlyMap<number, string>;
  /** Tag of each size, for a list that holds this trace alone. */
  tagOf: (size: number) => string;
  /** Tag of the traces of 20 spans, and how many each agent has. */
  small: { tag: string; traces: number; agents: readonly string[]; tracesOfAgent: number };
  /** Trace of spans with a text of 50 KB each; every text begins with `textOf` of its place. */
  texts: { trace_id: string; spans: number; textOf: (place: number) => string };
  prompt: { trace_id: string; begins: string };
  /** Two words of a stored text. */
  words: (run: number) => string;
}

/** Calls the API as a program. @throws Error with the answer when it is no success */
export async function call({ url, org, key }: Target, path: string, body?: unknown): Promise<unknown> {
  const answer = await fetch(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'x-org-id': org,
      'x-org-api-key': key,
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${(await answer.text()).slice(0, 200)}`);
  return answer.json();
}

/** Sends events in batches. */
export async function send(target: Target, events: readonly Event[]): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < events.length) {
      const from = next;
      next += BATCH;
      await call(target, `/orgs/${target.org}/ingest/custom`, { events: events.slice(from, from + BATCH) });
    }
  };
  await Promise.all(Array.from({ length: SENT_AT_ONCE }, lane));
}

/** Resolves when a read counts this many. */
const counts = (target: Target, path: string, total: number): Promise<void> =>
  eventually(async () => totalShape.parse(await call(target, path)).meta.total === total, {
    withinMs: STORED_MS_MAX,
    what: `${total} of ${path}`,
  });

export const at = (ms: number): string => new Date(ms).toISOString();

/** Returns the events of a trace in which one span in the middle fails. */
export function traceEvents(traceId: string, size: number, how: { tag: string; agent: string; name: string }): Event[] {
  const began = Date.now() - 120_000 - size;
  const failing = size - Math.ceil(size / 3);
  return Array.from({ length: size }, (_, place) => ({
    // Names differ from span to span: alike ones in a row are folded into one row.
    name: place === 0 ? how.name : `step ${place} of ${place % 7 === 0 ? 'plan' : 'work'}`,
    trace_id: traceId,
    span_id: `${traceId}-${place}`,
    ...(place === 0 ? {} : { parent_span_id: `${traceId}-${Math.floor((place - 1) / BRANCHES)}` }),
    started_at: at(began + place),
    duration_ms: place === 0 ? size + 100 : 1 + (place % 50),
    outcome: place === 0 || place === failing ? 'error' : 'success',
    tags: [how.tag],
    attributes: {
      agent_id: how.agent,
      span_kind: place % 7 === 0 ? 'llm' : 'tool',
      ...(place % 7 === 0 ? { model: 'gpt-4o', input_tokens: 40, output_tokens: 60 } : {}),
      ...(place === failing ? { error: 'the tool refused the order' } : {}),
    },
  }));
}

async function sendSmall(target: Target, run: string): Promise<PortalData['small']> {
  const tag = `portal_${run}_small`;
  const agents = Array.from({ length: FILTER_AGENTS }, (_, index) => `portal_${run}_${index}`);
  const events = Array.from({ length: SMALL_TRACES }, (_, index) =>
    traceEvents(`portal-${run}-small-${index}`, SMALL_SPANS, {
      tag,
      agent: agents[index % FILTER_AGENTS] ?? '',
      name: `small run ${index}`,
    }),
  );
  await send(target, events.flat());
  await counts(target, `/v1/traces?limit=1&tags=${tag}`, SMALL_TRACES);
  return { tag, traces: SMALL_TRACES, agents, tracesOfAgent: SMALL_TRACES / FILTER_AGENTS };
}

async function sendTexts(target: Target, run: string): Promise<PortalData['texts']> {
  const trace_id = `portal-${run}-texts`;
  const textOf = (place: number): string => `The text of place ${place} begins here.`;
  const began = Date.now() - 60_000;
  for (let place = 0; place < TEXT_SPANS; place += 1)
    await send(target, [
      {
        name: `text ${place}`,
        trace_id,
        span_id: `${trace_id}-${place}`,
        ...(place === 0 ? {} : { parent_span_id: `${trace_id}-0` }),
        started_at: at(began + place),
        duration_ms: 40,
        outcome: 'success',
        attributes: { span_kind: 'tool', input: `${textOf(place)} ${'A line of words. '.repeat(TEXT_CHARS / 17)}` },
      },
    ]);
  await counts(target, `/v1/traces/${trace_id}/outline`, TEXT_SPANS);
  return { trace_id, spans: TEXT_SPANS, textOf };
}

async function sendPrompt(target: Target, run: string): Promise<PortalData['prompt']> {
  const trace_id = `portal-${run}-prompt`;
  const begins = 'The prompt begins here.';
  const common = { trace_id, outcome: 'success', duration_ms: 10 };
  const input = `${begins} ${'All work and no play. '.repeat(PROMPT_CHARS / 22)}`;
  await send(target, [{ ...common, name: 'root', span_id: `${trace_id}-0` }]);
  await send(target, [
    {
      ...common,
      name: 'prompt',
      span_id: `${trace_id}-1`,
      parent_span_id: `${trace_id}-0`,
      attributes: { span_kind: 'tool', input },
    },
  ]);
  await counts(target, `/v1/traces/${trace_id}/outline`, 2);
  return { trace_id, begins };
}

async function sendSearched(target: Target, run: string, vocabulary: Vocabulary): Promise<PortalData['words']> {
  const random = seededRandom(29);
  const texts = Array.from({ length: SEARCHED_SPANS }, () => vocabulary.text(SEARCHED_WORDS, random));
  await send(
    target,
    texts.map((prompt, index) => ({
      name: 'gpt-4o',
      trace_id: `portal-${run}-searched-${index}`,
      span_id: `portal-${run}-searched-${index}`,
      outcome: 'success',
      duration_ms: 300,
      attributes: { span_kind: 'llm', model: 'gpt-4o', prompt, response: vocabulary.text(SEARCHED_WORDS, random) },
    })),
  );
  const words = (at: number): string => {
    const long = [...new Set((texts[at % SEARCHED_SPANS] ?? '').split(' '))].filter(
      (word) => word.length > COMMON_WORD_CHARS,
    );
    return long.slice(0, 2).join(' ');
  };
  const last = encodeURIComponent(words(SEARCHED_SPANS - 1));
  await eventually(
    async () =>
      z.looseObject({ data: z.array(z.unknown()) }).parse(await call(target, `/v1/spans/search?limit=1&q=${last}`)).data
        .length > 0,
    { withinMs: STORED_MS_MAX, what: 'searchable texts' },
  );
  return words;
}

/** Sends all traces and resolves when they can be read. */
export async function sendData(
  target: Target,
  sizes: readonly number[],
  vocabulary: Vocabulary,
  progress: (line: string) => void,
): Promise<PortalData> {
  const run = randomInt(2 ** 32).toString(36);
  const tagOf = (size: number): string => `portal_${run}_${size}`;
  const large = new Map<number, string>();
  for (const size of sizes) {
    progress(`portal: sending a trace of ${size} spans`);
    const traceId = `portal-${run}-${size}`;
    await send(target, traceEvents(traceId, size, { tag: tagOf(size), agent: 'portal_bench', name: `run of ${size}` }));
    await counts(target, `/v1/traces/${traceId}/outline`, size);
    await counts(target, `/v1/traces?limit=1&tags=${tagOf(size)}`, 1);
    large.set(size, traceId);
  }
  progress('portal: sending small traces and texts');
  const small = await sendSmall(target, run);
  const texts = await sendTexts(target, run);
  const prompt = await sendPrompt(target, run);
  const words = await sendSearched(target, run, vocabulary);
  return { run, large, tagOf, small, texts, prompt, words };
}
