// Steps: spans around functions of an application.
import { context, createContextKey, type Attributes, type Span, SpanStatusCode, trace } from '@opentelemetry/api';
import { kindAttributes, type StepKind } from './kinds.ts';
import type { ScoreInput } from './client.ts';
import { queueScore } from './scores.ts';

export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  reasoningTokens?: number;
  costUsd?: number;
}

export interface Step {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  update(fields: {
    input?: unknown;
    output?: unknown;
    model?: string;
    usage?: Usage;
    attributes?: Attributes;
    error?: unknown;
  }): void;
  /** Scores this step, or the whole trace if `spanId` is an empty text. Sent in the background. */
  score(score: ScoreInput): void;
}

export interface ObserveOptions<A extends unknown[], R> {
  /** Default: the name of the function. */
  name?: string;
  kind?: StepKind;
  /** Whether the arguments are recorded, or what is recorded in their place. Default: true. */
  input?: boolean | ((...args: A) => unknown);
  /** Whether the result is recorded, or what is recorded in its place. Default: true. */
  output?: boolean | ((result: R) => unknown);
  attributes?: Attributes;
}

const TRACER = 'millrace';
const STEP = createContextKey('millrace.step');
/** Characters of a recorded input or output; the service has bounds of its own. */
const TEXT_CHARS_MAX = 1_000_000;

/** Returns the text of a value as it is recorded. */
function textOf(value: unknown): { text: string; type: string } {
  if (typeof value === 'string') return { text: value.slice(0, TEXT_CHARS_MAX), type: 'text/plain' };
  try {
    return {
      text: ((JSON.stringify(value) as string | undefined) ?? String(value)).slice(0, TEXT_CHARS_MAX),
      type: 'application/json',
    };
  } catch {
    return { text: String(value).slice(0, TEXT_CHARS_MAX), type: 'text/plain' };
  }
}

function put(span: Span, at: 'input' | 'output', value: unknown): void {
  if (value === undefined) return;
  const { text, type } = textOf(value);
  span.setAttributes({ [`${at}.value`]: text, [`${at}.mime_type`]: type });
}

const USAGE: Record<keyof Usage, string> = {
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  costUsd: 'cost_usd',
};

