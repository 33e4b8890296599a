// The service on a disk that fills up: a small file system, and a ballast file that takes its room.
// The test needs the right to mount one (root on Linux) and is skipped elsewhere;
// test/unit/ops/disk_watch.test.ts covers the decision.
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { createClickHouse } from '../../sql/client/client.ts';
import { startService, type TestService } from '../support/service.ts';
import { removeDir, tempDir } from '../support/temp.ts';
import { eventually } from '../support/wait.ts';

const DISK_MIB = 512;
const MIB = 1024 ** 2;
const disk = tempDir('disk');
const mounted = mount();
let service: TestService | undefined;

afterAll(async () => {
  await service?.stop();
  if (mounted) execFileSync('umount', ['--lazy', disk]);
  removeDir(disk);
});

function mount(): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', disk], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const freeBytes = (): number => {
  const { bsize, bavail } = statfsSync(disk);
  return bsize * bavail;
};

/** Writes ballast until `leaveBytes` are free, while other processes may write too. */
function fillUp(leaveBytes: number): void {
  const file = openSync(path.join(disk, 'ballast'), 'w');
  try {
    for (const block of [Buffer.alloc(8 * MIB), Buffer.alloc(4096)]) {
      while (freeBytes() - block.length >= leaveBytes && takesAll(file, block));
    }
  } finally {
    closeSync(file);
  }
}

function takesAll(file: number, block: Buffer): boolean {
  try {
    return writeSync(file, block) === block.length;
  } catch {
    return false;
  }
}

function freeAll(): void {
  rmSync(path.join(disk, 'ballast'), { force: true });
}

let sent = 0;
/** Sends a hundred events of 2 kB and returns the answer with the traces that were acknowledged. */
async function send(
  to: TestService,
): Promise<{ status: number; retryAfter: string | null; text: string; ids: string[] }> {
  const ids = Array.from({ length: 100 }, () => `disk-${sent++}`);
  const events = ids.map((trace_id) => ({
    name: 'step',
    outcome: 'success',
    duration_ms: 1,
    trace_id,
    attributes: { note: trace_id.repeat(200) },
  }));
  const res = await fetch(`${to.baseUrl}/orgs/${to.orgId}/ingest/custom`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-org-api-key': to.secrets.api_key, 'x-org-id': to.orgId },
    body: JSON.stringify({ events }),
  });
  return { status: res.status, retryAfter: res.headers.get('retry-after'), text: await res.text(), ids };
}

/** Returns the readable traces with their numbers of spans. */
async function landed(of: TestService): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (let cursor: string | null = ''; cursor !== null;) {
    const res: Response = await fetch(
      `${of.baseUrl}/v1/traces?limit=200${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
      {
        headers: { authorization: `Bearer ${of.secrets.api_key}`, 'x-org-id': of.orgId },
      },
    );
    const { data, meta } = (await res.json()) as { data: { trace_id: string }[]; meta: { next_cursor: string | null } };
    for (const { trace_id } of data) found.set(trace_id, (found.get(trace_id) ?? 0) + 1);
    cursor = meta.next_cursor;
  }
  return found;
}

describe.skipIf(!mounted)('the service on a disk of half a gigabyte', () => {
  const acknowledged: string[] = [];
  const accept = async (): Promise<void> => {
    await eventually(async () => {
      const { status, ids } = await send(service as TestService);
      if (status === 200) acknowledged.push(...ids);
      return status === 200;
    });
  };

  it('starts on half a gigabyte', async () => {
    mkdirSync(path.join(disk, 'data'));
    service = await startService({ dataDir: path.join(disk, 'data') });
    await accept();
    await eventually(async () => {
      const found = await landed(service as TestService);
      return acknowledged.every((id) => found.has(id));
    });
  });

  it('answers ingest with 429 and Retry-After while the disk is nine tenths full, keeps reads working, and admits events again once there is room', async () => {
    const running = service as TestService;
    fillUp(DISK_MIB * MIB * 0.09);
    let refused = await send(running);
    await eventually(async () => {
      if (refused.status === 429) return true;
      if (refused.status === 200) acknowledged.push(...refused.ids);
      // Slowly: the disk is checked once a second, and what is accepted until then has to fit into
      // the reserve of the store.
      await sleep(200);
      refused = await send(running);
      return false;
    });
    expect(refused).toMatchObject({ status: 429, retryAfter: '10' });
    expect(JSON.parse(refused.text)).toMatchObject({
      code: 'rate_limited',
      detail: expect.stringContaining('disk') as unknown,
    });
    expect((await landed(running)).size).toBeGreaterThan(0);
    freeAll();
    await eventually(async () => (await landed(running)).size >= acknowledged.length);
    await eventually(async () =>
      /^millrace_disk_low(\{[^}]*\})? 0$/m.test(await fetch(`${running.baseUrl}/metrics`).then((res) => res.text())),
    );
    await accept();
  });

  it('loses nothing that it acknowledged when the disk fills up under load, and admits events again once there is room', async () => {
    const running = service as TestService;
    const load = { on: true };
    const answered = new Set<number>();
    let refusals = 0;
    const senders = Array.from({ length: 4 }, async () => {
      while (load.on) {
        const answer = await send(running).catch(() => null);
        if (answer !== null) answered.add(answer.status);
        if (answer?.status === 200) acknowledged.push(...answer.ids);
        else {
          refusals += 1;
          await sleep(20);
        }
      }
    });
    await eventually(() => answered.has(200));
    fillUp(0);
    // Often enough that the store and the log have also met the full disk.
    await eventually(() => refusals > 400);
    freeAll();
    answered.clear();
    await eventually(() => answered.has(200), { what: 'ingest to be back' });
    load.on = false;
    await Promise.all(senders);
    const wanted = new Set(acknowledged);
    await eventually(
      async () => {
        const found = await landed(running);
        return [...wanted].every((id) => found.has(id));
      },
      { what: 'everything acknowledged to be readable' },
    );
    expect([...(await landed(running)).values()].every((times) => times === 1)).toBe(true);
    const clickhouse = createClickHouse({ url: urlOf(running) });
    try {
      const [counts] = await clickhouse.rows<{ spans: string; events: string }>({
        name: 'counts',
        sql: 'SELECT toString(count()) AS spans, toString(uniqExact(event_key)) AS events FROM spans',
        timeoutMs: 60_000,
      });
      expect(counts?.spans).toBe(counts?.events);
      for (const table of ['spans', 'span_texts', 'span_texts_recent', 'traces', 'usage_events']) {
        const parts = await clickhouse.rows<{ is_passed: number }>({
          name: 'check',
          sql: `CHECK TABLE ${table}`,
          timeoutMs: 60_000,
        });
        expect(parts.every(({ is_passed }) => is_passed === 1)).toBe(true);
      }
    } finally {
      await clickhouse.close();
    }
  });
});

/** Returns the address of the running service's store. */
function urlOf(running: TestService): string {
  const address = /analysts\s+http:\/\/([\d.:]+)/.exec(running.stdout())?.[1] ?? '';
  return `http://app:${running.secrets.clickhouse_app_password}@${address}/millrace`;
}
