// The redactors of organizations, as decode uses them: compiled once for each version of a PII
// policy, and kept current by a watch. Guarantees: an enabled policy never counts as disabled. A
// pattern that cannot be used is reported, and texts that it may match are replaced as a whole. A
// key that cannot be used is reported, and findings are replaced by their label alone.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Sealer } from '../../ops/platform/sealing.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { hashKeyContext, type PiiRecord } from '../../schemas/records/pii_policy.ts';
import { PiiRedactor } from '../domain/pii/pii.ts';
import { IN_PLACE, type OwnBounds } from '../domain/pii/own_patterns.ts';

export interface PiiPolicies {
  /** Returns the current redactor of an organization; null where nothing is redacted. */
  of: (org_id: string) => PiiRedactor | null;
  close: () => void;
}

export interface RedactorDeps {
  onProblem: ReportProblem;
  /** Returns the bounds on an organization's own patterns; IN_PLACE by default. */
  boundsOf?: (org_id: string) => OwnBounds;
}

/** Opens the policies. Resolves once every present one is loaded. */
export async function openPiiPolicies(log: Log, sealer: Sealer, deps: RedactorDeps): Promise<PiiPolicies> {
  const { onProblem, boundsOf = () => IN_PLACE } = deps;
  const bucket = await watch(log, 'pii_policies', onProblem);
  const compiled = new WeakMap<PiiRecord, PiiRedactor>();
  return {
    of: (org_id) => {
      const record = bucket.get(orgKey(org_id));
      if (record?.enabled !== true) return null;
      let redactor = compiled.get(record);
      if (redactor === undefined)
        compiled.set(record, (redactor = redactorOf(org_id, record, sealer, { onProblem, boundsOf })));
      return redactor;
    },
    close: () => {
      bucket.close();
    },
  };
}

function redactorOf(
  org_id: string,
  record: PiiRecord,
  sealer: Sealer,
  { onProblem, boundsOf }: Required<RedactorDeps>,
): PiiRedactor {
  const { kinds, custom } = record;
  const redactor = new PiiRedactor({
    kinds,
    custom,
    hash_key: hashKeyOf(org_id, record, sealer, onProblem),
    bounds: boundsOf(org_id),
  });
  for (const label of redactor.own.unusable)
    onProblem(
      `a pattern of the PII policy of ${org_id} cannot be used; texts that it may match are replaced as a whole: ${label}`,
      undefined,
    );
  return redactor;
}

function hashKeyOf(
  org_id: string,
  { mode, hash_key }: PiiRecord,
  sealer: Sealer,
  onProblem: ReportProblem,
): Buffer | null {
  if (mode !== 'hash' || hash_key === null) return null;
  try {
    return Buffer.from(sealer.open(hash_key, hashKeyContext(org_id)), 'base64');
  } catch (cause) {
    onProblem(
      `the hash key of the PII policy of ${org_id} cannot be opened; findings are replaced by their label alone`,
      cause,
    );
    return null;
  }
}
