// The audit trail of one API process: the records that mount.ts writes around each change, in the
// log that all processes share.
import { AuditLog, type AuditLogDeps, AuditUnavailable } from '../../../ops/exchange/audit_log.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import type { AuditTrail } from '../../http/audit.ts';
import { ApiError } from '../../http/errors.ts';

const MAPPED_IPV4 = /^::ffff:(?=\d+\.)/i;

export interface OwnedTrail extends AuditTrail {
  /** Resolves when pending records are stored, or after a bounded wait. */
  flush: () => Promise<void>;
}

/** Returns the audit trail of this process. */
export function createAuditTrail(log: Log, deps: AuditLogDeps): OwnedTrail {
  const audit = new AuditLog(log, deps);
  return {
    begin: async (intent) => {
      try {
        return await audit.intend({ ...intent, ip: intent.ip.replace(MAPPED_IPV4, '') });
      } catch (cause) {
        if (!(cause instanceof AuditUnavailable)) throw cause;
        throw new ApiError(
          'upstream_unavailable',
          'The change was not attempted, since its audit record could not be written. Try again.',
          {
            cause,
          },
        );
      }
    },
    flush: () => audit.flush(),
  };
}
