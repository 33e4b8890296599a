// One prompt: its versions as a line in time, the template or what changed between two versions, the
// usage by version, and the playground.
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { useLocation } from 'wouter';
import { send } from '../../client/api.ts';
import { deleteThing } from '../../client/deleted_thing.ts';
import { queryClient } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { toast } from '../../ui/toast.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import { LabelsDialog } from './labels_dialog.tsx';
import { Playground } from './playground/playground.tsx';
import { usePlayground } from './playground/use_playground.ts';
import { type Prompt, promptPath, promptQuery, refreshPrompts, usageQuery } from './prompt_api.ts';
import styles from './prompts.module.css';
import { promptUrl, type PromptState } from './prompts_url.ts';
import { SavePrompt } from './save_prompt.tsx';
import { TemplateView } from './template_view.tsx';
import { UsageTable } from './usage_table.tsx';
import { VersionList } from './version_list.tsx';

/** The page. */
export default function PromptScreen(): ReactElement {
  const { org_id } = useOrganization();
  const name = useRouteParams()('name');
  const [state] = useSearchState(promptUrl);
  usePageTitle(name);
  const { version } = state;
  usePageRequest(
    `/v1/prompts/${encodeURIComponent(name)}${version === '' ? '' : `?version=${encodeURIComponent(version)}`}`,
  );
  const prompt = useQuery({ ...promptQuery(org_id, name, version), placeholderData: (before) => before });
  const { data, error } = prompt;
  if (error !== null)
    return (
      <div className={styles.page}>
        <ErrorPanel
          error={error}
          what="the prompt"
          onRetry={() => {
            void prompt.refetch();
          }}
        />
      </div>
    );
  if (data === undefined)
    return (
      <div className={styles.page}>
        <Skeleton rows={12} height={20} />
      </div>
    );
  return <PromptPage key={data.data.name} prompt={data.data} />;
}

function usePromptUsage(name: string) {
  const { org_id, can } = useOrganization();
  return useQuery({ ...usageQuery(org_id, name), enabled: can('traces:read') });
}

type Layer = 'version' | 'labels' | 'delete' | null;

/** The buttons of those who may change prompts. */
function PromptActions({ onOpen }: { onOpen: (layer: Layer) => void }): ReactElement {
  const actions = [
    { layer: 'version', keys: 'n', text: 'New version' },
    { layer: 'labels', keys: 'l', text: 'Edit labels' },
    { layer: 'delete', text: 'Delete prompt' },
  ] as const;
  return (
    <div className={styles.line}>
      {actions.map(({ layer, text, ...more }) => (
        <Button
          key={layer}
          {...(layer === 'delete' ? { look: 'quiet' } : {})}
          {...more}
          onClick={() => {
            onOpen(layer);
          }}
        >
          {text}
        </Button>
      ))}
    </div>
  );
}

function PromptPage({ prompt }: { prompt: Prompt }): ReactElement {
  const { org_id, can } = useOrganization();
  const [state, change] = useSearchState(promptUrl);
  const [layer, setLayer] = useState<Layer>(null);
  const usage = usePromptUsage(prompt.name);
  const path = promptPath(org_id, prompt.name);
  const mayWrite = can('prompts:write');
  const close = (): void => {
    setLayer(null);
  };
  const show = (version: string): void => {
    change({ version, against: prompt.version, view: 'template' });
  };
  usePromptKeys(prompt, state, change, (opened) => {
    if (mayWrite) setLayer(opened);
  });
  return (
    <div className={styles.page}>
      <div className={styles.section}>
        {mayWrite && <PromptActions onOpen={setLayer} />}
        <VersionList
          versions={prompt.versions}
          shown={prompt.version}
          against={state.against}
          usage={usage.data?.data}
          hrefOf={(patch) => {
            const query = promptUrl.change(location.search, { ...patch, view: 'template' });
            return query === '' ? path : `${path}?${query}`;
          }}
        />
      </div>
      <div className={styles.section}>
        <Views prompt={prompt} usage={usage} onSaved={show} />
      </div>
      {layer === 'version' && (
        <SavePrompt
          name={prompt.name}
          draft={{ template: prompt.template, model: prompt.model ?? '' }}
          onClose={close}
          onSaved={show}
        />
      )}
      {layer === 'labels' && <LabelsDialog prompt={prompt} onClose={close} />}
      {layer === 'delete' && <DeletePrompt prompt={prompt} onClose={close} />}
    </div>
  );
}

interface ViewsProps {
  prompt: Prompt;
  usage: ReturnType<typeof usePromptUsage>;
  onSaved: (version: string) => void;
}