function fail(span: Span, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  span.recordException(error instanceof Error ? error : message);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

/** A step around a span of its own. */
class SpanStep implements Step {
  readonly #span: Span;

  constructor(span: Span) {
    this.#span = span;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get spanId(): string {
    return this.#span.spanContext().spanId;
  }

  update({ input, output, model, usage = {}, attributes = {}, error }: Parameters<Step['update']>[0]): void {
    put(this.#span, 'input', input);
    put(this.#span, 'output', output);
    if (model !== undefined) this.#span.setAttribute('gen_ai.request.model', model);
    for (const [field, amount] of Object.entries(usage) as [keyof Usage, number | undefined][])
      if (amount !== undefined) this.#span.setAttribute(USAGE[field], amount);
    this.#span.setAttributes(attributes);
    if (error !== undefined) fail(this.#span, error);
  }

  score(score: ScoreInput): void {
    queueScore({ traceId: this.traceId, spanId: this.spanId, ...score });
  }
}

/** Returns the innermost step around the caller. */
export const currentStep = (): Step | undefined => context.active().getValue(STEP) as Step | undefined;

/**
 * Runs a function as a step. The step ends when its result is there: when the promise is settled, or
 * the iterator has ended.
 */
export function step<R>(
  name: string,
  options: { kind?: StepKind; input?: unknown; attributes?: Attributes },
  fn: (step: Step) => R,
): R {
  const { kind = 'step', input, attributes = {} } = options;
  const span = trace
    .getTracer(TRACER)
    .startSpan(name, { attributes: { ...kindAttributes(kind, name), ...attributes } });
  put(span, 'input', input);
  const own = new SpanStep(span);
  const inside = trace.setSpan(context.active(), span).setValue(STEP, own);
  return endWith(span, inside, () => fn(own));
}

/** Returns the function as a step: each call is a span with its arguments and its result. */
export function observe<A extends unknown[], R>(
  fn: (...args: A) => R,
  options: ObserveOptions<A, Awaited<R>> = {},
): (...args: A) => R {
  const { kind = 'step', input = true, output = true, attributes = {} } = options;
  const name = options.name ?? (fn.name === '' ? kind : fn.name);
  return function (this: unknown, ...args: A): R {
    const span = trace
      .getTracer(TRACER)
      .startSpan(name, { attributes: { ...kindAttributes(kind, name), ...attributes } });
    if (typeof input === 'function')
      recorded(span, () => {
        put(span, 'input', input(...args));
      });
    else if (input && args.length > 0) put(span, 'input', args.length === 1 ? args[0] : args);
    const inside = trace.setSpan(context.active(), span).setValue(STEP, new SpanStep(span));
    return endWith(
      span,
      inside,
      () => fn.apply(this, args),
      (result) => {
        if (typeof output === 'function')
          recorded(span, () => {
            put(span, 'output', output(result as Awaited<R>));
          });
        else if (output) put(span, 'output', result);
      },
    );
  };
}

/** A function of the caller that fails to describe a value must not fail the call. */
function recorded(span: Span, record: () => void): void {
  try {
    record();
  } catch (error) {
    span.addEvent('millrace.not_recorded', { message: error instanceof Error ? error.message : String(error) });
  }
}

type Inside = ReturnType<typeof context.active>;

/** Runs a function in a context, and ends the span when its result is there. */
function endWith<R>(span: Span, inside: Inside, run: () => R, onResult: (result: unknown) => void = () => {}): R {
  const failed = (error: unknown): never => {
    fail(span, error);
    span.end();
    throw error;
  };
  const ended = <T>(result: T): T => {
    onResult(result);
    span.end();
    return result;
  };
  let result: R;
  try {
    result = context.with(inside, run);
  } catch (error) {
    return failed(error);
  }
  if (result instanceof Promise) return result.then(ended, failed) as R;
  if (isIterator(result)) return followed(result, span, inside, onResult);
  return ended(result);
}

type AnyIterator = Iterator<unknown> | AsyncIterator<unknown>;

const isIterator = (value: unknown): value is AnyIterator & object =>
  typeof value === 'object' &&
  value !== null &&
  'next' in value &&
  typeof value.next === 'function' &&
  (Symbol.asyncIterator in value || Symbol.iterator in value);

/** Values of an iterator that are recorded as its result. */
const ITEMS_MAX = 10_000;

/**
 * Follows an iterator to its end: the span ends with it. Values are what they were; texts are
 * recorded joined, as the chunks of a stream are.
 */
function followed<R extends object>(result: R, span: Span, inside: Inside, onResult: (result: unknown) => void): R {
  const items: unknown[] = [];
  let open = true;
  const end = (): void => {
    if (!open) return;
    open = false;
    onResult(items.every((item) => typeof item === 'string') ? items.join('') : items);
    span.end();
  };
  const seen = (step: IteratorResult<unknown>): IteratorResult<unknown> => {
    if (step.done === true) end();
    else if (items.length < ITEMS_MAX) items.push(step.value);
    return step;
  };
  const failed = (error: unknown): never => {
    if (open) fail(span, error);
    end();
    throw error;
  };
  const called = (method: 'next' | 'return' | 'throw', args: unknown[]): unknown => {
    try {
      const of = (result as Record<string, unknown>)[method] as (...args: unknown[]) => unknown;
      const answer = context.with(inside, () => of.apply(result, args));
      return answer instanceof Promise
        ? answer.then((step) => seen(step as IteratorResult<unknown>), failed)
        : seen(answer as IteratorResult<unknown>);
    } catch (error) {
      return failed(error);
    }
  };
  const proxy: R = new Proxy(result, {
    get(target, key) {
      if (key === Symbol.asyncIterator || key === Symbol.iterator) return key in target ? () => proxy : undefined;
      const value = Reflect.get(target, key, target) as unknown;
      if (typeof value !== 'function') return value;
      if (key === 'next' || key === 'return' || key === 'throw') return (...args: unknown[]) => called(key, args);
      return value.bind(target) as unknown;
    },
  });
  return proxy;
}
