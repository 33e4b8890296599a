// A worker thread for work that must not hold up its process, and that a deadline ends. In: jobs. Out: the parts of each job as the
// thread finishes them, and how the job ended. Guarantees: run never rejects; a job that is not done in its time is ended with its
// thread, and the next job gets a new one; jobs that wait are bounded in number and bytes.
// A deadline is CPU time of the thread, so that a busy machine ends no job that does little; the wall clock ends what takes many times as long.
// The thread's module says { ready: true } once, answers each { job } with any number of { part }, and ends it with { done: true }.
import { Worker } from 'node:worker_threads';

/** Jobs that wait, and their size, before more are refused. */
const WAITING_MAX = 1000;
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
/** How long a thread may take until it is ready. Loading its modules takes a fraction of a second. */
const START_MS = 10_000;
const HEAP_MB_MAX = 256;
/** A job that has not used up its time is ended after this many times its deadline by the wall clock. */
const WALL_DEADLINES = 20;
/** The thread's CPU time is looked at no more often than this. */
const LOOK_MS_MIN = 5;

/** late: ended by its deadline. refused: too much waits. failed: the thread died or did not start. */
export type JobEnd = 'done' | 'late' | 'refused' | 'failed';

export interface DeadlineJob<Job, Part> {
  job: Job;
  /** What the job weighs while it waits, bytes. */
  bytes: number;
  /** CPU time that it may take, milliseconds; the wait before it is not counted. */
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

  /** @param module of the thread; it is started with the first job */
  constructor(module: URL) {
    this.#module = module;
  }

  /** Resolves when the job has ended; `ms` is the time that it took, of the CPU where it is known. */
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

  /** Ends the thread; jobs that run or wait have failed. */
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
    // A thread answers nothing while it is in code of the engine itself.
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
          // A thread that cannot be asked any more has ended.
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

  /** Ends a job once. A thread whose job is not done is ended too. */
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
