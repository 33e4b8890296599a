// Rows of usage_events as the lander sends them.
import { type LandingPiece, pieceOfRows } from '../../pipeline/landing/landing_piece.ts';
import { USAGE_EVENTS } from '../../sql/stores/landing_tables.ts';

/** @param lines rows on the wire */
export const usagePiece = (lines: readonly string[]): LandingPiece =>
  pieceOfRows(
    USAGE_EVENTS,
    lines.map((wire) => ({ wire, partition: 0, epoch: 1, log_seq: 0, key: '', event: null })),
  );
