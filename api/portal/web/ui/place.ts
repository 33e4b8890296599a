// Places a layer (menu, list, tooltip) beside the element that it belongs to, within the window. The
// layer is a popover, so it stands above everything and is not cut by scrolling parents.

const MARGIN = 8;

/**
 * Sets the place of a layer that is shown: below the anchor, or above it where there is more room.
 * @param align edge of the anchor that the layer shares
 */
export function placeLayer(layer: HTMLElement, anchor: Element, align: 'start' | 'end' = 'start', gap = 4): void {
  const at = anchor.getBoundingClientRect();
  const below = innerHeight - at.bottom - gap - MARGIN;
  const above = at.top - gap - MARGIN;
  layer.style.maxHeight = '';
  const { width, height } = layer.getBoundingClientRect();
  const up = height > below && above > below;
  const room = Math.max(up ? above : below, 80);
  const wanted = align === 'start' ? at.left : at.right - width;
  layer.style.left = `${Math.max(MARGIN, Math.min(wanted, innerWidth - width - MARGIN))}px`;
  layer.style.top = `${up ? at.top - gap - Math.min(height, room) : at.bottom + gap}px`;
  layer.style.maxHeight = `${room}px`;
}
