// The organization and its plan. Name, plan and deletion belong to the operator.
import type { ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, money } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { CopyButton } from '../../ui/copy_button.tsx';
import { Moment } from '../../ui/moment.tsx';
import costs from '../costs/costs.module.css';
import { Loaded, Section } from './parts.tsx';
import styles from './settings.module.css';
import { useOrgRecord } from './settings_api.ts';

/** The tab. */
export default function PlanTab(): ReactElement {
  const { org_id, can } = useOrganization();
  const org = useOrgRecord();
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}`);
  return (
    <div className={costs.tab}>
      <Section title="Organization">
        <Loaded query={org} what="the organization" rows={4}>
          {({ name, owner, created_at }) => (
            <dl className={styles.facts}>
              <dt>Name</dt>
              <dd>{oneLine(name)}</dd>
              <dt>Id</dt>
              <dd>
                <code>{org_id}</code> <CopyButton text={org_id} label="Copy organization id" />
              </dd>
              <dt>Owner</dt>
              <dd>{oneLine(owner.email)}</dd>
              <dt>Created</dt>
              <dd>
                <Moment at={created_at} form="full" />
              </dd>
            </dl>
          )}
        </Loaded>
        <p className={costs.note}>
          The operator of the service names, plans and deletes organizations. An owner transfers the ownership under{' '}
          <Link href={`/o/${encodeURIComponent(org_id)}/settings/members`}>Members</Link>.
        </p>
      </Section>
      {can('billing:view') ? (
        <Section title="Plan and limits">
          <Loaded query={org} what="the plan" rows={4}>
            {(data) => <Plan org={data} />}
          </Loaded>
        </Section>
      ) : (
        <p className={costs.note}>Admins and owners see the plan and its limits.</p>
      )}
    </div>
  );
}

type Org = NonNullable<ReturnType<typeof useOrgRecord>['data']>;

function Plan({ org }: { org: Org }): ReactElement {
  const { can, org_id } = useOrganization();
  const { plan_name, overage_budget_usd, effective_rate_limits: limits } = org;
  const rate = (words: (of: NonNullable<typeof limits>) => ReactNode): ReactNode =>
    limits === null || limits === undefined ? 'Unlimited' : words(limits);
  return (
    <>
      <dl className={styles.facts}>
        <dt>Plan</dt>
        <dd>{plan_name}</dd>
        <dt>Ingest</dt>
        <dd>{rate(({ ingest_per_minute }) => `${count(ingest_per_minute)} requests a minute`)}</dd>
        <dt>Other requests</dt>
        <dd>{rate(({ api_per_minute }) => `${count(api_per_minute)} requests a minute`)}</dd>
        <dt>At once</dt>
        <dd>{rate(({ burst }) => `${count(burst)} requests`)}</dd>
        <dt>Overage</dt>
        <dd>
          {overage_budget_usd === null || overage_budget_usd === undefined
            ? 'None: ingest is rejected once a hard limit is reached'
            : `Up to ${money(overage_budget_usd)} beyond a hard limit`}
        </dd>
      </dl>
      {can('costs:read') && (
        <p>
          <Link href={`/o/${encodeURIComponent(org_id)}/costs/budgets`}>Budgets and their use</Link>
        </p>
      )}
      <p className={costs.small}>Pages of the portal have a rate of their own and take nothing from these limits.</p>
    </>
  );
}
