// Assembles the parts that serve analysts in one API process.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
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
  clickhouse: ClickHouse;
  /** Name of the ClickHouse cluster, if there is one. */
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

export function openAnalysts({ analysts, clickhouse, cluster, hasOrg, now, onProblem }: AnalystParts): Analysts {
  const engine = new AnalystEngine(clickhouse);
  const confinement = new Confinement({
    engine,
    database: clickhouse.database,
    // Anyone who knows that this password is empty knows the password of the analysts' user, which
    // is derived from it.
    prepare: () =>
      clickhouse.derived((password) => password) === ''
        ? Promise.resolve("the service's own user of ClickHouse has no password")
        : ensureOrgViews(clickhouse, cluster),
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
