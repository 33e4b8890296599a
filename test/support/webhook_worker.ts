// Runs a webhook worker in its own process, for tests that kill it.
import { die } from '../../ops/platform/leave.ts';
import { startTestWebhooks } from './webhooks.ts';

process.on('disconnect', die);
await startTestWebhooks(process.env['TEST_NATS_URL'] ?? '');
process.send?.('ready');
