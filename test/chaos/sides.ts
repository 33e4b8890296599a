// The other traffic of a run, each kind in an organization of its own: OTLP exports, gateway calls,
// and an organization whose hard limit is reached repeatedly. Each records what must be stored, and
// what may be because an answer was lost.
import { eventHex } from '../../pipeline/domain/traces/ids.ts';
import { seededRandom, type Random } from '../bench/vocabulary.ts';
import { asJson, asProtobuf, exportOf, otlpSpan } from '../support/otlp.ts';
import { Client, pause } from './client.ts';
import type { StackAddress } from './stack.ts';
import { runTexts } from './texts.ts';

const RETRY_MS = 60;

/** The expected spans of one organization, by trace and span name, with their tokens. */
export interface SideExpected {
  org: string;
  key: string;
  /** From `trace span` to input and output tokens. */
  spans: Map<string, { input: number; output: number }>;
  /** Traces with a lost answer: they may be stored, at most once. */
  maybe: Set<string>;
}

abstract class Side {
  readonly expected: SideExpected;
  readonly faults: string[] = [];
  protected readonly client: Client;
  protected readonly random: Random;
  protected readonly text: () => string;
  readonly #run = Date.now().toString(16);
  readonly #everyMs: number;
  #made = 0;
  #stopped = true;
  #loop: Promise<void> = Promise.resolve();

  constructor(org: { org: string; key: string }, { address, seed, file, everyMs }: SideOptions) {
    this.expected = { ...org, spans: new Map(), maybe: new Set() };
    this.client = new Client(address);
    this.random = seededRandom(seed);
    const texts = runTexts(file);
    this.text = () => texts(this.random);
    this.#everyMs = everyMs;
  }

  start(): void {
    this.#stopped = false;
    this.#loop = this.#run_();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
  }

  protected get stopped(): boolean {
    return this.#stopped;
  }

  /** Returns a hex of 32 digits that no other run or kind has. */
  protected newTrace(): string {
    this.#made += 1;
    return eventHex(`${this.expected.org} ${this.#run} ${this.#made}`).padEnd(32, 'a');
  }

  protected abstract once(): Promise<void>;

  async #run_(): Promise<void> {
    while (!this.#stopped) {
      await this.once();
      await pause(this.#everyMs);
    }
  }
}

export interface SideOptions {
  address: StackAddress;
  seed: number;
  file?: string;
  /** Milliseconds between two requests. */
  everyMs: number;
}

/** Exports of a few spans, alternately in JSON and protobuf, repeated until they are accepted. */
export class OtlpSide extends Side {
  #json = false;

  protected async once(): Promise<void> {
    const trace = this.newTrace();
    this.#json = !this.#json;
    const tokens = Array.from({ length: 1 + (this.random() % 4) }, () => ({
      input: this.random() % 900,
      output: this.random() % 90,
    }));
    const spans = tokens.map(({ input, output }, index) =>
      otlpSpan(
        index,
        {
          'gen_ai.operation.name': 'chat',
          'gen_ai.request.model': 'gpt-4o-mini',
          'gen_ai.usage.input_tokens': input,
          'gen_ai.usage.output_tokens': output,
          note: this.text(),
        },
        { traceId: trace },
      ),
    );
    const body = this.#json ? asJson(exportOf(spans)) : asProtobuf(exportOf(spans));
    for (;;) {
      const answer = await this.client.ask('POST', '/v1/otlp/v1/traces', {
        headers: {
          authorization: `Bearer ${this.expected.key}`,
          'Content-Type': this.#json ? 'application/json' : 'application/x-protobuf',
        },
        body,
      });
      if (answer?.status === 200) break;
      if (answer !== null && answer.status < 500 && answer.status !== 429) {
        this.faults.push(`otlp: ${answer.status} ${answer.text.slice(0, 200)}`);
        return;
      }
      await pause(RETRY_MS);
    }
    for (const [index, one] of tokens.entries())
      this.expected.spans.set(`${trace} ${String(spans[index]?.['spanId'])}`, one);
  }
}

/** An answered call, and the API process that answered it. */
interface Call {
  trace: string;
  api: number;
  at: number;
}

/**
 * Gateway calls. A killed process loses the records of its last moments: those become spans that
 * may be stored.
 */
export class GatewaySide extends Side {
  static readonly TOKENS = { input: 100, output: 20 };
  #calls: Call[] = [];