/** The tabs and the chosen one. The playground keeps its inputs and answers while another is shown. */
function Views({ prompt, usage, onSaved }: ViewsProps): ReactElement {
  const { can } = useOrganization();
  const [state, change] = useSearchState(promptUrl);
  const playground = usePlayground(prompt, state, change);
  return (
    <Tabs
      label="Views of the prompt"
      tabs={tabsFor(can)}
      selected={state.view}
      onSelect={(id) => {
        change({ view: promptUrl.parse(`view=${id}`).view });
      }}
    >
      {state.view === 'template' && <TemplateView prompt={prompt} against={state.against} />}
      {state.view === 'usage' && <UsagePanel usage={usage} name={prompt.name} />}
      {state.view === 'playground' && <Playground prompt={prompt} playground={playground} onSaved={onSaved} />}
    </Tabs>
  );
}

/** Returns the tabs that the person may use. */
const tabsFor = (can: (permission: string) => boolean) => [
  { id: 'template', label: 'Template', keys: '1' },
  ...(can('traces:read') ? [{ id: 'usage', label: 'Usage', keys: '2' }] : []),
  ...(can('gateway:invoke') ? [{ id: 'playground', label: 'Playground', keys: '3' }] : []),
];

function usePromptKeys(
  prompt: Prompt,
  { against }: PromptState,
  change: (patch: Partial<PromptState>) => void,
  onOpen: (layer: 'version' | 'labels') => void,
): void {
  const { can } = useOrganization();
  const { versions, version } = prompt;
  const at = versions.findIndex((one) => one.version === version);
  const move = (step: number): void => {
    const next = versions[at + step];
    if (next !== undefined) change({ version: next.version, against: '' });
  };
  useKeys('Prompt', [
    {
      keys: ['j', 'ArrowDown'],
      label: 'Show the version before',
      silent: true,
      run: () => {
        move(1);
      },
    },
    {
      keys: ['k', 'ArrowUp'],
      label: 'Show the version after',
      silent: true,
      run: () => {
        move(-1);
      },
    },
    {
      keys: 'c',
      label: 'Compare with the version before',
      run: () => {
        const before = versions[at + 1];
        if (before !== undefined) change({ against: against === '' ? before.version : '', view: 'template' });
      },
    },
    {
      keys: 'n',
      label: 'Save a new version',
      run: () => {
        onOpen('version');
      },
    },
    {
      keys: 'l',
      label: 'Edit labels',
      run: () => {
        onOpen('labels');
      },
    },
    ...tabsFor(can).map(({ id, label, keys }) => ({
      keys,
      label: `Show ${label.toLowerCase()}`,
      run: () => {
        change({ view: promptUrl.parse(`view=${id}`).view });
      },
    })),
  ]);
}

function UsagePanel({ usage, name }: { usage: ReturnType<typeof usePromptUsage>; name: string }): ReactElement {
  const { org_id } = useOrganization();
  if (usage.error !== null && usage.data === undefined)
    return (
      <ErrorPanel
        error={usage.error}
        what="the usage"
        onRetry={() => {
          void usage.refetch();
        }}
      />
    );
  if (usage.data === undefined) return <Skeleton rows={6} height={20} />;
  return (
    <UsageTable
      usage={usage.data.data}
      tracesOf={(version) =>
        `/o/${encodeURIComponent(org_id)}/traces?${new URLSearchParams({
          prompt_name: name,
          ...(version === null ? {} : { prompt_version: version }),
          t: '7d',
        })}`
      }
    />
  );
}

function DeletePrompt({ prompt, onClose }: { prompt: Prompt; onClose: () => void }): ReactElement {
  const { org_id } = useOrganization();
  const [, navigate] = useLocation();
  const { name, versions } = prompt;
  const remove = useMutation({
    mutationFn: () =>
      deleteThing(queryClient, name, () =>
        send(org_id, 'delete', '/v1/prompts/{name}', { params: { path: { name } } }),
      ),
    onSuccess: async () => {
      onClose();
      navigate(`/o/${encodeURIComponent(org_id)}/prompts`);
      toast({ text: `The prompt ${name} is deleted.` });
      await refreshPrompts(org_id, name);
    },
  });
  return (
    <Dialog
      title={`Delete ${name}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="danger"
            busy={remove.isPending}
            onClick={() => {
              remove.mutate();
            }}
          >
            Delete {versions.length} {versions.length === 1 ? 'version' : 'versions'}
          </Button>
        </>
      }
    >
      {remove.error !== null && <ErrorPanel error={remove.error} what="the deletion" />}
      <p>Every version is deleted. Traces and evals keep the name of the version that they used.</p>
    </Dialog>
  );
}
