// How stored calls get the current prices: the operator's page and the operator's request, both with the range filled in.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { CopyButton } from '../../ui/copy_button.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import panels from '../home/home.module.css';
import styles from './costs.module.css';
import { costsUrl } from './costs_url.ts';

const DAY_MS = 86_400_000;

interface RepricingProps {
  /** Model whose price was saved last; null for all models. */
  model: string | null;
}

/** The section. */
export function Repricing({ model }: RepricingProps): ReactElement {
  const { org_id } = useOrganization();
  const [{ days }] = useSearchState(costsUrl);
  const tomorrow = (Math.floor(Date.now() / DAY_MS) + 1) * DAY_MS;
  const at = (ms: number): string => new Date(ms).toISOString().replace('.000', '');
  const body = {
    org_id,
    since: at(tomorrow - days * DAY_MS),
    until: at(tomorrow),
    ...(model === null ? {} : { model }),
  };
  const page = new URLSearchParams({
    org: org_id,
    since: body.since.slice(0, 10),
    until: at(tomorrow - DAY_MS).slice(0, 10),
    ...(model === null ? {} : { model }),
  });
  const command = [
    `curl -s -X POST '${location.origin}/admin/reprice' \\`,
    `  -H "Authorization: Bearer $ADMIN_TOKEN" -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body).replaceAll("'", '\\u0027')}'`,
  ].join('\n');
  return (
    <section className={panels.section}>
      <h2>Stored calls</h2>
      <p className={styles.note}>
        Stored calls keep the price that was used. The operator of the service corrects {model ?? 'all models'} of the
        last {days} days, on the operator’s page after a login with the operator token, or with the request below:
        spans, traces, costs and budgets then agree. Costs that senders gave stay. The answer says how many calls
        changed, and by how much.
      </p>
      <p>
        <Link href={`/operator/repricing?${page}`}>Reprice on the operator’s page</Link>
      </p>
      <pre className={styles.command} tabIndex={0} aria-label="Command that reprices stored calls">
        {command}
      </pre>
      <CopyButton text={command} label="Copy command" labelled />
    </section>
  );
}
