// Evals and dataset runs of a worker.
import * as metrics from '../../ops/platform/metrics.ts';
import type { Runner } from '../domain/patterns/bounds.ts';
import { createPriceBook } from '../domain/pricing/pricing.ts';
import { type Evals, openEvals } from '../evals/open.ts';
import type { PiiPolicies } from '../settings/pii_policies.ts';
import type { Policies } from '../settings/org_policies.ts';
import type { Prices } from '../settings/prices.ts';
import type { Models } from './judging.ts';
import { countPublished, type WorkerParts } from './parts.ts';

const GAUGE_MS = 5000;

/** Resolves when they are being worked on. `stop` ends what is under way within seconds; the rest is another worker's. */
export async function startEvals(
  { log, logger, clickhouse }: WorkerParts,
  parts: {
    policies: Pick<Policies, 'of'>;
    prices: Pick<Prices, 'of'>;
    piiPolicies: Pick<PiiPolicies, 'of'>;
    models: Models | null;
    patterns: Runner;
    isLeader: () => boolean;
  },
): Promise<Pick<Evals, 'stop'>> {
  const { policies, prices, piiPolicies, models, patterns, isLeader } = parts;
  const evals = await openEvals({
    log,
    logger,
    clickhouse,
    llm: models,
    runner: patterns,
    // As landing reads them, redacted as they are stored; prompts are judged whole.
    spans: { prices: createPriceBook(prices.of), maxPromptTokens: () => null, redactorOf: piiPolicies.of },
    policyOf: policies.of,
    isLeader,
    observe: (queue, result, count) => {
      metrics.queueMessagesTotal.inc({ queue, result }, count);
    },
    onScored: (verdict, count) => {
      metrics.evalScoresTotal.inc({ verdict }, count);
    },
    onTold: countPublished,
    now: () => Date.now(),
  });
  evals.start();
  // Every worker knows of all of them; one shows them.
  const gauge = setInterval(() => {
    metrics.evalsRunning.set(isLeader() ? evals.running() : 0);
  }, GAUGE_MS);
  return {
    stop: async () => {
      clearInterval(gauge);
      await evals.stop();
    },
  };
}
