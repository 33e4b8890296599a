// Calls syncfs(2) of the C library on a thread of libuv's pool. It takes a folder and returns a
// function that syncs the folder's file system. A spawned `sync` command does the same, but a fork
// of the worker, which has several hundred megabytes of memory, costs milliseconds of its main
// thread every second. One call runs at a time, so a disk that hangs blocks one thread of the pool.
import { openSync } from 'node:fs';

/**
 * Loads syncfs for a folder.
 * @param msMax maximum time of one sync, milliseconds. The system call cannot be cancelled: after a
 * timeout, the next sync waits for it within its own time.
 * @param load loads the system call
 * @returns a function that rejects if the sync fails or takes too long; null where the C library
 * cannot be called or has no syncfs: outside Linux, or on a platform without a build of ffi-rs
 * @throws Error if the folder cannot be opened
 */
export async function loadSyncfs(dir: string, msMax: number, load = syncfsCall): Promise<(() => Promise<void>) | null> {
  if (process.platform !== 'linux') return null;
  const call = await load().catch(() => null);
  if (call === null) return null;
  // The descriptor stays open: the kernel reports to it each write error since its last sync.
  const fd = openSync(dir, 'r');
  let running: Promise<void> | null = null;
  const sync = async (late: AbortSignal): Promise<void> => {
    while (running !== null) await running.catch(() => undefined);
    if (late.aborted) return;
    running = call(fd).finally(() => {
      running = null;
    });
    await running;
  };
  return () =>
    new Promise((resolve, reject) => {
      const late = new AbortController();
      const timer = setTimeout(() => {
        late.abort();
        reject(new Error(`syncfs of ${dir} took longer than ${msMax} ms`));
      }, msMax);
      sync(late.signal)
        .then(resolve, reject)
        .finally(() => {
          clearTimeout(timer);
        });
    });
}

/** @throws Error if ffi-rs or the symbol cannot be loaded */
async function syncfsCall(): Promise<(fd: number) => Promise<void>> {
  const { DataType, load, open } = await import('ffi-rs');
  open({ library: 'libc', path: '' });
  const call = async (fd: number): Promise<void> => {
    const result = await load({
      library: 'libc',
      funcName: 'syncfs',
      retType: DataType.I32,
      paramsType: [DataType.I32],
      paramsValue: [fd],
      runInNewThread: true,
    });
    if (result !== 0) throw new Error(`syncfs of descriptor ${fd} failed`);
  };
  return call;
}
