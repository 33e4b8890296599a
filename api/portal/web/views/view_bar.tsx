// The tabs above a list, and the actions on the view that is shown: save, update, rename, delete.
import { type ReactElement, type Ref, useState } from 'react';
import { RequestError } from '../client/error.ts';
import { randomId } from '../client/random_id.ts';
import { useOrganization } from '../client/session.ts';
import type { ListUrl } from '../lists/list_url.ts';
import type { ChangeList } from '../lists/use_list_url.ts';
import { Button } from '../ui/button.tsx';
import { Menu } from '../ui/menu.tsx';
import { Tabs } from '../ui/tabs.tsx';
import { toast } from '../ui/toast.tsx';
import { useViewChanges, useViews } from './use_views.ts';
import { ViewDialog } from './view_dialog.tsx';
import { BUILT_IN_VIEWS, changedFrom, currentTab, queryToSave, stateOfView, type ViewTab } from './view_tabs.ts';
import styles from './view_bar.module.css';

interface ViewBarProps {
  page: string;
  state: ListUrl;
  onChange: ChangeList;
  /** True while the dialog is open; `s` opens it. */
  saving: boolean;
  onSaving: (saving: boolean) => void;
  /** The row of tabs, which `v` focuses. */
  ref?: Ref<HTMLDivElement>;
}

/** The row of views. */
export function ViewBar({ page, state, onChange, saving, onSaving, ref }: ViewBarProps): ReactElement {
  const { org_id, can } = useOrganization();
  const saved = useViews(org_id, page);
  const tabs = [...BUILT_IN_VIEWS, ...saved];
  const current = currentTab(state, tabs);
  const changed = current !== null && changedFrom(current, state);
  const own = current !== null && current.scope !== 'built_in' ? current : null;
  const changeable = own !== null && (own.scope === 'private' || can('judges:write')) ? own : null;
  return (
    <div ref={ref} className={styles.bar}>
      <Tabs
        label="Views"
        tabs={tabs.map((tab) => ({
          id: tab.view_id,
          label: <TabName tab={tab} changed={changed && tab === current} />,
        }))}
        selected={current?.view_id ?? ''}
        onSelect={(view_id) => {
          const tab = tabs.find((one) => one.view_id === view_id);
          if (tab !== undefined) onChange((now) => stateOfView(tab, now));
        }}
        aside={
          <span className={styles.actions}>
            {changeable !== null && (
              <ViewMenu page={page} view={changeable} changed={changed} state={state} onChange={onChange} />
            )}
            <Button
              look="quiet"
              icon="save"
              keys="s"
              hint="Save the filters as a view"
              onClick={() => {
                onSaving(true);
              }}
            >
              <span className={styles.word}>Save view</span>
            </Button>
          </span>
        }
      />
      {saving && (
        <ViewDialog
          page={page}
          query={queryToSave(state)}
          onClose={() => {
            onSaving(false);
          }}
          onSaved={(view_id) => {
            onSaving(false);
            onChange((now) => ({ ...now, view: view_id }));
          }}
        />
      )}
    </div>
  );
}

function TabName({ tab, changed }: { tab: ViewTab; changed: boolean }): ReactElement {
  return (
    <>
      {tab.name}
      {tab.scope === 'org' && <span className={styles.shared}> (shared)</span>}
      {changed && <span className={styles.changed}> · changed</span>}
    </>
  );
}

interface ViewMenuProps {
  page: string;
  view: ViewTab;
  changed: boolean;
  state: ListUrl;
  onChange: ChangeList;
}

function ViewMenu({ page, view, changed, state, onChange }: ViewMenuProps): ReactElement {
  const { org_id } = useOrganization();
  const { change, remove, create } = useViewChanges(org_id, page);
  const [renaming, setRenaming] = useState(false);
  const failed = (error: Error): void => {
    toast({ tone: 'error', text: error instanceof RequestError ? error.detail : error.message });
  };
  const restore = (): void => {
    const { name, query, scope } = view;
    if (scope === 'built_in') return;
    create.mutate({ name, query, scope, idempotencyKey: randomId() }, { onError: failed });
  };
  const update = (): void => {
    const done = (): void => {
      toast({
        text: `The view ${view.name} was updated.`,
        action: {
          label: 'Undo',
          run: () => {
            change.mutate({ view_id: view.view_id, query: view.query }, { onError: failed });
          },
        },
      });
    };
    change.mutate({ view_id: view.view_id, query: queryToSave(state) }, { onSuccess: done, onError: failed });
  };
  const drop = (): void => {
    const done = (): void => {
      onChange((now) => ({ ...now, view: null }));
      toast({ text: `The view ${view.name} was deleted.`, action: { label: 'Undo', run: restore } });
    };
    remove.mutate(view.view_id, { onSuccess: done, onError: failed });
  };
  return (
    <>
      <Menu
        label={`Actions of the view ${view.name}`}
        icon="more"
        look="quiet"
        align="end"
        items={[
          { label: 'Update view to the filters shown', disabled: !changed, onSelect: update },
          {
            label: 'Rename view…',
            onSelect: () => {
              setRenaming(true);
            },
          },
          { label: 'Delete view', danger: true, apart: true, onSelect: drop },
        ]}
      />
      {renaming && (
        <ViewDialog
          page={page}
          query={view.query}
          view={view}
          onClose={() => {
            setRenaming(false);
          }}
          onSaved={() => {
            setRenaming(false);
          }}
        />
      )}
    </>
  );
}
