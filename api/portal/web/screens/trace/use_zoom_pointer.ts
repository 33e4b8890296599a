// Zoom and pan of the waterfall by wheel and drag. Each has a way by keys as well: + - 0 and Shift
// with an arrow. Events of one frame are drawn once.
import { type RefObject, useEffect } from 'react';
import { panBy, zoomAt } from '../../trace/model/axis.ts';
import { useTraceStore } from '../../trace/store.ts';

const WHEEL_PER_DOUBLING = 240;
const DRAG_MIN_PX = 4;

/** The element in the head of the grid that shows the axis; rows have their bars below it. */
export const AXIS_ATTRIBUTE = 'data-axis';

export function useZoomPointer(grid: RefObject<HTMLDivElement | null>): void {
  const store = useTraceStore();
  useEffect(() => {
    const { current } = grid;
    if (current === null) return undefined;
    const axisBox = (): DOMRect | undefined => current.querySelector(`[${AXIS_ATTRIBUTE}]`)?.getBoundingClientRect();
    const onWheel = (event: WheelEvent): void => {
      const box = axisBox();
      if (box === undefined || box.width === 0) return;
      const { axis, view } = store.get();
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const anchor = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
        store.setView(zoomAt(axis, view, 2 ** (-event.deltaY / WHEEL_PER_DOUBLING), anchor));
      } else if (event.shiftKey && event.clientX >= box.left) {
        event.preventDefault();
        store.setView(panBy(axis, view, (event.deltaY + event.deltaX) / box.width));
      }
    };
    let drag: { x: number; moved: boolean; width: number } | null = null;
    const onDown = (event: PointerEvent): void => {
      const box = axisBox();
      if (box === undefined || event.button !== 0 || event.pointerType === 'touch' || event.clientX < box.left) return;
      drag = { x: event.clientX, moved: false, width: box.width };
    };
    const onMove = (event: PointerEvent): void => {
      if (drag === null || (!drag.moved && Math.abs(event.clientX - drag.x) < DRAG_MIN_PX)) return;
      if (!drag.moved) current.setPointerCapture(event.pointerId);
      const { axis, view } = store.get();
      store.setView(panBy(axis, view, (drag.x - event.clientX) / drag.width));
      drag = { ...drag, x: event.clientX, moved: true };
    };
    const onUp = (): void => {
      drag = null;
    };
    current.addEventListener('wheel', onWheel, { passive: false });
    current.addEventListener('pointerdown', onDown);
    current.addEventListener('pointermove', onMove);
    current.addEventListener('pointerup', onUp);
    current.addEventListener('pointercancel', onUp);
    return () => {
      current.removeEventListener('wheel', onWheel);
      current.removeEventListener('pointerdown', onDown);
      current.removeEventListener('pointermove', onMove);
      current.removeEventListener('pointerup', onUp);
      current.removeEventListener('pointercancel', onUp);
    };
  }, [grid, store]);
}
