// The audit trail of the edge: what mount.ts writes down around each mutation, through the log that all processes share.
import { AuditLog, type AuditLogDeps, AuditUnavailable } from '../../../ops/exchange/audit_log.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import type { AuditTrail } from '../../http/audit.ts';
import { ApiError } from '../../http/errors.ts';

const MAPPED_IPV4 = /^::ffff:(?=\d+\.)/i;

export interface OwnedTrail extends AuditTrail {
  /** Resolves when what was to be written is stored, or after a bounded wait. */
  flush: () => Promise<void>;
}

/** The trail of one process. */
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
          'The change was not tried, as it could not be written down first. Try again.',
          {
            cause,
          },
        );
      }
    },
    flush: () => audit.flush(),
  };
}
