// The addresses of the portal's pages. The server answers them with the page, with status 200 for an address of the
// list and 404 for any other address below the same prefixes; the browser code builds its routes on the same list.
// Pure, so that both sides import it.

export interface PortalPage {
  /** Address; a segment that begins with a colon stands for any segment. */
  path: string;
  /**
   * File of the screen below web/screens/, without its ending. The page preloads its chunk, if the build has one.
   */
  screen: string;
}

const ORG = '/o/:org_id';
const page = (path: string, screen: string): PortalPage => ({ path, screen });

/** Every page of the portal. The first path that matches is taken. */
export const PORTAL_PAGES: readonly PortalPage[] = [
  page('/', 'home/home_screen'),
  page('/login', 'login/login_screen'),
  page('/invite', 'invite/invite_screen'),
  page('/transfer', 'transfer/transfer_screen'),
  page('/operator', 'operator/operator_screen'),
  page('/operator/:section', 'operator/operator_screen'),
  page(ORG, 'home/home_screen'),
  page(`${ORG}/start`, 'start/start_screen'),
  page(`${ORG}/traces`, 'traces/traces_screen'),
  page(`${ORG}/traces/:trace_id`, 'trace/trace_screen'),
  page(`${ORG}/compare/:a/:b`, 'compare/compare_screen'),
  page(`${ORG}/sessions`, 'sessions/sessions_screen'),
  page(`${ORG}/sessions/:id`, 'sessions/session_screen'),
  page(`${ORG}/users`, 'sessions/users_screen'),
  page(`${ORG}/users/:id`, 'sessions/user_screen'),
  page(`${ORG}/search`, 'search/search_screen'),
  page(`${ORG}/costs`, 'costs/costs_screen'),
  page(`${ORG}/costs/:section`, 'costs/costs_screen'),
  page(`${ORG}/evals`, 'evals/evals_screen'),
  page(`${ORG}/evals/:eval_id`, 'evals/eval_screen'),
  page(`${ORG}/evals/compare/:a/:b`, 'evals/compare_screen'),
  page(`${ORG}/judges`, 'judges/judges_screen'),
  page(`${ORG}/judges/new`, 'judges/new_judge_screen'),
  page(`${ORG}/judges/:judge_id`, 'judges/judge_screen'),
  page(`${ORG}/datasets`, 'datasets/datasets_screen'),
  page(`${ORG}/datasets/:dataset_id`, 'datasets/dataset_screen'),
  page(`${ORG}/prompts`, 'prompts/prompts_screen'),
  page(`${ORG}/prompts/:name`, 'prompts/prompt_screen'),
  page(`${ORG}/annotate`, 'annotate/annotate_screen'),
  page(`${ORG}/annotate/:queue_id`, 'annotate/queue_screen'),
  page(`${ORG}/annotate/:queue_id/label`, 'annotate/label_screen'),
  page(`${ORG}/monitors`, 'monitors/monitors_screen'),
  page(`${ORG}/monitors/new`, 'monitors/new_monitor_screen'),
  page(`${ORG}/monitors/:monitor_id`, 'monitors/monitor_screen'),
  page(`${ORG}/incidents`, 'incidents/incidents_screen'),
  page(`${ORG}/incidents/:incident_id`, 'incidents/incident_screen'),
  page(`${ORG}/agents`, 'agents/agents_screen'),
  page(`${ORG}/agents/:agent_id`, 'agents/agent_screen'),
  page(`${ORG}/webhooks`, 'webhooks/webhooks_screen'),
  page(`${ORG}/webhooks/dead-letters`, 'webhooks/letters_screen'),
  page(`${ORG}/webhooks/:id`, 'webhooks/webhook_screen'),
  page(`${ORG}/settings`, 'settings/settings_screen'),
  page(`${ORG}/settings/:section`, 'settings/settings_screen'),
  page(`${ORG}/audit`, 'audit/audit_screen'),
  page(`${ORG}/jobs`, 'jobs/jobs_screen'),
  page(`${ORG}/jobs/:job_id`, 'jobs/job_screen'),
  page(`${ORG}/shared`, 'shared/shared_screen'),
  page(`${ORG}/me`, 'me/me_screen'),
];

/** First segments of the portal's addresses; no other part of the service serves an address below them. */
const PREFIXES: ReadonlySet<string> = new Set(PORTAL_PAGES.map(({ path }) => path.split('/')[1] ?? ''));
const SEGMENTS = PORTAL_PAGES.map((known) => ({ known, parts: partsOf(known.path) }));

/** The segments of an address; a slash at its end makes no difference. */
function partsOf(path: string): string[] {
  return path.split('/').filter((part, at, all) => at > 0 && !(part === '' && at === all.length - 1));
}

/** Returns true for an address of the portal, whether or not it is one of its pages. */
export const isPortalPath = (path: string): boolean => PREFIXES.has(path.split('/')[1] ?? '');

/**
 * Returns the page at an address; null where the portal has none.
 * @param path path of a URL, without query and fragment
 */
export function portalPageOf(path: string): PortalPage | null {
  const parts = partsOf(path);
  const found = SEGMENTS.find(
    ({ parts: wanted }) =>
      wanted.length === parts.length &&
      wanted.every((want, at) => (want.startsWith(':') ? parts[at] !== '' : want === parts[at])),
  );
  return found?.known ?? null;
}
