// A topic of the live stream for a screen that reads its data again when the stream reports a change.
import { useEffect, useEffectEvent } from 'react';
import { listenLive } from './shared_live.ts';

/** Topics with the name of their event. */
const EVENTS = { evals: 'eval', incidents: 'incident', jobs: 'job' } as const;

/**
 * Calls onChange for each change of a topic with the new state of the thing, and with null where changes may have
 * been missed.
 */
export function useLiveTopic(org_id: string, topic: keyof typeof EVENTS, onChange: (state: unknown) => void): void {
  const changed = useEffectEvent(onChange);
  useEffect(
    () =>
      listenLive({ org_id, query: `topics=${topic}` }, ({ name, data }) => {
        if (name === EVENTS[topic]) changed(data);
        else if (name === 'resync') changed(null);
      }),
    [org_id, topic],
  );
}
