// `npm run chaos`: kill -9 of every process in turn under load, then the proof that nothing was lost or doubled.
// Exit code 1 when any check does not hold.
import { parseArgs } from 'node:util';
import { markdownTable, ms, percentile } from '../bench/report.ts';
import { runChaos, type ChaosOptions, type ChaosResult } from './chaos.ts';

const USAGE = `usage: npm run chaos [-- --rounds 20] [--process api|worker|nats|clickhouse|all] [--rate 1000] [--pause 8]
  --rounds   kills of each process
  --rate     events a second sent meanwhile
  --pause    seconds that a worker stands still (SIGSTOP)`;

const KINDS = ['api', 'worker', 'nats', 'clickhouse'] as const;

class UsageError extends Error {}

function readOptions(args: string[]): ChaosOptions | null {
  const text = (fallback: string) => ({ type: 'string', default: fallback }) as const;
  const { values } = parseArgs({
    args,
    options: { rounds: text('20'), process: text('all'), rate: text('1000'), pause: text('8'), help: { type: 'boolean', short: 'h' } },
  });
  if (values.help === true) return null;
  const processes = KINDS.filter((kind) => values.process === 'all' || values.process.split(',').includes(kind));
  const [rounds, rate, pauseS] = [Number(values.rounds), Number(values.rate), Number(values.pause)];
  if (processes.length === 0) throw new UsageError(`--process takes ${KINDS.join(', ')} or all; got ${values.process}`);
  if (!(rounds >= 0 && rate > 0 && pauseS > 0)) throw new UsageError('--rounds, --rate and --pause take numbers');
  return { rounds, processes, rate, pauseMs: pauseS * 1000, progress: (line) => void process.stderr.write(`${line}\n`) };
}

/** The result as tables. */
function report({ kills, takeovers, acknowledged, retries, checks, evidence }: ChaosResult): string {
  const names = [...new Set(kills.map((kill) => kill.process))];
  const times = (values: number[]): string => `p50 ${ms(percentile(values, 0.5))} ms, most ${ms(Math.max(...values))} ms`;
  const killRows = names.map((name) => {
    const mine = kills.filter((kill) => kill.process === name);
    return [
      name,
      String(mine.length),
      times(mine.map((kill) => kill.acknowledged_after_ms)),
      times(mine.map((kill) => kill.landed_after_ms)),
    ];
  });
  const takeoverRows = takeovers.map(({ why, owned_ms, probes_landed_ms }) => [why, `${ms(owned_ms)} ms`, `${ms(probes_landed_ms)} ms`]);
  const checkRows = checks.map(({ what, expected, found, breach }) => [breach ? 'BREACH' : 'ok', what, expected, found]);
  return [
    `${acknowledged.toLocaleString('en-US')} events acknowledged, ${retries.toLocaleString('en-US')} attempts sent again.\n`,
    markdownTable(['kill -9', 'times', 'next acknowledgement after', 'next rows landed after'], killRows),
    ...(takeoverRows.length === 0
      ? []
      : ['', markdownTable(['one of two workers', 'the other owns all after', 'and lands all partitions after'], takeoverRows)]),
    '',
    markdownTable(['', 'check', 'expected', 'found'], checkRows),
    ...(evidence.length === 0 ? [] : ['', ...evidence]),
  ].join('\n');
}

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stop.abort();
  });
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === null) console.log(USAGE);
  else {
    const result = await runChaos({ ...options, signal: stop.signal });
    console.log(report(result));
    process.exitCode = result.checks.some(({ breach }) => breach) ? 1 : 0;
  }
} catch (error) {
  const usage =
    error instanceof UsageError || (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
  console.error(stop.signal.aborted ? 'stopped' : usage ? `${error.message}\n${USAGE}` : error);
  process.exitCode = stop.signal.aborted ? 130 : 1;
}
