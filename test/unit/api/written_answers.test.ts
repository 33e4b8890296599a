// Answers that are written while they are read: how many at a time, and what happens to a caller
// that does not read.
import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { WRITTEN_MAX, WRITTEN_ORG_MAX, WrittenAnswers, writePart } from '../../../api/http/written_answers.ts';

const NEVER = new AbortController().signal;

it('written answers are few at a time, of one organization fewer, and waiting ones get their turn', async () => {
  const written = new WrittenAnswers();
  const under: string[] = [];
  const ends: (() => void)[] = [];
  const begin = (org: string): Promise<void> =>
    written.run(org, NEVER, () => {
      under.push(org);
      return new Promise((resolve) => ends.push(resolve));
    });
  const runs = [
    ...Array.from({ length: 10 }, () => begin('org_a')),
    ...Array.from({ length: 10 }, () => begin('org_b')),
  ];
  await new Promise(setImmediate);
  expect(under.filter((org) => org === 'org_a')).toHaveLength(WRITTEN_ORG_MAX);
  expect(under).toHaveLength(WRITTEN_MAX);
  for (let done = 0; done < runs.length; done += 1) {
    ends.shift()?.();
    await new Promise(setImmediate);
  }
  await Promise.all(runs);
  expect(under).toHaveLength(20);
});

it('written answers release their place when they fail, and forget a caller that disconnected while it waited', async () => {
  const written = new WrittenAnswers();
  await Promise.all(
    Array.from({ length: 3 * WRITTEN_MAX }, () =>
      expect(written.run('org_a', NEVER, () => Promise.reject(new Error('broke')))).rejects.toThrow('broke'),
    ),
  );
  const ends: (() => void)[] = [];
  const held = Array.from({ length: WRITTEN_ORG_MAX }, () =>
    written.run('org_a', NEVER, () => new Promise((resolve) => ends.push(resolve))),
  );
  const gone = new AbortController();
  const waiting = written.run('org_a', gone.signal, () => Promise.reject(new Error('has begun')));
  gone.abort(new Error('went away'));
  await expect(waiting).rejects.toThrow('went away');
  for (const end of ends) end();
  await Promise.all(held);
});

it('written answers drop a caller that reads nothing', async () => {
  const writing = Promise.withResolvers<undefined>();
  const fill = async (res: ServerResponse): Promise<undefined> => {
    for (;;) await writePart(res, 'x'.repeat(1_000_000), NEVER, 50);
  };
  const server = createServer((_req, res) => {
    fill(res).then(writing.resolve, writing.reject);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const asked = request({ port, host: '127.0.0.1' }, (answer) => answer.pause());
  asked.on('error', () => undefined);
  asked.end();
  await expect(writing.promise).rejects.toThrow();
  asked.destroy();
  server.closeAllConnections();
  server.close();
});
