import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { auditableChanges, CHANGES_BYTES_MAX } from '../../../ops/exchange/audit_changes.ts';

const read = (changes: Record<string, unknown>): unknown => JSON.parse(auditableChanges(changes));

describe('the changes of an audit record', () => {
  it("an audit record's changes keep what changed, and lose every secret field by its name, however deep it is", () => {
    expect(
      read({
        name: 'ci',
        scopes: ['ingest:write'],
        key_prefix: 'sk_svc_ABCDE',
        raw_key: 'sk_svc_0123456789abcdef',
        token: 't',
        secret: 's',
        password: 'p',
        register_token: 'r',
        owner: { email: 'a@b.c', Webhook_Secret: 's', list: [{ token: 't', id: 1 }] },
        policy: { from: { max_prompt_tokens: 5, tokens: { used: 1 } }, to: null },
      }),
    ).toEqual({
      name: 'ci',
      scopes: ['ingest:write'],
      key_prefix: 'sk_svc_ABCDE',
      owner: { email: 'a@b.c', list: [{ id: 1 }] },
      policy: { from: { max_prompt_tokens: 5, tokens: { used: 1 } }, to: null },
    });
  });

  it("an audit record's changes blank a secret of the service in a text under any name", () => {
    expect(read({ note: 'made sk_svc_0123456789abcdef and whsec_0123456789abcdef, rt_0123456789abcdef' })).toEqual({
      note: 'made sk_svc_*** and whsec_***, rt_***',
    });
  });

  it.each([
    ['webhook_url', 'https://hooks.example/services/T0/B0/s3cret', 'https://hooks.example/***'],
    ['webhook_url', 'https://hooks.example:8443/?key=s3cret', 'https://hooks.example:8443?***'],
    ['webhook_url', 'https://user:s3cret@hooks.example', 'https://***@hooks.example'],
    ['webhook_url', 'https://hooks.example/#s3cret', 'https://hooks.example#***'],
    ['webhook_url', 'https:user:s3cret@hooks.example\\s3cret', 'https://***@hooks.example/***'],
    ['webhook_url', 'https://hooks.example', 'https://hooks.example'],
    ['url', 'nats://s3cret@127.0.0.1:4222', 'nats://***@127.0.0.1:4222'],
    [
      'description',
      'see https://u:s3cret@a.example/x?y, or (http://b.example/s3cret)',
      'see https://***@a.example/***?*** or (http://b.example/***',
    ],
    ['description', 'https://[s3cret and more', 'https://*** and more'],
    ['repo_url', 'https://ghp_s3cret@github.com/acme/agent?token=s3cret', 'https://***@github.com/acme/agent?***'],
    ['name', 'a ratio of 1://2', 'a ratio of 1://2'],
    ['trace_id', 'run:7', 'run:7'],
  ])('an audit record shows of the URL in %s (%s) where it leads and no secret', (name, url, shown) => {
    expect(read({ [name]: url, nested: { [name]: [url] } })).toEqual({
      [name]: shown,
      nested: { [name]: [expect.not.stringContaining('s3cret')] },
    });
    expect(read({ [name]: url, text: 'x'.repeat(CHANGES_BYTES_MAX) })).toMatchObject({ [name]: shown });
  });

  it('redacting changes takes linear time for texts that nearly are URLs', () => {
    const text = 'a.'.repeat(100_000);
    expect(read({ text: `${text}://` })).toMatchObject({ truncated: true });
  });

  it('changes are bounded in bytes: larger ones keep the names of their fields and their small values', () => {
    const whole = { text: 'x'.repeat(CHANGES_BYTES_MAX - JSON.stringify({ text: '' }).length) };
    expect(read(whole)).toEqual(whole);
    expect(read({ text: `${whole.text}x`, secret: 's', other: 1 })).toEqual({
      truncated: true,
      fields: ['text', 'other'],
      other: 1,
    });
    // Three bytes a character.
    expect(read({ text: '€'.repeat(CHANGES_BYTES_MAX / 2) })).toEqual({ truncated: true, fields: ['text'] });
  });

  it('changes that are too large keep small values and no secret, under displayable names', () => {
    const large = { text: 'x'.repeat(CHANGES_BYTES_MAX) };
    const small = { yes: true, no: false, none: null, n: -1.5, text_256: 'a'.repeat(256), big: 12n, empty: '' };
    const cut = { text_257: 'a'.repeat(257), list: [1], map: { a: 1 }, missing: undefined };
    const secret = {
      token: 't',
      api_secret: 's',
      sk_svc_0123456789abcdef: 1,
      note: `${'a'.repeat(250)} rt_0123456789abcdef`,
    };
    expect(read({ ...large, ...small, ...cut, ...secret, fields: 'mine', truncated: false })).toEqual({
      truncated: true,
      fields: ['text', ...Object.keys(small), ...Object.keys(cut), 'sk_svc_***', 'note', 'fields', 'truncated'],
      ...small,
      big: '12',
    });
    // The length after masking counts.
    expect(read({ ...large, note: `${'a'.repeat(240)} rt_${'b'.repeat(100)}` })).toMatchObject({
      note: `${'a'.repeat(240)} rt_***`,
    });
  });

  it('changes that are too large keep the first small values, as many as fit', () => {
    const many = Object.fromEntries(Array.from({ length: 90 }, (_, n) => [`f${n}`, 'v'.repeat(200)]));
    const { truncated, fields, ...kept } = read(many) as Record<string, unknown>;
    expect([truncated, fields]).toEqual([true, Object.keys(many)]);
    expect(Object.keys(kept)).toEqual(Object.keys(many).slice(0, 19));
  });

  it('redacting changes never fails and never grows them, whatever they contain', () => {
    const loop: Record<string, unknown> = { a: 1 };
    loop['self'] = loop;
    expect(read(loop)).toEqual({ truncated: true, fields: ['a', 'self'], a: 1 });
    expect(read({ big: 12n })).toEqual({ big: '12' });
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`${'f'.repeat(200)}${n}`, 'x'.repeat(50)]));
    expect(Buffer.byteLength(auditableChanges(many))).toBeLessThanOrEqual(CHANGES_BYTES_MAX);
    // Six bytes a character as JSON, in names and in values.
    for (const [name, value] of [
      ['\u0001', '\u0002'.repeat(256)],
      ['€', 'x'.repeat(50_000)],
    ] as const) {
      const wide = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`${name.repeat(60)}${n}`, value]));
      expect(Buffer.byteLength(auditableChanges(wide))).toBeLessThanOrEqual(CHANGES_BYTES_MAX);
    }
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.anything({ withBigInt: true, withDate: true })), (changes) => {
        const text = auditableChanges(changes);
        expect(typeof JSON.parse(text)).toBe('object');
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(CHANGES_BYTES_MAX);
      }),
    );
  });
});
