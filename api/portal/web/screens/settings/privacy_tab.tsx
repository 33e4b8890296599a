// Privacy: the rules by which personal data is redacted before it is stored, and the erasure of a person.
import type { ReactElement } from 'react';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import costs from '../costs/costs.module.css';
import { EraseSection } from './erase_section.tsx';
import { Loaded, Section } from './parts.tsx';
import { usePiiPolicy } from './pii_api.ts';
import { PiiForm } from './pii_form.tsx';

/** The tab. */
export default function PrivacyTab(): ReactElement {
  const { org_id } = useOrganization();
  const policy = usePiiPolicy();
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/pii-policy`);
  return (
    <div className={costs.tab}>
      <Section title="Redaction" change={{ permission: 'pii:edit', actions: ['pii_policy.update'] }}>
        <p className={costs.note}>
          Personal data is replaced before anything is stored: in prompts, responses, names, tags, attributes, user_id,
          session_id and scores. A change applies within a second to events that arrive afterwards; stored data stays as
          it is.
        </p>
        <Loaded query={policy} what="the PII policy" rows={8}>
          {(stored) => <PiiForm key={JSON.stringify(stored)} stored={stored} />}
        </Loaded>
      </Section>
      <EraseSection />
    </div>
  );
}
