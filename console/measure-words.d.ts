/** Owns the types of measure-words.js, which the page and the command share. */

export type ValueWords = (name: string, value: number | null | undefined) => string

export type MeasureWords = (measure: {
  readonly name: string
  readonly value?: number | null
  readonly events: number
  readonly reason?: string | null
}) => string

export const valueWords: ValueWords
export const measureWords: MeasureWords
