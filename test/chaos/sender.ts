// Load with a memory: each event is sent until it is acknowledged, with the same bytes each time,
// and the expected rows are recorded. An attempt whose answer was lost may have been stored: its
// repeat must not count.
import { randomUUID } from 'node:crypto';
import { eventHex, partitionOf } from '../../pipeline/domain/traces/ids.ts';
import { usdToPico } from '../../pipeline/domain/pricing/money.ts';
import { seededRandom, type Random } from '../bench/vocabulary.ts';
import { Client, pause } from './client.ts';
import type { StackAddress } from './stack.ts';
import { runTexts } from './texts.ts';

type Json = Record<string, unknown>;

/** The rows that the store must have for all acknowledged events. */
export interface Expected {
  /** Rows by event hex. */
  spans: Map<string, number>;
  traces: Set<string>;
  /** Spans that have a prompt or a response. */
  texts: number;
  input_tokens: number;
  output_tokens: number;
  cost_pico_usd: bigint;
  storage_bytes: number;
}

export interface SenderOptions {
  /** Events a second. */
  rate: number;
  seed?: number;
  /** File of runs whose texts are sent; unset: the sample of the demo. */
  file?: string;
}

const LANES = 12;
const RETRY_MS = 60;
const TRACE_EVENTS_MAX = 8;
/** Longer than any fault lasts, and than a dead process's claim. */
const KEY_MS_MAX = 120_000;

interface Made {
  event: Json;
  spans: number;
  texts: number;
  input_tokens: number;
  output_tokens: number;
}

export class Sender {
  readonly expected: Expected = {
    spans: new Map(),
    traces: new Set(),
    texts: 0,
    input_tokens: 0,
    output_tokens: 0,
    cost_pico_usd: 0n,
    storage_bytes: 0,
  };
  /** Repeated attempts. */
  retries = 0;
  /** Answers that no retry can fix, and ids that differ from the content's. */
  readonly faults: string[] = [];
  readonly #client: Client;
  readonly #rate: number;
  readonly #text: (random: Random) => string;
  readonly #random: Random;
  readonly #run = Date.now().toString(16);
  #traces = 0;
  #begun = 0;
  #taken = 0;
  #stopped = false;
  #lanes: Promise<void>[] = [];

  constructor(address: StackAddress, { rate, seed = Date.now(), file }: SenderOptions) {
    this.#client = new Client(address);
    this.#rate = rate;
    this.#random = seededRandom(seed);
    this.#text = runTexts(file);
  }

  get acknowledged(): number {
    return this.expected.spans.size;
  }

  /** Begins, or continues after a stop. */
  start(): void {
    this.#stopped = false;
    this.#taken = 0;
    this.#begun = performance.now();
    this.#lanes = Array.from({ length: LANES }, () => this.#lane());
  }

