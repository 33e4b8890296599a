// The order of the stages, and the flow that runs them.
import { expect, it } from 'vitest';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { type DeadEvent, startWith, type StageRunner } from '../../../pipeline/flow.ts';
import type { LogPosition, Stage, StageName } from '../../../pipeline/stage.ts';
import { IdWindow } from '../../../pipeline/stages/id_window.ts';
import { createTopology } from '../../../pipeline/topology.ts';

type Item = LogPosition & { path: string };

const item = (path: string): Item => ({ partition: 0, log_seq: 1, log_index: 0, path });
const appending = (name: StageName): Stage<Item, Item> => ({
  name,
  run: (batch) => batch.map((one) => ({ kind: 'emit', out: { ...one, path: `${one.path} ${name}` } })),
});

/** Emits what the stage emits; the first input of `sample` dies. */
function aRunner(ran: string[]): StageRunner {
  return {
    run: <In extends LogPosition, Out>(stage: Stage<In, Out>, batch: readonly In[], dead: DeadEvent[]) => {
      ran.push(`${stage.name} ${batch.length}`);
      const [first, ...others] = batch;
      const died = stage.name === 'sample' && first !== undefined;
      if (died) dead.push({ step: stage.name, reason: 'internal_error', detail: '', position: first });
      const outcomes = stage.run(died ? others : batch);
      return Promise.resolve(outcomes.flatMap((outcome) => (outcome.kind === 'emit' ? [outcome.out] : [])));
    },
  };
}

it('runs decode, dedupe, match, sample and meter, in this order, once for each batch', async () => {
  const window = new IdWindow(1000, 10);
  const topology = createTopology({
    decode: { prices: createPriceBook(() => []), maxPromptTokens: () => null, redactorOf: () => null },
    dedupe: {
      windowOf: () => window,
      forgottenOf: () => null,
      findLanded: () => Promise.resolve(new Set()),
      now: () => 0,
    },
    match: { partitionOf: () => null, findCalls: () => Promise.resolve([]) },
    sample: { profile: 'balanced', enabled: true, slowMs: 1000 },
  });
  const ran: string[] = [];
  expect(await topology.run(aRunner(ran), [], [])).toEqual([]);
  expect(ran).toEqual(['decode 0', 'dedupe 0', 'match 0', 'sample 0', 'meter 0']);
});

it('gives each stage of a flow what the one before it emitted, and collects the dead of all of them', async () => {
  const ran: string[] = [];
  const dead: DeadEvent[] = [];
  const flow = startWith(appending('decode')).followedBy(appending('sample')).followedBy(appending('meter'));
  expect(await flow.run(aRunner(ran), [item('a'), item('b')], dead)).toEqual([item('b decode sample meter')]);
  expect(ran).toEqual(['decode 2', 'sample 2', 'meter 1']);
  expect(dead.map(({ step, position }) => [step, position])).toEqual([['sample', item('a decode')]]);
});
