import { expect, it } from 'vitest';
import { natsConfigText } from '../../../ops/launch/nats/config.ts';

const alone = { dataDir: '/data/nats', port: 4222, sync: 'always', logFile: '/logs/nats.log' };

it('a single server has no cluster', () => {
  const text = natsConfigText(alone);
  expect(text).toContain('server_name: "millrace"');
  expect(text).toContain('sync_interval: always');
  expect(text).not.toContain('cluster');
});

it('no server opens a monitoring port, which would answer without credentials', () => {
  expect(natsConfigText(alone)).not.toMatch(/^\s*(http|https|http_port|https_port|monitor_port)\b/m);
});

it('a node of a cluster names itself, the address where others reach it, and theirs', () => {
  const cluster = {
    cluster: 'millrace',
    name: 'n1',
    secret: 'abc',
    listen: '10.0.0.1:6222',
    routes: ['10.0.0.2:6222', '10.0.0.3:6222'],
  };
  const text = natsConfigText({ ...alone, cluster });
  expect(text).toContain('server_name: "n1"');
  expect(text).toContain('routes: ["nats://route:abc@10.0.0.2:6222", "nats://route:abc@10.0.0.3:6222"]');
  expect(text).toContain('authorization { user: "route", password: "abc" }');
  expect(text).not.toContain('advertise');
});
