// The filter by action, with the actions of the API as suggestions.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useId, useState } from 'react';
import { type ApiDocument, documentQuery } from '../../client/api_document.ts';
import { Input } from '../../ui/field.tsx';

/** The field. The suggestions are read when it takes the focus. */
export function ActionField({ value, onChange }: { value: string; onChange: (action: string) => void }): ReactElement {
  const id = useId();
  const [isUsed, setUsed] = useState(false);
  const { data } = useQuery({ ...documentQuery, select: actionsOf, enabled: isUsed });
  return (
    <>
      <Input
        aria-label="Action"
        placeholder="Action"
        list={id}
        data-search-field=""
        value={value}
        onFocus={() => {
          setUsed(true);
        }}
        onChange={({ target }) => {
          onChange(target.value);
        }}
      />
      <datalist id={id}>
        {data?.map((action) => (
          <option key={action} value={action} />
        ))}
      </datalist>
    </>
  );
}

/** Returns the actions that the operations of the API record. */
function actionsOf({ paths }: ApiDocument): string[] {
  const actions = Object.values(paths).flatMap((operations) =>
    Object.values(operations).flatMap((operation) => operation['x-audit'] ?? []),
  );
  return [...new Set(actions)].toSorted();
}
