// The open incidents of the list against what the live stream reports about one of them. Pure.

/** State of an incident, as the stream and the list give it. */
export interface Changed {
  incident_id: string;
  status: 'open' | 'resolved';
  opened_at: string;
}

/** Returns true if the newest open incidents show the state of an incident, or leave it out because it is older. */
export function agrees(
  { data, meta }: { data: readonly Changed[]; meta: { total: number } },
  { incident_id, status, opened_at }: Changed,
): boolean {
  if (data.some((one) => one.incident_id === incident_id)) return status === 'open';
  return status === 'resolved' || (data.length < meta.total && opened_at <= (data.at(-1)?.opened_at ?? ''));
}
