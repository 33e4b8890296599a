// A worker thread for work that must not block its process, under a deadline for each job. Takes
// jobs; calls back with the parts of each job as the thread produces them, and resolves with how
// the job ended. Guarantees: run never rejects; a job that exceeds its deadline is ended together
// with its thread, and the next job gets a new thread. The queue of waiting jobs is bounded in
// number and bytes.
//
// A deadline is CPU time of the thread, so a busy machine ends no job that does little work. A
// wall-clock bound of many deadlines ends a job that makes no progress at all.
//
// The thread's module sends { ready: true } once, answers each { job } with any number of { part }
// messages, and ends it with { done: true }.
import { Worker } from 'node:worker_threads';

/** Maximum number of waiting jobs, and of their bytes; further jobs are refused. */
const WAITING_MAX = 1000;
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
/** Maximum start-up time of a thread. Loading its modules takes a fraction of a second. */
const START_MS = 10_000;
const HEAP_MB_MAX = 256;
/** Wall-clock bound of a job, in deadlines, for a job that has not used up its CPU time. */
const WALL_DEADLINES = 20;
/** Minimum interval between two reads of the thread's CPU time. */
const LOOK_MS_MIN = 5;

/**
 * late: the deadline ended it. refused: the queue was full. failed: the thread died or did not
 * start.
 */
export type JobEnd = 'done' | 'late' | 'refused' | 'failed';

export interface DeadlineJob<Job, Part> {
  job: Job;
  /** Bytes that count against the bound of the queue while the job waits. */
  bytes: number;
  /** Maximum CPU time of the job, in milliseconds, without its wait in the queue. */
  deadlineMs: number;
  onPart: (part: Part) => void;
}

interface Message<Part> {
  ready?: true;
  part?: Part;
  done?: true;
}

interface Waiting<Job, Part> extends DeadlineJob<Job, Part> {
  end: (how: JobEnd, ms: number) => void;
}

export class DeadlineThread<Job, Part> {
  readonly #module: URL;
  readonly #waiting: Waiting<Job, Part>[] = [];
  #waitingBytes = 0;
  #running: Waiting<Job, Part> | null = null;
  #worker: Worker | null = null;
  #isClosed = false;

  /** @param module the thread's module; the first job starts it */
  constructor(module: URL) {
    this.#module = module;
  }

  /**
   * Runs a job. Resolves once it has ended, with its time in milliseconds: CPU time where that is
   * known.
   */
  run(job: DeadlineJob<Job, Part>): Promise<{ how: JobEnd; ms: number }> {
    if (this.#isClosed || this.#waiting.length >= WAITING_MAX || this.#waitingBytes + job.bytes > WAITING_BYTES_MAX)
      return Promise.resolve({ how: 'refused', ms: 0 });
    return new Promise((resolve) => {
      this.#waiting.push({
        ...job,
        end: (how, ms) => {
          resolve({ how, ms });
        },
      });
      this.#waitingBytes += job.bytes;
      this.#next();
    });
  }

  /** Ends the thread. Running and waiting jobs end as failed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const left = [...(this.#running === null ? [] : [this.#running]), ...this.#waiting.splice(0)];
    this.#running = null;
    this.#waitingBytes = 0;
    for (const job of left) job.end('failed', 0);
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  #next(): void {
    if (this.#running !== null) return;
    const job = this.#waiting.shift();
    if (job === undefined) return;
    this.#waitingBytes -= job.bytes;
    this.#running = job;
    const worker = this.#worker;
    if (worker === null) this.#start(job);
    else this.#give(worker, job);
  }

  #start(job: Waiting<Job, Part>): void {
    const worker = new Worker(this.#module, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX } });
    this.#worker = worker;
    worker.unref();
    const timer = setTimeout(() => {
      this.#end(worker, job, 'failed', 0);
    }, START_MS);
    worker.once('message', () => {
      clearTimeout(timer);
      if (this.#running === job && this.#worker === worker) this.#give(worker, job);
    });
    const fail = (): void => {
      clearTimeout(timer);
      if (this.#worker !== worker) return;
      this.#worker = null;
      if (this.#running !== null) this.#end(worker, this.#running, 'failed', 0);
    };
    worker.once('error', fail);
    worker.once('exit', fail);
  }

  #give(worker: Worker, job: Waiting<Job, Part>): void {
    const began = performance.now();
    let isOver = false;
    let timer: NodeJS.Timeout | undefined;
    let cpuMs = Infinity;
    let before: NodeJS.CpuUsage | undefined;
    const readCpu = async (): Promise<void> => {
      const { user, system } = await worker.cpuUsage(before);
      cpuMs = (user + system) / 1000;
    };
    const finish = (how: JobEnd): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      clearTimeout(wall);
      worker.off('message', take);
      worker.off('exit', exit);
      this.#end(worker, job, how, Math.min(cpuMs, performance.now() - began));
    };
    // A thread inside native engine code answers no question, so the wall clock bounds it.
    const wall = setTimeout(() => {
      finish('late');
    }, WALL_DEADLINES * job.deadlineMs);
    const look = async (): Promise<void> => {
      await readCpu();
      if (isOver) return;
      if (cpuMs >= job.deadlineMs) finish('late');
      else lookAfter(job.deadlineMs - cpuMs);
    };
    const lookAfter = (ms: number): void => {
      timer = setTimeout(
        () => {
          // A thread that no longer answers has ended.
          look().catch(exit);
        },
        Math.max(LOOK_MS_MIN, ms),
      );
    };
    const take = ({ part, done }: Message<Part>): void => {
      if (part !== undefined) job.onPart(part);
      if (done !== true) return;
      clearTimeout(timer);
      readCpu().then(
        () => {
          finish('done');
        },
        () => {
          finish('done');
        },
      );
    };
    const exit = (): void => {
      finish('failed');
    };
    worker.on('message', take);
    worker.once('exit', exit);
    worker.cpuUsage().then(
      (usage) => {
        if (isOver) return;
        before = usage;
        worker.postMessage({ job: job.job });
        lookAfter(job.deadlineMs);
      },
      () => {
        exit();
      },
    );
  }

  /** Ends a job once, and its thread with it unless the job is done. */
  #end(worker: Worker, job: Waiting<Job, Part>, how: JobEnd, ms: number): void {
    if (how !== 'done') {
      if (this.#worker === worker) this.#worker = null;
      void worker.terminate();
    }
    if (this.#running !== job) return;
    this.#running = null;
    job.end(how, ms);
    this.#next();
  }
}