  /** Ends the load; resolves when every request in flight is acknowledged. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#lanes);
  }

  /** Sends one event to a partition of the log until it is acknowledged, and returns its trace. */
  async probe(partition: number, partitions: number): Promise<string> {
    let trace = this.#newTrace();
    while (partitionOf(this.#client.address.org, trace, partitions) !== partition) trace = this.#newTrace();
    await this.#deliver('custom', [this.#custom(trace, 'probe', null)]);
    return trace;
  }

  async #lane(): Promise<void> {
    while (!this.#stopped) {
      const ahead = (this.#taken * 1000) / this.#rate - (performance.now() - this.#begun);
      if (ahead > 0) {
        await pause(Math.min(ahead, 50));
        continue;
      }
      await this.#sendTrace();
    }
  }

  #newTrace(): string {
    this.#traces += 1;
    return `trace-${this.#run}-${this.#traces}`;
  }

  /**
   * Sends a trace in several requests of different formats; its root arrives first, last, or never.
   */
  async #sendTrace(): Promise<void> {
    const trace = this.#newTrace();
    const root = `root-${trace}`;
    const events = 1 + (this.#random() % TRACE_EVENTS_MAX);
    this.#taken += events;
    const rootAt = this.#random() % 3;
    if (rootAt === 0) await this.#deliver('custom', [this.#custom(trace, root, null)]);
    const batch: Made[] = [];
    for (let i = 1; i < events; i += 1) {
      const kind = this.#random() % 8;
      if (kind === 0) await this.#deliver('chatcompletion', [this.#call(trace, root)]);
      else if (kind === 1) await this.#deliver('chain', [this.#chain(trace, root)]);
      else if (kind === 2) await this.#deliver('messages', [this.#messages(trace, root)]);
      else if (kind === 3) await this.#deliver('app', [this.#app(trace, root), this.#app(trace, root)]);
      else batch.push(this.#custom(trace, `${root}-${i}`, root));
    }
    if (rootAt === 1 || events === 1) batch.push(this.#custom(trace, root, null));
    if (batch.length > 0) await this.#deliver('custom', batch);
  }

  #common(trace: string, parent: string | null): Json {
    const cost = ((this.#random() % 100_000) / 1e8).toFixed(12);
    return {
      trace_id: trace,
      ...(parent === null ? {} : { parent_span_id: parent }),
      duration_ms: this.#random() % 2000,
      outcome: this.#random() % 40 === 0 ? 'error' : 'success',
      tags: ['chaos'],
      attributes: { agent_id: `agent_${this.#random() % 5}`, cost_usd: cost, nonce: this.#random() },
    };
  }

  #custom(trace: string, span: string, parent: string | null): Made {
    return this.#made({ name: 'step', span_id: span, ...this.#common(trace, parent) }, { texts: 0 });
  }

  #app(trace: string, parent: string): Made {
    const page = {
      event_type: 'page_view',
      session_id: trace,
      user_id: `user_${this.#random() % 50}`,
      url: 'https://example.com/',
    };
    return this.#made({ ...page, ...this.#common(trace, parent) }, { texts: 0 });
  }

  #call(trace: string, parent: string): Made {
    const [input, output] = [this.#random() % 5000, this.#random() % 900];
    const request = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: this.#text(this.#random) }] };
    const response = {
      choices: [{ index: 0, message: { role: 'assistant', content: this.#text(this.#random) } }],
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    };
    return this.#made({ request, response, ...this.#common(trace, parent) }, { input, output });
  }

  #messages(trace: string, parent: string): Made {
    const [input, output] = [this.#random() % 5000, this.#random() % 900];
    const request = {
      model: 'claude-3-5-sonnet',
      system: 'Be brief.',
      messages: [{ role: 'user', content: this.#text(this.#random) }],
      max_tokens: 900,
    };
    const response = {
      id: 'msg_chaos',
      content: [{ type: 'text', text: this.#text(this.#random) }],
      stop_reason: 'end_turn',
      usage: { input_tokens: input, output_tokens: output },
    };
    return this.#made({ request, response, ...this.#common(trace, parent) }, { input, output });
  }

  #chain(trace: string, parent: string): Made {
    const [input, output] = [this.#random() % 3000, this.#random() % 400];
    const steps = Array.from({ length: this.#random() % 4 }, () => [
      `look up ${this.#text(this.#random)}`,
      this.#text(this.#random),
    ]);
    const request = { model: 'gpt-4o', messages: [{ role: 'user', content: this.#text(this.#random) }] };
    const response = {
      generations: [[{ text: this.#text(this.#random) }]],
      llm_output: { token_usage: { prompt_tokens: input, completion_tokens: output } },
    };
    const chain = { request, response, chain_name: 'chaos-chain', agent_name: 'chaos', intermediate_steps: steps };
    return this.#made({ ...chain, ...this.#common(trace, parent) }, { input, output, spans: 1 + steps.length });
  }

  #made(
    event: Json,
    {
      input = 0,
      output = 0,
      spans = 1,
      texts = spans,
    }: { input?: number; output?: number; spans?: number; texts?: number },
  ): Made {
    return { event, spans, texts, input_tokens: input, output_tokens: output };
  }

  async #deliver(format: string, made: readonly Made[]): Promise<void> {
    const listed = format === 'custom' || format === 'app';
    const body = JSON.stringify(listed ? { events: made.map(({ event }) => event) } : made[0]?.event);
    const hexes = made.map(({ event }) => eventHex(JSON.stringify(event)));
    // Some requests carry an Idempotency-Key: their repeats are answered from the kept answer.
    let idempotency: Record<string, string> = this.#random() % 4 === 0 ? { 'Idempotency-Key': randomUUID() } : {};
    const began = performance.now();
    for (;;) {
      if ('Idempotency-Key' in idempotency && performance.now() - began > KEY_MS_MAX) {
        this.faults.push(`${format}: no answer under its Idempotency-Key for ${KEY_MS_MAX / 1000} s`);
        idempotency = {};
      }
      const ids = await this.#attempt(format, body, idempotency);
      if (ids !== null) {
        if (ids.join() !== hexes.map((hex) => `evt_${hex}`).join())
          this.faults.push(`${format}: the answer's ids are not those of the content`);
        break;
      }
      this.retries += 1;
      await pause(RETRY_MS);
    }
    for (const [index, one] of made.entries()) this.#remember(hexes[index] ?? '', one);
  }

  #remember(hex: string, { event, spans, texts, input_tokens, output_tokens }: Made): void {
    const { expected } = this;
    expected.spans.set(hex, spans);
    expected.traces.add(String(event['trace_id']));
    expected.texts += texts;
    expected.input_tokens += input_tokens;
    expected.output_tokens += output_tokens;
    expected.cost_pico_usd += usdToPico(String((event['attributes'] as Json)['cost_usd']));
    expected.storage_bytes += Buffer.byteLength(JSON.stringify(event));
  }

  /**
   * Returns the event ids of the answer; null when there was none, or the service was busy or away.
   */
  async #attempt(format: string, body: string, idempotency: Record<string, string>): Promise<string[] | null> {
    const { org, key } = this.#client.address;
    const answer = await this.#client.ask('POST', `/orgs/${org}/ingest/${format}`, {
      headers: { 'X-Org-Api-Key': key, 'X-Org-Id': org, ...idempotency },
      body,
    });
    if (answer === null) return null;
    if (answer.status === 200) {
      const { data } = JSON.parse(answer.text) as { data: { event_id: string; events?: { event_id: string }[] } };
      return data.events?.map(({ event_id }) => event_id) ?? [data.event_id];
    }
    // 409: the first attempt under this key may still be in flight.
    if (answer.status < 500 && answer.status !== 429 && answer.status !== 409)
      this.faults.push(`${format}: ${answer.status} ${answer.text.slice(0, 200)}`);
    return null;
  }
}
