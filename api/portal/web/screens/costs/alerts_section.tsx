// The budget alerts: where they are sent, their thresholds, and a test of the channels.
import { type ReactElement, useState } from 'react';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import numbers from '../../ui/number_table.module.css';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import panels from '../home/home.module.css';
import { type Alerts, replacing, type Threshold, useAlerts, useSaveAlerts, useTestAlerts } from './alert_api.ts';
import { ChannelsDialog, ThresholdDialog } from './alert_dialogs.tsx';
import { WORDS } from './amounts.ts';
import type { Budget } from './budget_api.ts';
import styles from './costs.module.css';

const CHANNELS = { email: 'e-mail to the owner', webhook: 'webhook' } as const;

type Open = 'channels' | { threshold: Threshold | null } | { secret: string } | null;

/** The section. */
export function AlertsSection({ budget }: { budget: Budget | undefined }): ReactElement {
  const { can } = useOrganization();
  const alerts = useAlerts();
  const [open, setOpen] = useState<Open>(null);
  const { data } = alerts;
  const mayEdit = can('budgets:write');
  return (
    <section className={panels.section}>
      <div className={styles.head}>
        <h2>Alerts</h2>
        {mayEdit && data !== undefined && (
          <Button
            icon="plus"
            onClick={() => {
              setOpen({ threshold: null });
            }}
          >
            Add alert
          </Button>
        )}
      </div>
      {data === undefined && alerts.error !== null && (
        <ErrorPanel
          error={alerts.error}
          what="the alerts"
          onRetry={() => {
            void alerts.refetch();
          }}
        />
      )}
      {data === undefined && alerts.error === null && <Skeleton rows={3} height={20} />}
      {data !== undefined && (
        <>
          <Channels
            alerts={data}
            onEdit={
              mayEdit
                ? () => {
                    setOpen('channels');
                  }
                : null
            }
          />
          <Thresholds
            alerts={data}
            budget={budget}
            onEdit={
              mayEdit
                ? (threshold) => {
                    setOpen({ threshold });
                  }
                : null
            }
          />
        </>
      )}
      {open !== null && data !== undefined && <OpenDialog open={open} alerts={data} onOpen={setOpen} />}
    </section>
  );
}

interface OpenDialogProps {
  open: Exclude<Open, null>;
  alerts: Alerts;
  onOpen: (open: Open) => void;
}

function OpenDialog({ open, alerts, onOpen }: OpenDialogProps): ReactElement {
  const close = (): void => {
    onOpen(null);
  };
  if (open === 'channels')
    return (
      <ChannelsDialog
        alerts={alerts}
        onClose={close}
        onSecret={(secret) => {
          onOpen({ secret });
        }}
      />
    );
  if ('secret' in open)
    return (
      <SecretDialog title="Signing secret of the alert webhook" secret={open.secret} onClose={close}>
        <p>The receiver verifies each alert with this secret. It is shown now and not again.</p>
      </SecretDialog>
    );
  return <ThresholdDialog threshold={open.threshold} onClose={close} />;
}

function Channels({ alerts, onEdit }: { alerts: Alerts; onEdit: (() => void) | null }): ReactElement {
  const test = useTestAlerts();
  const { channels, webhook_url } = alerts;
  return (
    <>
      <div className={styles.line}>
        <span className={styles.grow}>
          {channels.length === 0
            ? 'No channel is set, so alerts reach nobody.'
            : `Sent by ${channels.map((channel) => CHANNELS[channel]).join(' and ')}`}
          {webhook_url !== null && channels.includes('webhook') && (
            <>
              {' '}
              <code>{webhook_url}</code>
            </>
          )}
        </span>
        {onEdit !== null && (
          <Button onClick={onEdit}>{channels.length === 0 ? 'Set channels' : 'Edit channels'}</Button>
        )}
        {onEdit !== null && channels.length > 0 && (
          <Button
            icon="play"
            busy={test.isPending}
            onClick={() => {
              test.mutate();
            }}
          >
            Test alert
          </Button>
        )}
      </div>
      {test.data !== undefined && (
        <p className={styles.small} role="status">
          Test alert <code>{test.data.event_id}</code> queued for{' '}
          {test.data.sent.map((channel) => CHANNELS[channel]).join(' and ') || 'no channel'} at{' '}
          <Moment at={test.data.at} form="time" />.
        </p>
      )}
      {test.error !== null && (
        <p className={styles.error} role="alert">
          The test alert was not sent: {test.error instanceof RequestError ? test.error.detail : test.error.message}
        </p>
      )}
    </>
  );
}

