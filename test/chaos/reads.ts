// Reads of an organization under load: lists, one trace, a search, sums. Each answer must be a 200.
import { Client, pause } from './client.ts';
import type { StackAddress } from './stack.ts';

/** Milliseconds between two reads. */
const EVERY_MS = 100;

export class Reads {
  readonly #client: Client;
  /** Answers that no retry of the caller can fix. */
  readonly faults: string[] = [];
  #turn = 0;
  #stopped = true;
  #loop: Promise<void> = Promise.resolve();

  constructor(address: StackAddress) {
    this.#client = new Client(address);
  }

  start(): void {
    this.#stopped = false;
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
  }

  async #run(): Promise<void> {
    let trace = '';
    while (!this.#stopped) {
      const paths = [
        '/v1/traces?limit=20',
        ...(trace === '' ? [] : [`/v1/traces/${trace}`]),
        '/v1/spans/search?q=the&limit=10',
        '/v1/cost/series',
        '/v1/judges',
      ];
      const text = await this.#read(paths[this.#turn % paths.length] ?? '/v1/traces');
      this.#turn += 1;
      trace = /"trace_id":"([^"]+)"/.exec(text)?.[1] ?? trace;
      await pause(EVERY_MS);
    }
  }

  async #read(path: string): Promise<string> {
    const { org, key } = this.#client.address;
    const answer = await this.#client.ask('GET', path, { headers: { 'X-Org-Api-Key': key, 'X-Org-Id': org } });
    if (answer === null) return '';
    if (answer.status >= 400 && answer.status < 500 && answer.status !== 429)
      this.faults.push(`GET ${path}: ${answer.status} ${answer.text.slice(0, 200)}`);
    return answer.status === 200 ? answer.text : '';
  }
}
