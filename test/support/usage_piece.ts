// Rows of usage_events as the lander sends them.
import { type LandingPiece, pieceOfRows } from '../../pipeline/landing/landing_piece.ts';
import type { Cells } from '../../sql/client/native_block.ts';
import { USAGE_EVENTS } from '../../sql/stores/landing_tables.ts';

/** @param rows as usageCells returns them */
export const usagePiece = (rows: readonly Cells[]): LandingPiece =>
  pieceOfRows(
    USAGE_EVENTS,
    rows.map((wire) => ({ wire, partition: 0, epoch: 1, log_seq: 0, key: '', event: null })),
  );
