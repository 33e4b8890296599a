// The shape of one custom event: a free-form step of an agent, named by name or event_type. Its
// attributes may make it a tool call or a model call. Other fields are allowed.
import { z } from 'zod';
import { eventFields, name, outcome } from './fields.ts';

export const customEvent = z
  .looseObject({ ...eventFields, name: name.nullish(), event_type: name.nullish(), outcome })
  .check((context) => {
    const { value, issues } = context;
    if (value.name == null && value.event_type == null) {
      issues.push({ code: 'custom', path: ['name'], message: 'is required, or event_type', input: value });
    }
  });

export type CustomEvent = z.infer<typeof customEvent>;
