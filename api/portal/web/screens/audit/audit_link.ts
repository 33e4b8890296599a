// The link from a change that was just made to its line in the audit log.

/** Returns the link to the newest records of an action, for a toast. */
export const auditLink = (org_id: string, action: string): { label: string; href: string } => ({
  label: 'Show in the audit log',
  href: `/o/${encodeURIComponent(org_id)}/audit?action=${encodeURIComponent(action)}`,
});
