// Runs a judging worker in its own process, for tests that kill it.
import { die } from '../../ops/platform/leave.ts';
import { startTestJudging } from './judging.ts';

process.on('disconnect', die);
await startTestJudging({
  natsUrl: process.env['TEST_NATS_URL'] ?? '',
  clickhouseUrl: process.env['TEST_CLICKHOUSE_URL'] ?? '',
  upstreamUrl: process.env['TEST_UPSTREAM_URL'] ?? '',
});
process.send?.('ready');
