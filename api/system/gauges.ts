// Exposes what this process sees of the whole service: readiness, partitions without a worker, and
// the fill of the NATS streams. Every API process exposes the same values, so a query aggregates
// them with max.
import type { JetStreamManager } from '@nats-io/jetstream';
import * as metrics from '../../ops/platform/metrics.ts';
import type { ReadinessWatch } from './readiness.ts';

const LOOK_MS = 5000;

export interface GaugesDeps {
  readiness: Pick<ReadinessWatch, 'check' | 'unowned'>;
  jsm: Pick<JetStreamManager, 'streams'>;
  tracked: { readonly connected: boolean };
}

/**
 * Reads the values now and then every five seconds, one read at a time. @returns a function that
 * stops it
 */
export function startServiceGauges(deps: GaugesDeps): () => void {
  let looking = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    try {
      await lookOnce(deps);
    } catch {
      // The connection was lost during the read; the readiness check reports that at the next read,
      // and the other values stay.
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
