/** Moving through the slides of a story. */

const SWIPE_PIXELS = 40;

/** The slide that a key leads to; null if the key means nothing here. */
export function slideForKey(key: string, index: number, count: number): number | null {
  const steps: Record<string, number> = {
    ArrowRight: index + 1,
    ArrowDown: index + 1,
    PageDown: index + 1,
    " ": index + 1,
    ArrowLeft: index - 1,
    ArrowUp: index - 1,
    PageUp: index - 1,
    Home: 0,
    End: count - 1,
  };
  const step = steps[key];
  return step === undefined ? null : clampSlide(step, count);
}

/** The slide after a horizontal swipe of so many pixels. */
export function slideForSwipe(pixels: number, index: number, count: number): number {
  if (Math.abs(pixels) < SWIPE_PIXELS) return index;
  return clampSlide(pixels < 0 ? index + 1 : index - 1, count);
}

/** An index within the story. */
export function clampSlide(index: number, count: number): number {
  return Math.max(0, Math.min(count - 1, index));
}
