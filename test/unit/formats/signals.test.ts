// Subjects of plain NATS messages are a protocol between processes of different versions: each is written out here by hand.
import { expect, it } from 'vitest';
import {
  budgetAnswerSubject,
  budgetQuestionSubject,
  questionSerial,
} from '../../../schemas/signals/budget_questions.ts';
import { forgetSubject, forgottenPartition } from '../../../schemas/signals/erasure.ts';
import { HEARTBEAT_SUBJECT } from '../../../schemas/signals/heartbeats.ts';
import { JOB_CALL_GROUP, JOB_CALL_SUBJECT } from '../../../schemas/signals/job_calls.ts';
import { landingsShape, LANDINGS_SUBJECT } from '../../../schemas/signals/landing_reports.ts';
import { LIMIT_STATE_SUBJECT, spentSubject } from '../../../schemas/signals/rate_limits.ts';
import { reservationsShape, reservationsSubject, reservingProcess } from '../../../schemas/signals/reservations.ts';
import { TRACES_DELETED_SUBJECT } from '../../../schemas/signals/retention.ts';

it('every signal keeps the subject that processes of older versions use', () => {
  expect([
    HEARTBEAT_SUBJECT,
    LANDINGS_SUBJECT,
    JOB_CALL_SUBJECT,
    JOB_CALL_GROUP,
    spentSubject('a'),
    LIMIT_STATE_SUBJECT,
    reservationsSubject('a'),
    budgetQuestionSubject('a'),
    budgetAnswerSubject('a', 7),
    budgetAnswerSubject('a', '*'),
    forgetSubject(3),
    forgetSubject('*'),
    TRACES_DELETED_SUBJECT,
  ]).toEqual([
    'workers.beat',
    'workers.landings',
    'jobs.run',
    'jobs',
    'limits.spent.a',
    'limits.state',
    'usage.let_in.a',
    'usage.ask.a',
    'usage.answer.a.7',
    'usage.answer.a.*',
    'erase.forget.3',
    'erase.forget.*',
    'retention.deleted',
  ]);
});

it('the token that a subject is built from is read back from it', () => {
  expect(reservingProcess(reservationsSubject('0b1c-2'))).toBe('0b1c-2');
  expect(questionSerial(budgetAnswerSubject('0b1c-2', 42))).toBe(42);
  expect(forgottenPartition(forgetSubject(17))).toBe(17);
});

it('messages of an older version, which lack the newer fields, are read with their defaults', () => {
  expect(reservationsShape.parse({ begun: [], confirmed: [], cancelled: [] })).toEqual({
    n: 0,
    ready: false,
    gone: false,
    begun: [],
    confirmed: [],
    cancelled: [],
    crossed: [],
  });
  const report = { partition: 1, epoch: 2, landed_through: 3, after: 0, log_seq: 0, rows: [] };
  expect(landingsShape.parse([report])).toEqual([{ ...report, read_through: 0, behind: true }]);
});