  protected async once(): Promise<void> {
    const trace = this.newTrace();
    const answer = await this.client.ask('POST', '/v1/chat/completions', {
      headers: { authorization: `Bearer ${this.expected.key}`, 'X-Service-Trace-Id': trace },
      body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: this.text() }] }),
    });
    if (answer?.status !== 200) {
      this.expected.maybe.add(trace);
      if (answer !== null && answer.status < 500 && answer.status !== 429)
        this.faults.push(`gateway: ${answer.status} ${answer.text.slice(0, 200)}`);
      return;
    }
    this.expected.spans.set(`${trace} ${answer.headers.get('x-service-span-id') ?? ''}`, GatewaySide.TOKENS);
    this.#calls.push({ trace, api: answer.api, at: answer.at });
  }

  /** Notes that an API process was killed: what it answered since then may be lost. */
  excuse(api: number, sinceMs: number): void {
    for (const call of this.#calls)
      if (call.api === api && call.at >= sinceMs) {
        for (const key of this.expected.spans.keys())
          if (key.startsWith(`${call.trace} `)) this.expected.spans.delete(key);
        this.expected.maybe.add(call.trace);
      }
    this.#calls = this.#calls.filter(({ at }) => at >= sinceMs - EXCUSE_KEPT_MS);
  }
}

const EXCUSE_KEPT_MS = 300_000;

/** How a limit was kept: acknowledged tokens and when they reached it. */
export interface Limit {
  limit: number;
  reached_at: number | null;
  refused_at: number | null;
  /**
   * Tokens beyond the limit acknowledged for requests sent later than the contract's second after
   * it was reached.
   */
  late: number;
  /** All tokens acknowledged beyond the limit. */
  over: number;
}

/**
 * Sends one event after the other until the hard limit rejects them; a while later the limit is
 * raised.
 */
export class LimitedSide extends Side {
  static readonly STEP = 40_000;
  /** The contract: other processes know within a second. */
  static readonly LATE_MS = 1000;
  readonly limits: Limit[] = [];
  #tokens = 0;

  /** Acknowledged tokens. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Sets a limit one step above the acknowledged tokens. */
  async raise(): Promise<void> {
    const limit = this.#tokens + LimitedSide.STEP;
    await this.client.must('PUT', `/orgs/${this.expected.org}/budget`, this.#headers, {
      tokens: { hard_limit: limit },
    });
    this.limits.push({ limit, reached_at: null, refused_at: null, late: 0, over: 0 });
  }

  protected async once(): Promise<void> {
    const trace = this.newTrace();
    const [input, output] = [this.random() % 900, this.random() % 90];
    const event = {
      trace_id: trace,
      span_id: 'limited',
      duration_ms: 1,
      outcome: 'success',
      request: { model: 'gpt-4o-mini', messages: [{ role: 'user', content: this.text() }] },
      response: {
        choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' } }],
        usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
      },
    };
    const body = JSON.stringify(event);
    for (let unclear = false; ;) {
      const sentAt = performance.now();
      const answer = await this.client.ask('POST', `/orgs/${this.expected.org}/ingest/chatcompletion`, {
        headers: this.#headers,
        body,
      });
      if (answer?.status === 200) {
        this.#count({ trace, input, output, sentAt });
        return;
      }
      if (answer?.status === 429 && answer.headers.has('x-quota-tokens-status')) {
        if (unclear) this.expected.maybe.add(trace);
        await this.#refused();
        return;
      }
      if (answer !== null && answer.status < 500 && answer.status !== 429) {
        this.faults.push(`limited: ${answer.status} ${answer.text.slice(0, 200)}`);
        return;
      }
      unclear = true;
      await pause(RETRY_MS);
    }
  }

  get #headers(): Record<string, string> {
    return { 'X-Org-Api-Key': this.expected.key, 'X-Org-Id': this.expected.org };
  }

  #count({ trace, input, output, sentAt }: { trace: string; input: number; output: number; sentAt: number }): void {
    this.expected.spans.set(`${trace} limited`, { input, output });
    const limit = this.limits.at(-1);
    const before = this.#tokens;
    this.#tokens += input + output;
    if (limit === undefined || this.#tokens < limit.limit) return;
    if (before >= limit.limit) {
      limit.over += input + output;
      if (limit.reached_at !== null && sentAt > limit.reached_at + LimitedSide.LATE_MS) limit.late += input + output;
    }
    limit.reached_at ??= performance.now();
  }

  async #refused(): Promise<void> {
    const limit = this.limits.at(-1);
    if (limit !== undefined) limit.refused_at ??= performance.now();
    await pause(RAISE_AFTER_MS);
    if (!this.stopped) await this.raise();
  }
}

const RAISE_AFTER_MS = 1500;
