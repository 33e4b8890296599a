// An admission whose checks all admit, for tests of one check or of a handler.
import { Admission, type AdmissionParts } from '../../api/admission/admission.ts';
import { ADMIT } from '../../api/admission/decision.ts';

/** Returns parts that admit everything, overridden by the given ones. */
export const admittingParts = (parts: Partial<AdmissionParts> = {}): AdmissionParts => ({
  limits: { take: () => ({ allowed: true, headers: {} }) },
  calls: { size: 1 },
  slots: { take: () => () => undefined },
  backlog: { decide: () => ADMIT },
  turns: { decide: () => ADMIT, timed: (_, work) => work() },
  disk: { low: false },
  isDeleted: () => false,
  budgets: { decide: () => ADMIT },
  keys: {
    decideKey: () => ADMIT,
    decideKeyTokens: () => ADMIT,
    decideKeyRequest: () => ADMIT,
    usesOf: () => [],
  },
  ...parts,
});

export const anAdmission = (parts: Partial<AdmissionParts> = {}): Admission => new Admission(admittingParts(parts));
