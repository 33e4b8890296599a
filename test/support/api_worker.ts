// Runs a test API in its own process, for tests that kill or pause it. Reports its address to the
// parent.
import { die } from '../../ops/platform/leave.ts';
import { startTestApi } from '../integration/api/an_api.ts';

process.on('disconnect', die);
const { TEST_NATS_URL, TEST_CLICKHOUSE_URL, TEST_LLM_URL, TEST_ANTHROPIC_URL } = process.env;
const { url, port } = await startTestApi({
  natsUrl: TEST_NATS_URL ?? '',
  clickhouseUrl: TEST_CLICKHOUSE_URL ?? '',
  ...(TEST_LLM_URL === undefined ? {} : { llmUrl: TEST_LLM_URL }),
  ...(TEST_ANTHROPIC_URL === undefined ? {} : { anthropicUrl: TEST_ANTHROPIC_URL }),
});
process.send?.({ url, port });
