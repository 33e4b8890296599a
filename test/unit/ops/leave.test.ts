import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';

/** How a process ends that runs this beside work which never ends by itself. */
async function endOf(script: string): Promise<{ code: number | null; signal: string | null; output: string }> {
  const leave = new URL('../../../ops/process/leave.ts', import.meta.url).href;
  const code = `import { die, leave } from '${leave}'; setInterval(() => undefined, 1000); ${script}`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, ended] = await Promise.all([text(child.stdout), once(child, 'exit') as Promise<[number | null, string | null]>]);
  return { code: ended[0], signal: ended[1], output };
}

it('leaves with its code, after what was begun', async () => {
  expect(await endOf("leave(3); setImmediate(() => console.log('told'))")).toEqual({ code: 3, signal: null, output: 'told\n' });
});

it('dies at once, without another line of code', async () => {
  expect(await endOf("die(); console.log('written')")).toEqual({ code: null, signal: 'SIGKILL', output: '' });
});
