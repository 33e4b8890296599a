// Wires the admission of one API process: its list of checks, and the metrics of their rejections.
import * as metrics from '../../ops/platform/metrics.ts';
import { Admission, type AdmissionParts } from '../admission/admission.ts';
import { FairTurns } from '../admission/fair_turns.ts';
import { OrgSlots } from '../http/org_slots.ts';

/**
 * Value of the label `kind` by check. The rate limits count their own rejections, because they also
 * apply to other requests.
 */
const KINDS: Readonly<Partial<Record<string, string>>> = { backlog_share: 'share', organization_calls: 'gateway' };

export type AdmissionWiring = Omit<AdmissionParts, 'turns' | 'slots' | 'onReject'> & {
  /** Maximum number of gateway calls that one organization may have in progress in this process. */
  callsPerOrg: number;
};

export function openAdmission({ callsPerOrg, ...parts }: AdmissionWiring): Admission {
  return new Admission({
    ...parts,
    turns: new FairTurns(),
    slots: new OrgSlots(callsPerOrg),
    onReject: (check) => {
      const kind = KINDS[check];
      if (kind !== undefined) metrics.rateLimitedTotal.inc({ kind });
    },
  });
}
