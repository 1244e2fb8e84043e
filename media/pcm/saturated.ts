/** Owns the bounds of a sample of 16 bits. */

/** What is beyond them is the loudest there is. */
export const saturated = (value: number): number => Math.max(-32_768, Math.min(32_767, value))
