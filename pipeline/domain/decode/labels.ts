// Reads from a span's attributes the labels and times that analytics groups and measures by:
// deployment, prompt version, provider, time to first token. In: attributes as sent, and for OTLP
// those of the resource. Out: values that fit their columns; empty or 0 where nothing is known.
import { isFields, type Draft, type Fields } from './draft.ts';
import { vendorOf } from './otlp_kind.ts';

/** Longer labels stay in the attributes and associate nothing. */
const LABEL_LENGTH_MAX = 512;
/** Longest time to a first token that is believed, milliseconds (one day). */
const FIRST_TOKEN_MS_MAX = 86_400_000;

const ENVIRONMENTS = ['environment', 'deployment.environment.name', 'deployment.environment', 'langfuse.environment'];
const SERVICES = ['service', 'service.name'];
const RELEASES = ['release', 'service.version', 'langfuse.release'];
const PROMPT_NAMES = ['prompt_name', 'gen_ai.prompt.name', 'langfuse.observation.prompt.name', 'traceloop.prompt.key'];
const PROMPT_VERSIONS = [
  'prompt_version',
  'gen_ai.prompt.version',
  'langfuse.observation.prompt.version',
  'traceloop.prompt.version',
  'llm.prompt_template.version',
];
const FIRST_TOKEN_MS = ['time_to_first_token_ms', 'ai.response.msToFirstChunk', 'ttft_ms'];
/** Attributes of the OpenTelemetry conventions: seconds. */
const FIRST_TOKEN_SECONDS = ['gen_ai.response.time_to_first_chunk', 'gen_ai.server.time_to_first_token'];
/** Attributes that hold the instant at which the first token arrived. */
const FIRST_TOKEN_TIMES = [
  'completion_start_time',
  'langfuse.observation.completion_start_time',
  'mastra.completion_start_time',
];
/** Span events that instrumentations record when the first token arrives. */
const FIRST_TOKEN_EVENTS: ReadonlySet<unknown> = new Set([
  'First Token Stream Event',
  'gen_ai.first_token',
  'ai.stream.firstChunk',
]);

export interface SpanLabels {
  environment: string;
  service: string;
  release: string;
  prompt_name: string;
  prompt_version: string;
}

/** Returns the value as a label: a number, or a text that fits its column; otherwise an empty text. */
export function label(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && text.length <= LABEL_LENGTH_MAX ? text.toWellFormed() : '';
}

function firstLabel(sources: readonly Fields[], keys: readonly string[]): string {
  for (const source of sources) {
    for (const key of keys) {
      const text = label(source[key]);
      if (text !== '') return text;
    }
  }
  return '';
}

/** Returns the labels of a span. Its own attributes win over those of the resource. */
export function labelsOf(attributes: Fields, resource: Fields | undefined): SpanLabels {
  const sources = resource === undefined ? [attributes] : [attributes, resource];
  return {
    environment: firstLabel(sources, ENVIRONMENTS),
    service: firstLabel(sources, SERVICES),
    release: firstLabel(sources, RELEASES),
    prompt_name: firstLabel([attributes], PROMPT_NAMES),
    prompt_version: firstLabel([attributes], PROMPT_VERSIONS),
  };
}

/**
 * Returns the vendor of a model call: the one that the attributes name, else the one in whose price
 * list the model was found, else the one that the format implies.
 */
export function providerOf({ kind, provider, attributes }: Draft, priceSource: string): string {
  if (kind !== 'llm') return '';
  const named = firstLabel([attributes], ['gen_ai.provider.name', 'gen_ai.system', 'llm.provider', 'provider']);
  if (named !== '') return vendorOf(named);
  const priced = /^[^:@]+@[^:]*:([^/]+)\//.exec(priceSource)?.[1];
  return priced ?? label(provider === null ? '' : vendorOf(provider));
}

/**
 * Returns the milliseconds from the start of a span to its first token; 0 where unknown.
 * @param startedAt start of the span, milliseconds since the epoch
 */
export function firstTokenMs(attributes: Fields, startedAt: number): number {
  for (const key of FIRST_TOKEN_MS) {
    const found = milliseconds(attributes[key], 1);
    if (found > 0) return found;
  }
  for (const key of FIRST_TOKEN_SECONDS) {
    const found = milliseconds(attributes[key], 1000);
    if (found > 0) return found;
  }
  for (const key of FIRST_TOKEN_TIMES) {
    const found = milliseconds(instantOf(attributes[key]) - startedAt, 1);
    if (found > 0) return found;
  }
  return firstTokenEventMs(attributes['events'], startedAt);
}

function milliseconds(value: unknown, scale: number): number {
  if (typeof value !== 'number' || !(value > 0)) return 0;
  const ms = Math.max(1, Math.round(value * scale));
  return ms <= FIRST_TOKEN_MS_MAX ? ms : 0;
}

/** Returns the instant that a text names, which may be quoted as JSON; NaN for anything else. */
function instantOf(value: unknown): number {
  return typeof value === 'string' ? Date.parse(value.startsWith('"') ? value.slice(1, -1) : value) : NaN;
}

function firstTokenEventMs(events: unknown, startedAt: number): number {
  if (!Array.isArray(events)) return 0;
  for (const event of events as unknown[]) {
    if (!isFields(event) || !FIRST_TOKEN_EVENTS.has(event['name'])) continue;
    const nanos = event['time_unix_nano'];
    const found = milliseconds((typeof nanos === 'string' ? Number(nanos) / 1e6 : NaN) - startedAt, 1);
    if (found > 0) return found;
  }
  return 0;
}
