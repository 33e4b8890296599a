// The span processor: adds attributes at the start of each span, and at its end hands those of LLM
// applications to the exporter, in batches.
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { Attributes, AttributeValue, Context } from '@opentelemetry/api';
import type { ReadableSpan, Span, SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { MillraceError } from './errors.ts';
import type { Exporter, Sent } from './exporter.ts';
import { speaksGenAi } from './kinds.ts';
import { whoseAttributes } from './whose.ts';

const BATCH_SPANS = 256;
const BATCH_EVERY_MS = 1000;
/** Spans that wait for a batch or are being sent; more are dropped and counted. */
const WAITING_SPANS_MAX = 8192;
/** Bytes of their texts, roughly; more are dropped and counted. */
const WAITING_BYTES_MAX = 64 * 1024 ** 2;

export type Mask = (text: string, at: 'input' | 'output' | 'attribute') => string | Promise<string>;

export interface ProcessorOptions {
  exporter: Exporter;
  exportMode: 'batched' | 'immediate';
  shouldExport?: ((span: ReadableSpan) => boolean) | undefined;
  mask?: Mask | undefined;
  onError: (error: MillraceError) => void;
}

/** Counts of spans. */
export interface FlushResult {
  sent: number;
  spooled: number;
  dropped: number;
}

/** Text in place of one that `mask` failed on. */
const MASKED = '<masked>';

/** Collects spans of LLM applications and exports them. */
export class MillraceSpanProcessor implements SpanProcessor {
  readonly #options: ProcessorOptions;
  #waiting: ReadableSpan[] = [];
  #held = { spans: 0, bytes: 0 };
  #timer: NodeJS.Timeout | null = null;
  #sending: Promise<void> = Promise.resolve();
  #counts: FlushResult = { sent: 0, spooled: 0, dropped: 0 };
  #ended = false;

  constructor(options: ProcessorOptions) {
    this.#options = options;
  }

  onStart(span: Span, parent: Context): void {
    span.setAttributes(whoseAttributes(parent));
  }

  onEnd(span: ReadableSpan): void {
    if (this.#ended || (span.spanContext().traceFlags & 1) === 0 || !this.#isWanted(span)) return;
    const bytes = textBytes(span.attributes);
    if (this.#held.spans >= WAITING_SPANS_MAX || this.#held.bytes + bytes > WAITING_BYTES_MAX) {
      this.#counts.dropped += 1;
      this.#options.onError(new MillraceError('spans end faster than they can be sent: some were dropped'));
      return;
    }
    this.#held.spans += 1;
    this.#held.bytes += bytes;
    this.#waiting.push(span);
    if (this.#options.exportMode === 'immediate' || this.#waiting.length >= BATCH_SPANS) this.#sendWaiting();
    else
      this.#timer ??= setTimeout(() => {
        this.#sendWaiting();
      }, BATCH_EVERY_MS).unref();
  }

  /** Sends what waits. Resolves when it was taken, spooled or dropped. */
  async forceFlush(): Promise<void> {
    this.#sendWaiting();
    await this.#sending;
    await this.#options.exporter.drain();
  }

  async shutdown(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.forceFlush();
    this.#options.exporter.stop();
  }

  /** Returns the counts since the last call. */
  takeCounts(): FlushResult {
    const counts = this.#counts;
    this.#counts = { sent: 0, spooled: 0, dropped: 0 };
    return counts;
  }

  #isWanted(span: ReadableSpan): boolean {
    try {
      return (this.#options.shouldExport ?? isOfLlmApplication)(span);
    } catch (cause) {
      this.#options.onError(new MillraceError('shouldExport failed, so the span is sent', { cause }));
      return true;
    }
  }

  #sendWaiting(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const spans = this.#waiting;
    if (spans.length === 0) return;
    this.#waiting = [];
    const sent = this.#send(spans);
    this.#sending = this.#sending.then(() => sent);
  }

  async #send(spans: readonly ReadableSpan[]): Promise<void> {
    const { mask, exporter } = this.#options;
    const masked = mask === undefined ? spans : await Promise.all(spans.map((span) => this.#masked(span, mask)));
    const body = ProtobufTraceSerializer.serializeRequest(masked.map(ofThisVersion));
    const result = body === undefined ? NOT_SENT : await exporter.send(body);
    this.#counts.sent += result.sent * spans.length - result.rejectedSpans;
    this.#counts.spooled += result.spooled * spans.length;
    this.#counts.dropped += result.dropped * spans.length + result.rejectedSpans;
    this.#held.spans -= spans.length;
    for (const span of spans) this.#held.bytes -= textBytes(span.attributes);
  }

  async #masked(span: ReadableSpan, mask: Mask): Promise<ReadableSpan> {
    const attributes = await this.#maskedAttributes(span.attributes, mask);
    const events = await Promise.all(
      span.events.map(async (event) => ({
        ...event,
        attributes: await this.#maskedAttributes(event.attributes ?? {}, mask),
      })),
    );
    return Object.create(span, { attributes: { value: attributes }, events: { value: events } }) as ReadableSpan;
  }

  async #maskedAttributes(attributes: Attributes, mask: Mask): Promise<Attributes> {
    const entries = Object.entries(attributes).map(async ([key, value]) => [
      key,
      IDENTIFIERS.has(key) ? value : await this.#maskedValue(value, mask, placeOf(key)),
    ]);
    return Object.fromEntries(await Promise.all(entries)) as Attributes;
  }

  async #maskedValue(value: AttributeValue | undefined, mask: Mask, at: Parameters<Mask>[1]): Promise<unknown> {
    if (Array.isArray(value)) return Promise.all(value.map((part) => this.#maskedValue(part as string, mask, at)));
    if (typeof value !== 'string') return value;
    try {
      return await mask(value, at);
    } catch (cause) {
      this.#options.onError(new MillraceError(`mask failed, so a text was replaced by ${MASKED}`, { cause }));
      return MASKED;
    }
  }
}

