// Sets up tracing: one call at the start of an application.
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { MillraceClient, serviceUrl } from './client.ts';
import { MillraceError, reportOnStderr } from './errors.ts';
import { Exporter } from './exporter.ts';
import { type FlushResult, type Mask, MillraceSpanProcessor } from './processor.ts';
import { scoresSent, sendScoresWith } from './scores.ts';
import { Spool, type SpoolOptions } from './spool.ts';

/** The part of an instrumentation of OpenTelemetry that this package calls. */
export interface Instrumentation {
  setTracerProvider(provider: unknown): void;
  enable(): void;
  disable(): void;
  /** Patches a library that was loaded by import. */
  manuallyInstrument?(library: unknown): void;
}

export interface InitOptions {
  /** Address of the service. Default: MILLRACE_URL, else http://127.0.0.1:8080. */
  url?: string;
  /** Default: MILLRACE_API_KEY. Without one nothing is sent, and a line on standard error says so. */
  apiKey?: string;
  /** service.name. Default: OTEL_SERVICE_NAME. */
  service?: string;
  /** deployment.environment.name. Default: MILLRACE_ENVIRONMENT. */
  environment?: string;
  /** service.version. Default: MILLRACE_RELEASE. */
  release?: string;
  /**
   * own: registers a tracer provider unless the application has one. none: only makes the processor,
   * which the application adds to its own provider. Default: own.
   */
  provider?: 'own' | 'none';
  /** Instrumentations of the libraries that are to be traced. */
  instrumentations?: readonly Instrumentation[];
  /** immediate sends each span when it ends, for processes that may stop at once. Default: batched. */
  exportMode?: 'batched' | 'immediate';
  /** Default: spans with attributes of generative AI. */
  shouldExport?: (span: ReadableSpan) => boolean;
  /** Replaces texts before they leave the process. If it throws, `<masked>` is sent. */
  mask?: Mask;
  /** Where spans wait on the disk while the service is away; false keeps nothing. */
  spool?: SpoolOptions | false;
  /** Sends what waits when the process ends by itself, or by SIGTERM or SIGINT. Default: true. */
  flushOnExit?: boolean;
  /** Default: 3000. */
  shutdownTimeoutMs?: number;
  /** Default: one line a minute on standard error. */
  onError?: (error: MillraceError) => void;
}

export interface Millrace extends AsyncDisposable {
  readonly processor: SpanProcessor;
  readonly client: MillraceClient;
  /** Sends what waits. @returns counts of spans since the last flush */
  flush(timeoutMs?: number): Promise<FlushResult>;
  /** Flushes, and takes back what init registered. */
  shutdown(): Promise<FlushResult>;
}

const SHUTDOWN_MS = 3000;
/** One for all copies of this package in a process. */
const INSTANCE = Symbol.for('millrace.sdk');
const globals = globalThis as { [INSTANCE]?: Millrace | undefined };

/** Sets up tracing. Called again, it returns the same instance until that is shut down. */
export function init(options: InitOptions = {}): Millrace {
  return (globals[INSTANCE] ??= create(options));
}

function create(options: InitOptions): Millrace {
  const url = serviceUrl(options.url);
  const apiKey = options.apiKey ?? process.env['MILLRACE_API_KEY'] ?? '';
  const onError = options.onError ?? reportOnStderr();
  if (apiKey === '') onError(new MillraceError('nothing is sent: MILLRACE_API_KEY is not set, and init got no apiKey'));
  const spool =
    options.spool === false || apiKey === '' ? null : new Spool(`${url}\n${apiKey}`, { ...(options.spool ?? {}) });
  const exporter = new Exporter({ url, apiKey, spool, onError });
  const processor = new MillraceSpanProcessor({
    exporter,
    exportMode: options.exportMode ?? 'batched',
    shouldExport: apiKey === '' ? () => false : options.shouldExport,
    mask: options.mask,
    onError,
  });
  const client = new MillraceClient({ url, apiKey });
  sendScoresWith(apiKey === '' ? null : client, (cause) => {
    onError(cause instanceof MillraceError ? cause : new MillraceError(String(cause), { cause }));
  });
  const withdraw = options.provider === 'none' ? () => {} : register(processor, options);
  // What an earlier process could not send goes first.
  void exporter.drain();
  return instance({ processor, client, withdraw, options });
}

interface Made {
  processor: MillraceSpanProcessor;
  client: MillraceClient;
  withdraw: () => void;
  options: InitOptions;
}

function instance({ processor, client, withdraw, options }: Made): Millrace {
  const timeout = options.shutdownTimeoutMs ?? SHUTDOWN_MS;
  const flush = async (timeoutMs = timeout): Promise<FlushResult> => {
    await within(timeoutMs, Promise.all([processor.forceFlush(), scoresSent()]));
    return processor.takeCounts();
  };
  const leave = options.flushOnExit === false ? () => {} : flushAtExit(() => flush(timeout));
  const shutdown = async (): Promise<FlushResult> => {
    leave();
    await within(timeout, Promise.all([processor.shutdown(), scoresSent()]));
    sendScoresWith(null, () => {});
    withdraw();
    globals[INSTANCE] = undefined;
    return processor.takeCounts();
  };
  return { processor, client, flush, shutdown, [Symbol.asyncDispose]: () => shutdown().then(() => undefined) };
}

/** Registers a provider unless there is one. @returns the function that takes it back */
function register(processor: SpanProcessor, options: InitOptions): () => void {
  const provider = new BasicTracerProvider({ resource: resourceOf(options), spanProcessors: [processor] });
  if (!trace.setGlobalTracerProvider(provider)) {
    (options.onError ?? reportOnStderr())(
      new MillraceError(
        'the application has a tracer provider already: add the processor of init({ provider: "none" }) to it',
      ),
    );
    return () => {};
  }
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(
    new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
  );
  const { instrumentations = [] } = options;
  for (const instrumentation of instrumentations) {
    instrumentation.setTracerProvider(provider);
    instrumentation.enable();
  }
  return () => {
    for (const instrumentation of instrumentations) instrumentation.disable();
    trace.disable();
    context.disable();
    propagation.disable();
  };
}

function resourceOf({ service, environment, release }: InitOptions) {
  const named = {
    'service.name': service ?? process.env['OTEL_SERVICE_NAME'],
    'deployment.environment.name': environment ?? process.env['MILLRACE_ENVIRONMENT'],
    'service.version': release ?? process.env['MILLRACE_RELEASE'],
  };
  const given = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
  return defaultResource().merge(resourceFromAttributes(given));
}

/** Resolves when the work is done, or after a time. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]).finally(() => {
    clearTimeout(timer);
  });
}

/** Flushes before the process ends. @returns the function that takes this back */
function flushAtExit(flush: () => Promise<unknown>): () => void {
  let flushed = false;
  const beforeExit = (): void => {
    if (flushed) return;
    flushed = true;
    void flush();
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    void flush().finally(() => {
      leave();
      // Without another listener the signal would have ended the process.
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    });
  };
  const leave = (): void => {
    process.off('beforeExit', beforeExit);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, onSignal);
  };
  process.on('beforeExit', beforeExit);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, onSignal);
  return leave;
}
