// The dead letters of all endpoints, or of the one that the address names.
import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Field, Select } from '../../ui/field.tsx';
import { codec, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { DeadLetters } from './dead_letters.tsx';
import { webhooksQuery } from './webhook_data.ts';

const CODEC = codec({ webhook_id: text() });

/** The page. */
export default function LettersScreen(): ReactElement {
  const { org_id } = useOrganization();
  const [{ webhook_id }, change] = useSearchState(CODEC);
  const { data } = useInfiniteQuery(webhooksQuery(org_id));
  const endpoints = data?.pages.flatMap((page) => page.data) ?? [];
  const chosen = endpoints.find((one) => one.webhook_id === webhook_id);
  const query = webhook_id === '' ? '' : `?${new URLSearchParams({ webhook_id })}`;
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/webhooks/dead-letters${query}`);
  return (
    <div className={lists.page}>
      <Field label="Endpoint">
        {(control) => (
          <Select
            {...control}
            value={webhook_id}
            onChange={({ target }) => {
              change({ webhook_id: target.value });
            }}
          >
            <option value="">All endpoints</option>
            {endpoints.map((one) => (
              <option key={one.webhook_id} value={one.webhook_id}>
                {oneLine(one.url)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <DeadLetters
        webhook_id={webhook_id}
        enabled={chosen?.enabled ?? true}
        nameOf={(id) => endpoints.find((one) => one.webhook_id === id)?.url ?? id}
      />
    </div>
  );
}