const NOT_SENT: Sent = { sent: 0, spooled: 0, dropped: 1, rejectedSpans: 0 };

interface AnySpan extends Partial<Pick<ReadableSpan, 'instrumentationScope' | 'parentSpanContext'>> {
  instrumentationLibrary?: ReadableSpan['instrumentationScope'];
  parentSpanId?: string;
}

/**
 * Returns a span as the serializer reads it. The provider may be the application's own, of an
 * earlier major version of OpenTelemetry, whose spans name scope and parent differently.
 */
function ofThisVersion(span: ReadableSpan): ReadableSpan {
  const { instrumentationScope, parentSpanContext, instrumentationLibrary, parentSpanId } = span as AnySpan;
  if (instrumentationScope !== undefined) return span;
  const parent = parentSpanId === undefined ? parentSpanContext : { ...span.spanContext(), spanId: parentSpanId };
  return Object.create(span, {
    instrumentationScope: { value: instrumentationLibrary ?? { name: '' } },
    parentSpanContext: { value: parent },
  }) as ReadableSpan;
}

/** Attributes by which spans are classified; a mask never sees them. */
const IDENTIFIERS = new Set(['openinference.span.kind', 'gen_ai.operation.name']);

const isOfLlmApplication = (span: ReadableSpan): boolean => speaksGenAi(span.attributes);

function placeOf(key: string): Parameters<Mask>[1] {
  if (/^(?:input\.|gen_ai\.(?:input|prompt|system)|llm\.(?:input|prompts)|ai\.prompt)/.test(key)) return 'input';
  if (/^(?:output\.|gen_ai\.(?:output|completion)|llm\.(?:output|completions)|ai\.response\.(?:text|object))/.test(key))
    return 'output';
  return 'attribute';
}

function textBytes(attributes: Attributes): number {
  let bytes = 0;
  for (const key in attributes) {
    const value = attributes[key];
    bytes += key.length + (typeof value === 'string' ? value.length : 16);
  }
  return bytes;
}
