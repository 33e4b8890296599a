// Assembles the parts that serve analysts in one API process.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Store } from '../../../sql/client/shards.ts';
import { ensureOrgViews } from '../../../sql/analysts/org_analyst.ts';
import { ORG_ANALYST } from '../../../sql/analysts/org_views.ts';
import { countRunningQueries } from '../../../sql/stores/engine.ts';
import type { Route } from '../../http/route.ts';
import { Confinement } from './confinement.ts';
import { AnalystEngine, orgMark } from './engine.ts';
import type { AnalystsDeps } from './handler.ts';
import { analystRoutes } from './routes.ts';
import { Running } from './running.ts';
import type { AnalystStore } from './store.ts';

export interface AnalystParts {
  analysts: AnalystStore;
  store: Store;
  /** Name of the ClickHouse cluster that replicates the store, if there is one. */
  cluster: string | undefined;
  hasOrg: (org_id: string) => boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
}

export interface Analysts {
  routes: Route[];
  handler: Omit<AnalystsDeps, 'edge'>;
  close: () => void;
}

export function openAnalysts({ analysts, store, cluster, hasOrg, now, onProblem }: AnalystParts): Analysts {
  const { clickhouse } = store;
  const engine = new AnalystEngine(clickhouse, store.cluster !== null);
  const confinement = new Confinement({
    engine,
    database: clickhouse.database,
    // Anyone who knows that this password is empty knows the password of the analysts' user, which
    // is derived from it.
    prepare: () =>
      clickhouse.derived((password) => password) === ''
        ? Promise.resolve("the service's own user of ClickHouse has no password")
        : prepareShards(store, cluster),
    now: () => performance.now(),
    onEscape: (what) => {
      onProblem('ClickHouse does not confine the analysts of an organization', new Error(what));
    },
  });
  const running = new Running();
  analysts.onRemoved((user) => {
    running.cancel(user);
  });
  return {
    routes: analystRoutes({ analysts, confinement, hasOrg, now }),
    handler: {
      engine,
      confinement,
      running,
      room: { countInEngine: (org_id) => countRunningQueries(clickhouse, ORG_ANALYST, `-${orgMark(org_id)}-`) },
      login: (user, hash) => {
        const record = analysts.login(user, hash);
        return record !== null && hasOrg(record.org_id) ? record : null;
      },
    },
    close: () => {
      running.cancelAll();
      engine.close();
    },
  };
}

/** Returns null once every shard has the users and views, else the reason of one that does not let the service make them. */
async function prepareShards({ shards, cluster }: Store, replicated: string | undefined): Promise<string | null> {
  for (const { clickhouse } of shards) {
    const refusal = await ensureOrgViews(clickhouse, {
      cluster: replicated,
      ...(cluster === null ? {} : { shards: cluster }),
    });
    if (refusal !== null) return refusal;
  }
  return null;
}
