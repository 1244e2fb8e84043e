/** Owns what the self-test wants of a finished call: a transcript, values with the words that show them, and a next action. */
import type { Parley } from '../../../app/parley.ts'
import { toPhoneCall, type PhoneCall } from '../../../model/phone-call.ts'
import type { CallRow } from '../../../store/call-rows.ts'
import { listTurns } from '../../../store/transcripts.ts'

export type Extracted = {
  readonly turns: number
  readonly values: readonly { readonly key: string; readonly value: string; readonly quote: string }[]
  /** With its data; null without one. */
  readonly nextAction: string | null
}

const leastValues = 3

export const isExtracted = ({ turns, values, nextAction }: Extracted): boolean =>
  turns > 0 && values.length >= leastValues && nextAction !== null

/** Values without evidence do not count, nor does evidence that the transcript has not got. */
export async function extractedOf({ sql }: Pick<Parley, 'sql'>, row: CallRow): Promise<Extracted> {
  const { dimensions = {}, evidence = {}, nextAction, nextActionData } = toPhoneCall(row)
  const turns = await listTurns(sql, row.accountId, row.id)
  const values = Object.entries(dimensions).flatMap(([key, value]) => {
    const { turn, quote = '' } = evidence[key] ?? {}
    const said = turns.find(({ turnIndex }) => turnIndex === turn)
    return said?.text.includes(quote)
      ? [{ key, value: typeof value === 'string' ? value : JSON.stringify(value), quote }]
      : []
  })
  return { turns: turns.length, values, nextAction: actionOf(nextAction, nextActionData) }
}

function actionOf(key: string | undefined, data: PhoneCall['nextActionData']): string | null {
  if (key === undefined || key === 'undetermined') return null
  return data === undefined ? key : `${key} ${JSON.stringify(data)}`
}

export const rowsOf = ({ turns, values, nextAction }: Extracted): [string, string][] => [
  ['  transcript', `${turns} turns`],
  ...values.map(({ key, value, quote }): [string, string] => [`  ${key}`, `${value}: “${quote}”`]),
  ['  next action', nextAction ?? 'none'],
]
