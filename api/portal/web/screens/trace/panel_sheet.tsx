// The span panel on a narrow screen: a sheet over the full height.
import type { ReactElement, ReactNode } from 'react';
import { Dialog } from '../../ui/dialog.tsx';

export function PanelSheet({ children, onClose }: { children: ReactNode; onClose: () => void }): ReactElement {
  return (
    <Dialog title="Span" form="sheet" onClose={onClose}>
      {children}
    </Dialog>
  );
}
