/** Owns the setting of what calls cost. */
import { z } from 'zod'
import { issuesOf } from '../../model/issues.ts'
import { PriceTable } from '../../model/price-table.ts'
import { text } from './setting.ts'

/** Of a long table the first mistakes are enough to begin with. */
const maxMistakes = 5

/** Each mistake with the place in the table, which is one setting. */
const Table = text.default('').transform((written, context): PriceTable | null => {
  if (written === '') return null
  const given = parsed(written)
  const found = PriceTable.safeParse(given)
  if (found.success) return found.data
  const mistakes = issuesOf(found.error, given).map(({ path, message }) => `${path} ${message}`.trim())
  const message =
    given === undefined
      ? 'must be JSON; PRICE_TABLE_FILE names a file of it'
      : mistakes.slice(0, maxMistakes).join('; ')
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})

function parsed(written: string): unknown {
  try {
    return JSON.parse(written)
  } catch {
    return undefined
  }
}

export const priceSettings = z.object({ PRICE_TABLE: Table })

/** Null: nobody knows what calls cost. */
export const pricesOf = ({ PRICE_TABLE }: z.infer<typeof priceSettings>) => ({ prices: PRICE_TABLE })
