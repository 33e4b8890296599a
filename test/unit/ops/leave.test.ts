import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';

/** Returns how a process ends that runs this code beside work that never ends by itself. */
async function endOf(
  script: string,
  before: readonly string[] = [],
): Promise<{ code: number | null; signal: string | null; output: string }> {
  const leave = new URL('../../../ops/platform/leave.ts', import.meta.url).href;
  const code = `import { die, leave } from '${leave}'; setInterval(() => undefined, 1000); ${script}`;
  const line = [...before, process.execPath, '--input-type=module-typescript', '--eval', code];
  const child = spawn(line[0] ?? '', line.slice(1), {
    stdio: ['ignore', 'pipe', before.length === 0 ? 'inherit' : 'ignore'],
  });
  const [output, ended] = await Promise.all([
    text(child.stdout),
    once(child, 'exit') as Promise<[number | null, string | null]>,
  ]);
  return { code: ended[0], signal: ended[1], output };
}

it('the process exits with its code, after the work in progress', async () => {
  expect(await endOf("leave(3); setImmediate(() => console.log('told'))")).toEqual({
    code: 3,
    signal: null,
    output: 'told\n',
  });
});

it('the process dies at once, without another line of code', async () => {
  expect(await endOf("die(); console.log('written')")).toEqual({ code: null, signal: 'SIGKILL', output: '' });
});

/** Runs a command as the first process, as in a container; not every user may. */
const FIRST = ['unshare', '--pid', '--fork'];
const mayBeFirst = spawnSync(FIRST[0] ?? '', [...FIRST.slice(1), 'true']).status === 0;

it.skipIf(!mayBeFirst)(
  'the first process of a container dies at once, although a SIGKILL of its own does not end it',
  async () => {
    const { code, signal, output } = await endOf("console.log(process.pid); die(); console.log('written')", FIRST);
    expect(output).toBe('1\n');
    expect(code === 0 && signal === null).toBe(false);
  },
);
