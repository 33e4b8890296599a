// Downloads the records of the list, one JSON object a line.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useEffect, useRef, useState } from 'react';
import { isAbort, RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { download } from '../../lists/download.ts';
import { useKeys } from '../../shell/keys.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { toast } from '../../ui/toast.tsx';
import { type AuditFilters, EXPORT_MAX, exportRecords } from './audit_data.ts';

/** The button. */
export function ExportButton({ filters, total }: { filters: AuditFilters; total: number | undefined }): ReactElement {
  const { org_id } = useOrganization();
  const [done, setDone] = useState(0);
  const gone = useRef<AbortController | null>(null);
  useEffect(() => () => gone.current?.abort(), []);
  const { mutate, isPending } = useMutation({
    mutationFn: () => {
      const controller = new AbortController();
      gone.current = controller;
      setDone(0);
      return exportRecords(org_id, filters, setDone, controller.signal);
    },
    onSuccess: ({ ndjson, records, truncated }) => {
      download(new Blob([ndjson], { type: 'application/x-ndjson' }), `audit-${records}.ndjson`);
      if (truncated)
        toast({ text: `The file has the newest ${count(EXPORT_MAX)} records. Choose a shorter time for the others.` });
    },
    onError: (error) => {
      if (isAbort(error)) return;
      toast({ tone: 'error', text: error instanceof RequestError ? error.detail : String(error) });
    },
  });
  const run = (): void => {
    if (!isPending && (total ?? 0) > 0) mutate();
  };
  useKeys('Audit', [{ keys: 'E', label: 'Export the records of the list', run }]);
  return (
    <Button icon="download" keys="E" busy={isPending} disabled={(total ?? 0) === 0} onClick={run}>
      {isPending ? `Exported ${count(done)}` : 'Export'}
    </Button>
  );
}
