// Wires the intake of telemetry: the publisher to the ingest log, the backlog shares that follow
// it, the disk watch, and the gateway calls in progress.
import { followLandingReports } from '../../ops/exchange/landing_reports.ts';
import { Bag } from '../../ops/platform/bag.ts';
import { DiskWatch } from '../../ops/platform/disk_watch.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import { BacklogQueue } from '../admission/backlog_queue.ts';
import { BacklogShares } from '../admission/backlog_shares.ts';
import { callsEnded, type OpenCall } from '../intake/gateway/handler.ts';
import { Recorder } from '../intake/gateway/recorder.ts';
import { AckInbox } from '../intake/ingest/ack_inbox.ts';
import { Publisher } from '../intake/ingest/publisher.ts';
import type { WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

export interface Intake {
  publisher: Publisher;
  backlog: BacklogQueue;
  disk: DiskWatch;
  stop: () => void;
}

/** Opens the intake. @param partitions number of partitions of the ingest log */
export async function openIntake(parts: WiringParts, partitions: number): Promise<Intake> {
  const { log, tracked, waits, onProblem } = parts;
  const disk = await watchDisk(parts);
  const shares = new BacklogShares(partitions);
  const backlog = new BacklogQueue(shares);
  const stopHearing = followLandingReports(
    log.nc,
    (landings) => {
      shares.landed(landings.map(({ partition, landed_through }) => [partition, landed_through]));
      backlog.serve();
    },
    onProblem,
  );
  const publisher = new Publisher({
    port: new AckInbox(log.nc, tracked, (stream, seq) => log.streams.layout.named(stream)?.position(seq)),
    partitions,
    streams: log.streams.layout.open,
    now: () => performance.now(),
    commitMsMax: waits?.commitMsMax,
    observe: (events, seconds) => {
      metrics.logPublishSeconds.observe(seconds);
      metrics.logPublishEvents.observe(events);
    },
    onStored: (events, positions) => {
      shares.stored(events, positions);
    },
  });
  const stopFollowing = log.streams.onChange(({ open }) => {
    publisher.changeStreams(open);
  });
  return {
    publisher,
    backlog,
    disk,
    stop: () => {
      stopFollowing();
      stopHearing();
      disk.stop();
    },
  };
}

function watchDisk({ env, logger, onProblem }: WiringParts): Promise<DiskWatch> {
  return DiskWatch.start({
    folder: env.SERVICE_DISK_GUARD_DIR ?? null,
    onChange: (low, { free, total }) => {
      metrics.diskLow.set(low ? 1 : 0);
      const facts = { free_bytes: free, total_bytes: total };
      if (low) logger.error(facts, 'the disk is nearly full: ingest answers 429 until space is freed');
      else logger.warn(facts, 'the disk has enough free space again: ingest is accepted');
    },
    onLook: ({ free }) => {
      metrics.diskFreeBytes.set(free);
    },
    onProblem,
  });
}

/** The gateway calls in progress, and the recorder of their spans. */
export interface GatewayCalls {
  open: Bag<OpenCall>;
  recorder: Recorder;
  /** Ends every call; the recorder records what it used. */
  endAll: () => void;
  /** Resolves once every call has ended and its record is stored or given up. */
  flush: () => Promise<void>;
}

export function openGatewayCalls(
  { logger }: Pick<WiringParts, 'logger'>,
  { deletions, isGone }: Pick<Stores, 'deletions' | 'isGone'>,
  { publisher, disk }: Pick<Intake, 'publisher' | 'disk'>,
): GatewayCalls {
  const open = new Bag<OpenCall>();
  // A call of an organization that is being deleted ends at once; what it used is recorded nowhere.
  deletions.onChange(({ org_id }) => {
    for (const call of open) if (call.org_id === org_id) call.res.destroy();
  });
  const recorder = new Recorder({
    publish: (events) => {
      const wanted = events.filter(({ event }) => !isGone(event.org_id));
      return wanted.length === 0 ? Promise.resolve(new Map<number, number>()) : publisher.publish(wanted);
    },
    disk,
    now: () => performance.now(),
    onLost: (reason, cause) => {
      metrics.gatewayRecordsLostTotal.inc({ reason });
      logger.error({ err: cause, reason }, 'the record of a gateway call was lost');
    },
  });
  return {
    open,
    recorder,
    endAll: () => {
      for (const { res } of open) res.destroy();
    },
    flush: async () => {
      await callsEnded(open);
      await recorder.flush();
    },
  };
}
