// The newest refused ingest requests of each organization, in the memory of the API processes. A
// process that is asked for them asks all others and waits a short, bounded time. They help people
// to find what is wrong with their first requests; a restart forgets them.
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { ReportProblem } from '../platform/report_problem.ts';
import { type Refusal, refusalList, REFUSALS_SUBJECT, refusalsQuestion } from '../../schemas/signals/refusals.ts';

/** Maximum refusals of one organization, and organizations; the longest silent one is forgotten. */
export const REFUSALS_ORG_MAX = 50;
const ORGS_MAX = 200;
/** Maximum characters of a path and of a detail: some 10 MB in all. */
const PATH_CHARS_MAX = 200;
const DETAIL_CHARS_MAX = 500;
/** Wait for the answers of the other processes. */
const WAIT_MS = 300;

export class Refusals {
  readonly #nc: NatsConnection;
  readonly #onProblem: ReportProblem;
  readonly #byOrg = new Map<string, Refusal[]>();
  readonly #unsubscribe: () => void;

  constructor(nc: NatsConnection, onProblem: ReportProblem) {
    this.#nc = nc;
    this.#onProblem = onProblem;
    const asked = nc.subscribe(REFUSALS_SUBJECT, {
      callback: (error, message) => {
        if (error === null) this.#answer(message);
      },
    });
    this.#unsubscribe = () => {
      asked.unsubscribe();
    };
  }

  note(org_id: string, { path, detail, ...rest }: Refusal): void {
    const own = this.#byOrg.get(org_id) ?? [];
    own.push({ ...rest, path: path.slice(0, PATH_CHARS_MAX), detail: detail.slice(0, DETAIL_CHARS_MAX) });
    if (own.length > REFUSALS_ORG_MAX) own.shift();
    // Written again, so that the organization that was silent the longest is first.
    this.#byOrg.delete(org_id);
    this.#byOrg.set(org_id, own);
    const [silent] = this.#byOrg.keys();
    if (this.#byOrg.size > ORGS_MAX && silent !== undefined) this.#byOrg.delete(silent);
  }

  /** Returns the newest refusals of all processes that answer in time, newest first. */
  async list(org_id: string): Promise<Refusal[]> {
    const found: Refusal[] = [];
    try {
      // This process answers as well.
      const replies = await this.#nc.requestMany(REFUSALS_SUBJECT, JSON.stringify({ org_id }), {
        strategy: 'timer',
        maxWait: WAIT_MS,
      });
      for await (const reply of replies) found.push(...refusalList.parse(JSON.parse(reply.string())));
    } catch (cause) {
      this.#onProblem('refusals of other processes could not be read', cause);
      found.splice(0, found.length, ...(this.#byOrg.get(org_id) ?? []));
    }
    return found.sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, REFUSALS_ORG_MAX);
  }

  close(): void {
    if (!this.#nc.isClosed()) this.#unsubscribe();
  }

  #answer(message: Msg): void {
    try {
      const { org_id } = refusalsQuestion.parse(JSON.parse(message.string()));
      message.respond(JSON.stringify(this.#byOrg.get(org_id) ?? []));
    } catch (cause) {
      this.#onProblem(`a message on ${REFUSALS_SUBJECT} cannot be parsed`, cause);
    }
  }
}
