import { describe, expect, it } from 'vitest';
import { isForAnalysts } from '../../../api/telemetry/analysts/handler.ts';
import { joinQuery, loginOf, readAsked } from '../../../api/telemetry/analysts/request.ts';

const basic = (text: string): { authorization: string } => ({
  authorization: `Basic ${Buffer.from(text).toString('base64')}`,
});
const asked = (search: string, headers = {}) => readAsked(headers, new URLSearchParams(search), 'millrace_org');
const sent = (search: string, headers = {}): Record<string, string> => {
  const read = asked(search, headers);
  if ('code' in read) throw new Error(read.message);
  return Object.fromEntries(read.params);
};
const refused = (search: string, headers = {}): number | null => {
  const read = asked(search, headers);
  return 'code' in read ? read.code : null;
};

describe('a login', () => {
  it('a login comes by header, Basic or parameter, in this order', () => {
    const params = new URLSearchParams('user=c&password=3');
    expect(loginOf({ 'x-clickhouse-user': 'a', 'x-clickhouse-key': '1', ...basic('b:2') }, params)).toEqual({
      user: 'a',
      password: '1',
    });
    expect(loginOf(basic('b:2:3'), params)).toEqual({ user: 'b', password: '2:3' });
    expect(loginOf({}, params)).toEqual({ user: 'c', password: '3' });
    expect(loginOf({ authorization: 'Bearer x' }, new URLSearchParams('password=3'))).toBeNull();
  });

  it.each([
    ['GET', '/', {}, false],
    ['GET', '/', basic('u:p'), true],
    ['POST', '/?query=x', { 'x-clickhouse-user': 'u' }, true],
    ['GET', '/?user=u', {}, true],
    ['PUT', '/?user=u', {}, false],
    ['GET', '/orgs?user=u', {}, false],
    ['GET', '//?user=u', {}, false],
    ['GET', '/ping', {}, true],
    ['POST', '/ping', {}, false],
  ])('a login at the root makes a request one for analysts: %s %s', (method, url, headers, expected) => {
    expect(isForAnalysts({ method, url, headers })).toBe(expected);
  });
});

describe('what goes on to the engine', () => {
  it('the engine receives the database of the views and a time limit, whatever the request says', () => {
    expect(sent('query=SELECT+1&user=u&password=p&readonly=0&quota_key=x&query_id=q&database=default')).toEqual({
      database: 'millrace_org',
      max_execution_time: '57',
    });
    expect(sent('max_execution_time=60')).toMatchObject({ max_execution_time: '57' });
    expect(sent('max_execution_time=0.5')).toMatchObject({ max_execution_time: '1' });
  });

  it('the engine receives the bound parameters and the output format', () => {
    expect(
      sent('param_id=x&date_time_output_format=iso&compress=1&default_format=JSON&client_protocol_version=54460'),
    ).toMatchObject({
      param_id: 'x',
      date_time_output_format: 'iso',
      compress: '1',
      default_format: 'JSON',
      client_protocol_version: '54460',
    });
    expect(sent('', { 'x-clickhouse-format': 'TSV' })).toMatchObject({ default_format: 'TSV' });
  });

  it.each([
    ['max_memory_usage=0', 164],
    ['max_execution_time=0', 164],
    ['max_execution_time=61', 164],
    ['max_execution_time=NaN', 164],
    ['session_id=x', 164],
    ['role=x', 164],
    ['decompress=1', 164],
    ['output_format_schema=x', 164],
    ['format_schema=x', 164],
    ['__proto__=x', 164],
    ['constructor=x', 164],
    ['param_=x', 164],
    ['database=millrace', 81],
    ['default_format=Template', 497],
    ['default_format=Protobuf', 497],
    ['query=a&query=b', 36],
  ])('a parameter is rejected: %s', (search, code) => {
    expect(refused(search)).toBe(code);
  });

  it.each([
    ['x-clickhouse-database', 'system', 81],
    ['x-clickhouse-format', 'CapnProto', 497],
  ])('a header is rejected: %s %s', (name, value, code) => {
    expect(refused('', { [name]: value })).toBe(code);
  });

  it('the query is the one in the URL, then the body', () => {
    expect(joinQuery('SELECT', Buffer.from('1'))).toBe('SELECT\n1');
    expect(joinQuery('', Buffer.from('SELECT 1'))).toBe('SELECT 1');
    expect(joinQuery('SELECT 1', Buffer.alloc(0))).toBe('SELECT 1');
    for (const [text, code] of [
      [Buffer.from('\0'), 62],
      [Buffer.from([0xff]), 36],
      [Buffer.from(' \n'), 62],
    ] as const)
      expect(joinQuery('', text)).toMatchObject({ code });
  });
});
