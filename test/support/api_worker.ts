// An API of a test as a process of its own, for tests that kill or pause it: says where it listens.
import { die } from '../../ops/platform/leave.ts';
import { startTestApi } from '../integration/api/an_api.ts';

process.on('disconnect', die);
const { url, port } = await startTestApi({
  natsUrl: process.env['TEST_NATS_URL'] ?? '',
  clickhouseUrl: process.env['TEST_CLICKHOUSE_URL'] ?? '',
  ...(process.env['TEST_LLM_URL'] === undefined ? {} : { llmUrl: process.env['TEST_LLM_URL'] }),
});
process.send?.({ url, port });
