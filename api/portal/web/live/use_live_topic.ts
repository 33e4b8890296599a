// A topic of the live stream for a screen that reads its data again when the stream reports a change.
import { useEffect, useEffectEvent } from 'react';
import { listenLive } from './shared_live.ts';

/** Topics with the name of their event. */
const EVENTS = { evals: 'eval', incidents: 'incident', jobs: 'job' } as const;

/** Calls onChange for each change of a topic, and where changes may have been missed. */
export function useLiveTopic(org_id: string, topic: keyof typeof EVENTS, onChange: () => void): void {
  const changed = useEffectEvent(onChange);
  useEffect(
    () =>
      listenLive({ org_id, query: `topics=${topic}` }, ({ name }) => {
        if (name === EVENTS[topic] || name === 'resync') changed();
      }),
    [org_id, topic],
  );
}
