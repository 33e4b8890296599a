// The processes of a service, by the id that each wrote into its folder.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { PortalService } from './portal_service.ts';

/** Returns the process id of a part of the service. */
export const pidOf = ({ data_dir }: PortalService, name: 'api' | 'nats' | 'clickhouse'): number =>
  (JSON.parse(readFileSync(path.join(data_dir, 'run', `${name}.pid.json`), 'utf8')) as { pid: number }).pid;

/** Stops a part of the service in its tracks; it answers nothing until the returned function lets it go on. */
export function freeze(portal: PortalService, name: 'nats' | 'clickhouse'): () => void {
  const pid = pidOf(portal, name);
  process.kill(pid, 'SIGSTOP');
  return () => process.kill(pid, 'SIGCONT');
}
