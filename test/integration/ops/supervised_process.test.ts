// A supervised child process: the supervisor restarts it when it dies, gives up when it dies
// repeatedly, and never starts it after a stop.
import { spawn } from 'node:child_process';
import { afterAll, expect, it } from 'vitest';
import { exitOf, stopChild } from '../../../ops/launch/process/child.ts';
import { SupervisedProcess, type Running } from '../../../ops/launch/process/supervised_process.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';

const runDir = tempDir('kept');
afterAll(() => {
  removeDir(runDir);
});

function shell(script: string): Running {
  const child = spawn('/bin/sh', ['-c', script], { stdio: 'ignore' });
  const exited = exitOf(child);
  return { pid: child.pid ?? 0, exited, stop: () => stopChild(child, exited, 5000), kill: () => child.kill('SIGKILL') };
}

function keep(start: () => Promise<Running>): { kept: SupervisedProcess; deaths: string[]; gaveUp: string[] } {
  const deaths: string[] = [];
  const gaveUp: string[] = [];
  const kept = new SupervisedProcess({
    name: 'child',
    runDir,
    start,
    onDeath: (line) => deaths.push(line),
    onGiveUp: (line) => gaveUp.push(line),
  });
  return { kept, deaths, gaveUp };
}

it('gives up on a child that dies immediately, after five more attempts', async () => {
  let starts = 0;
  const { kept, deaths, gaveUp } = keep(() => {
    starts += 1;
    return Promise.resolve(shell('exit 7'));
  });
  await kept.start();
  await eventually(() => gaveUp.length > 0);
  expect(gaveUp).toEqual(['child ended with exit code 7, more than 5 times within a minute']);
  expect(starts).toBe(6);
  expect(deaths).toHaveLength(5);
  await kept.stop();
});

it('counts a failed start as a death, and says why', async () => {
  let starts = 0;
  const { kept, deaths } = keep(() => {
    starts += 1;
    return starts === 2
      ? Promise.reject(new Error('no room'))
      : Promise.resolve(shell(starts === 1 ? 'kill -9 $$' : 'sleep 60'));
  });
  await kept.start();
  await eventually(() => starts === 3);
  expect(deaths).toEqual(['child ended with signal SIGKILL; restarting it', 'no room; restarting it']);
  await kept.stop();
});

it('starts nothing after stop, not even when it is waiting to start again', async () => {
  let starts = 0;
  const { kept, deaths } = keep(() => {
    starts += 1;
    return Promise.resolve(shell('exit 1'));
  });
  await kept.start();
  await eventually(() => deaths.length === 2);
  const before = starts;
  await kept.stop();
  expect(starts).toBe(before);
});
