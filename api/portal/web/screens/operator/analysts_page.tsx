// The analysts of an organization: people who query it with SQL at the address of the API. The operator creates them,
// sees their password once, and deletes them.
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { type Answer, apiQuery, send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { Moment } from '../../ui/moment.tsx';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { codec, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { formErrors } from '../costs/field_error.ts';
import { FormDialog } from './form_dialog.tsx';
import styles from './operator.module.css';
import { OrgChoice } from './org_choice.tsx';
import { orgsQuery } from './orgs_api.ts';
import { SmallTable } from '../judges/small_table.tsx';

type Analyst = Answer<'/admin/orgs/{org_id}/analysts'>['data'][number];

const CODEC = codec({ org: text() });
const analystsQuery = (org_id: string) =>
  apiQuery(null, '/admin/orgs/{org_id}/analysts', { path: { org_id }, query: { limit: 200 } });

/** The page. */
export default function AnalystsPage(): ReactElement {
  const [{ org: chosen }, change] = useSearchState(CODEC);
  const orgs = useInfiniteQuery(orgsQuery);
  const first = orgs.data?.pages[0]?.data[0]?.org_id ?? '';
  const org_id = chosen === '' ? first : chosen;
  usePageRequest(`/admin/orgs/${encodeURIComponent(org_id)}/analysts`);
  return (
    <div className={styles.page}>
      <p className={styles.note}>
        An analyst queries the documented views of one organization with SQL, at the address of this API, and sees the
        rows of that organization only.
      </p>
      <OrgChoice
        value={org_id}
        onChange={(org) => {
          change({ org });
        }}
      />
      {org_id !== '' && <Analysts key={org_id} org_id={org_id} />}
    </div>
  );
}

function Analysts({ org_id }: { org_id: string }): ReactElement {
  const [creates, setCreates] = useState(false);
  const [removes, setRemoves] = useState<string | null>(null);
  const analysts = useQuery(analystsQuery(org_id));
  const create = (
    <Button
      look="primary"
      icon="plus"
      onClick={() => {
        setCreates(true);
      }}
    >
      Create analyst
    </Button>
  );
  const refresh = (): void => void analysts.refetch();
  const rows = analysts.data?.data ?? [];
  return (
    <section className={styles.section}>
      <div className={styles.tools}>
        <h2 className={styles.grow}>Analysts of {org_id}</h2>
        {rows.length > 0 && create}
      </div>
      {analysts.data === undefined ? (
        analysts.isError ? (
          <ErrorPanel error={analysts.error} what="the analysts" onRetry={refresh} />
        ) : (
          <Skeleton rows={4} height={20} />
        )
      ) : rows.length === 0 ? (
        <EmptyState title="No analysts yet" action={create}>
          Each gets a user and a password for any client of ClickHouse over HTTP.
        </EmptyState>
      ) : (
        <Table analysts={rows} onRemove={setRemoves} />
      )}
      {creates && (
        <CreateDialog
          org_id={org_id}
          onClose={() => {
            setCreates(false);
            refresh();
          }}
        />
      )}
      {removes !== null && (
        <DeleteDialog
          org_id={org_id}
          user={removes}
          onClose={() => {
            setRemoves(null);
            refresh();
          }}
        />
      )}
    </section>
  );
}

interface TableProps {
  analysts: readonly Analyst[];
  onRemove: (user: string) => void;
}

function Table({ analysts, onRemove }: TableProps): ReactElement {
  return (
    <SmallTable
      label="Analysts"
      heads={['Name', 'User', 'Created', 'Actions']}
      rows={analysts.map(({ user, name, created_at }) => ({
        key: user,
        cells: [
          name,
          <code>{user}</code>,
          <Moment at={created_at} form="ago" />,
          <Button
            icon="trash"
            onClick={() => {
              onRemove(user);
            }}
          >
            Delete {name}
          </Button>,
        ],
      }))}
    />
  );
}

function CreateDialog({ org_id, onClose }: { org_id: string; onClose: () => void }): ReactElement {
  const [name, setName] = useState('');
  const [key, setKey] = useState(randomId);
  const create = useMutation({
    mutationFn: () =>
      send(null, 'post', '/admin/orgs/{org_id}/analysts', {
        params: { path: { org_id } },
        idempotencyKey: key,
        body: { name: name.trim() },
      }),
    onError: () => {
      setKey(randomId());
    },
  });
  if (create.data !== undefined) {
    const { user, password, url } = create.data.data;
    return (
      <SecretDialog title={`Password of ${user}`} noun="password" secret={password} onClose={onClose}>
        <p>
          Address <code>{url}</code>, user <code>{user}</code>. The password is shown now and not again.
        </p>
      </SecretDialog>
    );
  }
  const errors = formErrors(create.error, ['name']);
  return (
    <FormDialog
      title="Create analyst"
      action="Create analyst"
      isReady={name.trim() !== ''}
      isBusy={create.isPending}
      refusal={errors.form}
      onSend={create.mutate}
      onClose={onClose}
    >
      <Field label="Name" hint={`Unique in ${org_id}`} error={errors.fields.name ?? null}>
        {(control) => (
          <Input
            {...control}
            value={name}
            maxLength={100}
            onChange={({ target }) => {
              setName(target.value);
            }}
          />
        )}
      </Field>
    </FormDialog>
  );
}

function DeleteDialog(props: { org_id: string; user: string; onClose: () => void }): ReactElement {
  const { org_id, user, onClose } = props;
  const remove = useMutation({
    mutationFn: () =>
      send(null, 'delete', '/admin/orgs/{org_id}/analysts/{user}', { params: { path: { org_id, user } } }),
    onSuccess: () => {
      toast({ text: `The analyst ${user} is deleted.` });
      onClose();
    },
  });
  return (
    <FormDialog
      title={`Delete the analyst ${user}`}
      action="Delete analyst"
      danger
      isReady
      isBusy={remove.isPending}
      refusal={formErrors(remove.error, []).form}
      onSend={remove.mutate}
      onClose={onClose}
    >
      <p>Running queries are cancelled, and every process rejects the analyst within a second.</p>
    </FormDialog>
  );
}
