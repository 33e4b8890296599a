// Load that remembers: each event is sent until it is acknowledged, with the same bytes each time, and what must be in the
// store afterwards is written down. An attempt whose answer was lost may have been stored: the repeat must not count.
import { eventHex, partitionOf } from '../../pipeline/domain/ids.ts';
import { usdToPico } from '../../pipeline/domain/money.ts';
import { seededRandom, Vocabulary } from '../bench/vocabulary.ts';
import type { StackAddress } from './stack.ts';

type Json = Record<string, unknown>;

/** What the store must hold of all acknowledged events. */
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

const LANES = 12;
const RETRY_MS = 60;
const REQUEST_MS_MAX = 5000;
const TRACE_EVENTS_MAX = 8;
const WORDS = 60;

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

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
  /** Attempts that were sent again. */
  retries = 0;
  /** Answers that no retry can mend, and ids that differ from what the content says. */
  readonly faults: string[] = [];
  readonly #address: StackAddress;
  readonly #rate: number;
  readonly #vocabulary = new Vocabulary(20_000);
  readonly #random = seededRandom(Date.now());
  readonly #run = Date.now().toString(16);
  #traces = 0;
  #begun = 0;
  #taken = 0;
  #stopped = false;
  #lanes: Promise<void>[] = [];

  constructor(address: StackAddress, rate: number) {
    this.#address = address;
    this.#rate = rate;
  }

  get acknowledged(): number {
    return this.expected.spans.size;
  }

  start(): void {
    this.#begun = performance.now();
    this.#lanes = Array.from({ length: LANES }, () => this.#lane());
  }

  /** Ends the load; resolves when everything that was begun is acknowledged. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#lanes);
  }

  /** One event for a partition of the log, acknowledged; gives its trace. */
  async probe(partition: number, partitions: number): Promise<string> {
    let trace = this.#newTrace();
    while (partitionOf(this.#address.org, trace, partitions) !== partition) trace = this.#newTrace();
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
    return `trace-${this.#run}-${String(this.#traces)}`;
  }

  /** A trace in several requests of different formats; its root comes first, last, or never. */
  async #sendTrace(): Promise<void> {
    const trace = this.#newTrace();
    const root = `root-${trace}`;
    const events = 1 + (this.#random() % TRACE_EVENTS_MAX);
    this.#taken += events;
    const rootAt = this.#random() % 3;
    if (rootAt === 0) await this.#deliver('custom', [this.#custom(trace, root, null)]);
    const batch: Made[] = [];
    for (let i = 1; i < events; i += 1) {
      const kind = this.#random() % 4;
      if (kind === 0) await this.#deliver('chatcompletion', [this.#call(trace, root)]);
      else if (kind === 1) await this.#deliver('chain', [this.#chain(trace, root)]);
      else batch.push(this.#custom(trace, `${root}-${String(i)}`, root));
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
      attributes: { agent_id: `agent_${String(this.#random() % 5)}`, cost_usd: cost, nonce: this.#random() },
    };
  }

  #custom(trace: string, span: string, parent: string | null): Made {
    return {
      event: { name: 'step', span_id: span, ...this.#common(trace, parent) },
      spans: 1,
      texts: 0,
      input_tokens: 0,
      output_tokens: 0,
    };
  }

  #call(trace: string, parent: string): Made {
    const [input, output] = [this.#random() % 5000, this.#random() % 900];
    const request = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: this.#text() }] };
    const response = {
      choices: [{ index: 0, message: { role: 'assistant', content: this.#text() } }],
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    };
    return { event: { request, response, ...this.#common(trace, parent) }, spans: 1, texts: 1, input_tokens: input, output_tokens: output };
  }

  #chain(trace: string, parent: string): Made {
    const [input, output] = [this.#random() % 3000, this.#random() % 400];
    const steps = Array.from({ length: this.#random() % 4 }, () => [`look up ${this.#text()}`, this.#text()]);
    const request = { model: 'gpt-4o', messages: [{ role: 'user', content: this.#text() }] };
    const response = {
      generations: [[{ text: this.#text() }]],
      llm_output: { token_usage: { prompt_tokens: input, completion_tokens: output } },
    };
    return {
      event: {
        request,
        response,
        chain_name: 'chaos-chain',
        agent_name: 'chaos',
        intermediate_steps: steps,
        ...this.#common(trace, parent),
      },
      spans: 1 + steps.length,
      texts: 1 + steps.length,
      input_tokens: input,
      output_tokens: output,
    };
  }

  #text(): string {
    return this.#vocabulary.text(WORDS, this.#random);
  }

  async #deliver(format: string, made: readonly Made[]): Promise<void> {
    const body = JSON.stringify(format === 'custom' ? { events: made.map(({ event }) => event) } : made[0]?.event);
    const hexes = made.map(({ event }) => eventHex(JSON.stringify(event)));
    for (let attempt = 0; ; attempt += 1) {
      const ids = await this.#attempt(format, body);
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

  /** Event ids of the answer; null where there was none, or the service was busy or away. */
  async #attempt(format: string, body: string): Promise<string[] | null> {
    const { url, org, key } = this.#address;
    try {
      const response = await fetch(`${url}/orgs/${org}/ingest/${format}`, {
        method: 'POST',
        headers: { 'X-Org-Api-Key': key, 'X-Org-Id': org, 'Content-Type': 'application/json' },
        body,
        signal: AbortSignal.timeout(REQUEST_MS_MAX),
      });
      const text = await response.text();
      if (response.status === 200) {
        const { data } = JSON.parse(text) as { data: { event_id: string; events?: { event_id: string }[] } };
        return data.events?.map(({ event_id }) => event_id) ?? [data.event_id];
      }
      if (response.status < 500 && response.status !== 429) this.faults.push(`${format}: ${String(response.status)} ${text.slice(0, 200)}`);
      return null;
    } catch {
      return null;
    }
  }
}
