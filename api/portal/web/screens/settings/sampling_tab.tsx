// Sampling: the profile in force and what it kept. The operator sets it; nobody changes it here.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { type Answer, apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, duration, percent } from '../../text/format.ts';
import { Moment } from '../../ui/moment.tsx';
import costs from '../costs/costs.module.css';
import { Loaded, Section } from './parts.tsx';
import styles from './settings.module.css';

type Sampling = Answer<'/v1/sampling'>['data'];

/** The tab. */
export default function SamplingTab(): ReactElement {
  const { org_id } = useOrganization();
  const sampling = useQuery({ ...apiQuery(org_id, '/v1/sampling', {}), select: ({ data }) => data });
  usePageRequest('/v1/sampling');
  return (
    <div className={costs.tab}>
      <Section title="Sampling">
        <p className={costs.note}>
          The operator sets the profile with SERVICE_SAMPLING_PROFILE. An event that is not kept leaves its numbers and
          names, so tokens, costs and budgets are the same under every profile.
        </p>
        <Loaded query={sampling} what="sampling" rows={8}>
          {(data) => <Facts sampling={data} />}
        </Loaded>
      </Section>
      <Section title="Always kept">
        <ul>
          <li>Events whose outcome is an error or a timeout</li>
          <li>Events that last longer than {sampling.data === undefined ? '–' : duration(sampling.data.slow_ms)}</li>
          <li>Events with the attribute force_trace</li>
          <li>Loops, tool errors, stumbles, judge calls, statistical gates and MCP authentication</li>
        </ul>
      </Section>
    </div>
  );
}

function Facts({ sampling }: { sampling: Sampling }): ReactElement {
  const { profile, enabled, rate, tail, buffer, kept, summarised, traces, since } = sampling;
  return (
    <dl className={styles.facts}>
      <dt>Profile</dt>
      <dd>
        {profile}
        {!enabled && ', turned off: everything is kept'}
      </dd>
      <dt>Kept of other events</dt>
      <dd>{percent(rate)}</dd>
      <dt>Decided</dt>
      <dd>
        {tail
          ? `When the trace is complete, over all of its spans; a worker buffers up to ${count(buffer.slots)} traces`
          : 'For each event when it arrives'}
      </dd>
      <dt>Counted since</dt>
      <dd>
        <Moment at={since} form="full" />
      </dd>
      <dt>Events kept</dt>
      <dd>{keptWords(kept, kept + summarised)}</dd>
      <dt>Events summarised</dt>
      <dd>{count(summarised)}</dd>
      <dt>Traces kept</dt>
      <dd>{keptWords(traces.kept, traces.kept + traces.summarised)}</dd>
      <dt>Traces summarised</dt>
      <dd>{count(traces.summarised)}</dd>
    </dl>
  );
}

const keptWords = (part: number, whole: number): string =>
  whole === 0 ? count(part) : `${count(part)} of ${count(whole)} (${percent(part / whole)})`;