interface ThresholdsProps {
  alerts: Alerts;
  budget: Budget | undefined;
  onEdit: ((threshold: Threshold) => void) | null;
}

function Thresholds({ alerts, budget, onEdit }: ThresholdsProps): ReactElement {
  const { thresholds } = alerts;
  const save = useSaveAlerts(() => undefined);
  const remove = (threshold: Threshold): void => {
    save.mutate(replacing(threshold, null), {
      onSuccess: () => {
        const restore = (): void => {
          save.mutate(replacing(null, threshold));
        };
        toast({ text: `Deleted the alert at ${words(threshold)}.`, action: { label: 'Undo', run: restore } });
      },
    });
  };
  if (thresholds.length === 0)
    return (
      <p className={styles.note}>
        No alerts yet. An alert is sent once per period when use reaches a share of a limit, and once when the run rate
        projects that it will.
      </p>
    );
  return (
    <>
      {save.error !== null && (
        <p className={styles.error} role="alert">
          {save.error instanceof RequestError ? save.error.detail : save.error.message}
        </p>
      )}
      <div className={numbers.scroll} role="region" aria-label="Alerts" tabIndex={0}>
        <table className={numbers.table}>
          <thead>
            <tr>
              <th scope="col">Resource</th>
              <th scope="col">Threshold</th>
              <th scope="col" className={numbers.words}>
                Severity
              </th>
              <th scope="col" className={numbers.words}>
                Now
              </th>
              {onEdit !== null && <th scope="col">Change</th>}
            </tr>
          </thead>
          <tbody>
            {thresholds.map((threshold) => (
              <ThresholdRow
                key={`${threshold.resource} ${threshold.percent} ${threshold.severity}`}
                threshold={threshold}
                budget={budget}
                isBusy={save.isPending}
                onEdit={onEdit}
                onDelete={remove}
              />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface ThresholdRowProps extends Pick<ThresholdsProps, 'budget' | 'onEdit'> {
  threshold: Threshold;
  isBusy: boolean;
  onDelete: (threshold: Threshold) => void;
}

function ThresholdRow({ threshold, budget, isBusy, onEdit, onDelete }: ThresholdRowProps): ReactElement {
  return (
    <tr>
      <th scope="row">{WORDS[threshold.resource].name}</th>
      <td>{threshold.percent} %</td>
      <td className={numbers.words}>{threshold.severity}</td>
      <td className={numbers.words}>{budget === undefined ? '–' : stateOf(threshold, budget)}</td>
      {onEdit !== null && (
        <td>
          <span className={styles.buttons}>
            <Button
              look="quiet"
              aria-label={`Edit alert at ${words(threshold)}`}
              onClick={() => {
                onEdit(threshold);
              }}
            >
              Edit
            </Button>
            <Button
              look="quiet"
              icon="trash"
              hint={`Delete alert at ${words(threshold)}`}
              busy={isBusy}
              onClick={() => {
                onDelete(threshold);
              }}
            />
          </span>
        </td>
      )}
    </tr>
  );
}

const words = ({ resource, percent }: Threshold): string => `${percent} % of ${WORDS[resource].name.toLowerCase()}`;

function stateOf({ resource, percent }: Threshold, budget: Budget): string {
  const { soft_limit, hard_limit, percentage } = budget[resource];
  if (soft_limit === null && hard_limit === null) return 'No limit is set, so nothing is sent';
  const at = `${Math.round(percentage)} %`;
  return percentage >= percent ? `Reached (${at})` : at;
}
