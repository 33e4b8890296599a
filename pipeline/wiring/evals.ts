// Wiring of evals and dataset runs.
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

/**
 * Resolves once the worker takes chunks of evals. `stop` gives chunks under way some seconds to
 * finish; the queue redelivers the rest to another worker.
 */
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
    // Evals read texts as landing does, redacted as they are stored, but judge prompts at full
    // length.
    spans: { prices: createPriceBook(prices.of), maxPromptTokens: () => null, redactorOf: piiPolicies.of },
    policyOf: policies.of,
    isLeader,
    observe: (queue, result, count) => {
      metrics.queueMessagesTotal.inc({ queue, result }, count);
    },
    onScored: (verdict, count) => {
      metrics.evalScoresTotal.inc({ verdict }, count);
    },
    onPublished: countPublished,
    now: () => Date.now(),
  });
  evals.start();
  // Every worker knows all running evals; only the leader shows them, so that they are counted
  // once.
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
