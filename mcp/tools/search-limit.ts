/** Owns how much a search answers at most. Clients are promised no bound of its limit, so one that asks for more than we give makes no mistake. */
import { z } from 'zod'

export const SearchLimit = z
  .number()
  .int()
  .min(1)
  .default(20)
  .describe('How many at most: 20 unless named; more than 100 reads as 100.')

export const mostOf = (limit: number): number => Math.min(limit, 100)
