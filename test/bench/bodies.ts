// Request bodies that are built once and sent many times: only the ids inside are overwritten, so
// each sent event is a new one. An event is about 1.5 KB: some 190 words of prompt and response,
// and the fields that an agent's SDK sends with them.
import type { Random, Vocabulary } from './vocabulary.ts';

export const BATCH_EVENTS = 200;
export const SPANS_PER_TRACE = 12;
const PROMPT_WORDS = 76;
const RESPONSE_WORDS = 114;
const MODELS = ['gpt-4o', 'gpt-4o-mini', 'gpt-4.1', 'gpt-4.1-mini', 'o4-mini'];
const AGENTS = 30;

/**
 * texts: model calls with prompt and response, searchable. plain: the same bytes as an attribute
 * that is not searched.
 */
export type Shape = 'texts' | 'plain';

/** Hex digits of a body's number, and the mark that it replaces. */
const NUMBER_DIGITS = 10;
export const MARK = '@'.repeat(NUMBER_DIGITS);

/**
 * A body with placeholders for its number. The ids of its traces and spans contain the number, so
 * it must not repeat.
 */
export class Body {
  readonly bytes: Buffer;
  readonly #holes: number[] = [];

  /** @param json text in which every MARK stands for the number */
  constructor(json: string) {
    this.bytes = Buffer.from(json, 'latin1');
    for (let at = this.bytes.indexOf(MARK); at >= 0; at = this.bytes.indexOf(MARK, at + NUMBER_DIGITS))
      this.#holes.push(at);
  }

  /** Writes a number into every placeholder. The buffer must not be in flight. */
  stamp(value: number): void {
    const text = value.toString(16).padStart(NUMBER_DIGITS, '0');
    for (const hole of this.#holes) this.bytes.write(text, hole, NUMBER_DIGITS, 'latin1');
  }
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
/** 16 hex digits: the body's number, then an index within the body. */
const id = (prefix: string, place: number): string => `${prefix}_${MARK}${hex(place, 16 - NUMBER_DIGITS)}`;

interface Ids {
  trace_id: string;
  span_id: string;
  parent_span_id?: string;
}

/**
 * Returns the ids of event `index` of a batch: traces of 12 spans, the last one of 8, each with a
 * root.
 */
function idsOf(index: number): Ids {
  const trace = Math.floor(index / SPANS_PER_TRACE);
  const ids = { trace_id: id('trc', trace), span_id: id('spn', index) };
  return index % SPANS_PER_TRACE === 0 ? ids : { ...ids, parent_span_id: id('spn', trace * SPANS_PER_TRACE) };
}

function common(random: Random): Record<string, unknown> {
  const agent = random() % AGENTS;
  return {
    agent_id: `agent_${agent}`,
    session_id: `session_${random() % 5000}`,
    user_id: `user_${random() % 3000}`,
    department: `department_${agent % 6}`,
  };
}

function customEvent(index: number, shape: Shape, vocabulary: Vocabulary, random: Random): Record<string, unknown> {
  const model = MODELS[random() % MODELS.length];
  const prompt = vocabulary.text(PROMPT_WORDS, random);
  const response = vocabulary.text(RESPONSE_WORDS, random);
  const texts =
    shape === 'texts'
      ? {
          span_kind: 'llm',
          model,
          input_tokens: 90 + (random() % 40),
          output_tokens: 130 + (random() % 60),
          prompt,
          response,
        }
      : { span_kind: 'event', detail: `${prompt} ${response}` };
  return {
    name: model,
    outcome: random() % 50 === 0 ? 'error' : 'success',
    duration_ms: 200 + (random() % 4000),
    ...idsOf(index),
    tags: ['bench', `tag_${random() % 40}`],
    attributes: { ...common(random), ...texts },
  };
}

/** Returns a batch of 200 events for the custom endpoint. */
export function batchBody(shape: Shape, vocabulary: Vocabulary, random: Random): Body {
  const events = Array.from({ length: BATCH_EVENTS }, (_, index) => customEvent(index, shape, vocabulary, random));
  return new Body(JSON.stringify({ events }));
}

/** Returns one model call for the chatcompletion endpoint; each is a trace of its own. */
export function singleBody(vocabulary: Vocabulary, random: Random): Body {
  const model = MODELS[random() % MODELS.length];
  const usage = { prompt_tokens: 90 + (random() % 40), completion_tokens: 130 + (random() % 60) };
  return new Body(
    JSON.stringify({
      request: {
        model,
        messages: [
          { role: 'system', content: 'You are a helpful agent.' },
          { role: 'user', content: vocabulary.text(PROMPT_WORDS, random) },
        ],
        temperature: 0.2,
        max_tokens: 1024,
      },
      response: {
        id: 'chatcmpl-bench',
        model,
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: vocabulary.text(RESPONSE_WORDS, random) },
            finish_reason: 'stop',
          },
        ],
        usage: { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens },
      },
      duration_ms: 200 + (random() % 4000),
      outcome: 'success',
      trace_id: id('trc', 0),
      span_id: id('spn', 0),
      tags: ['bench'],
      attributes: common(random),
    }),
  );
}
