// Runs a test API in its own process, for tests that kill or pause it. Reports its address to the
// parent.
import { die } from '../../ops/platform/leave.ts';
import { startTestApi } from '../integration/api/an_api.ts';

process.on('disconnect', die);
const { url, port } = await startTestApi({
  natsUrl: process.env['TEST_NATS_URL'] ?? '',
  clickhouseUrl: process.env['TEST_CLICKHOUSE_URL'] ?? '',
  ...(process.env['TEST_LLM_URL'] === undefined ? {} : { llmUrl: process.env['TEST_LLM_URL'] }),
});
process.send?.({ url, port });
