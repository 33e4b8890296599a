// Shows what this process sees of the service as a whole: readiness, partitions without a worker, how full the streams of NATS are.
// Every API process shows the same, so whoever adds up takes the largest.
import type { JetStreamManager } from '@nats-io/jetstream';
import * as metrics from '../../ops/platform/metrics.ts';
import type { ReadinessWatch } from './readiness.ts';

const LOOK_MS = 5000;

export interface GaugesDeps {
  readiness: Pick<ReadinessWatch, 'check' | 'unowned'>;
  jsm: Pick<JetStreamManager, 'streams'>;
  tracked: { readonly connected: boolean };
}

/** Looks at once and then every five seconds, one look at a time. Returns what stops it. */
export function startServiceGauges(deps: GaugesDeps): () => void {
  let looking = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    try {
      await lookOnce(deps);
    } catch {
      // A connection lost in the middle: the check says so at the next look, the rest keeps what it was.
    } finally {
      looking = false;
    }
  };
  void look();
  const timer = setInterval(() => void look(), LOOK_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
}

async function lookOnce({ readiness, jsm, tracked }: GaugesDeps): Promise<void> {
  const { checks } = await readiness.check();
  for (const [check, state] of Object.entries(checks)) metrics.checkOk.set({ check }, state === 'ok' ? 1 : 0);
  metrics.partitionsUnowned.set(readiness.unowned());
  if (!tracked.connected) return;
  for await (const { config, state } of jsm.streams.list()) {
    if (config.max_bytes <= 0) continue;
    const labels = { stream: config.name };
    metrics.streamMessages.set(labels, state.messages);
    metrics.streamBytes.set(labels, state.bytes);
    metrics.streamMaxBytes.set(labels, config.max_bytes);
  }
}
