/** Owns what is put aside of steps that were kept and can be written no more. */
import type { Place } from '../../store/journal-file.ts'
import type { Sql } from '../../store/sql.ts'
import { isInLog } from '../../store/write-steps.ts'
import { stepOfText } from '../call/call-step.ts'

type Kept = { readonly source: { read(place: Place): Promise<string> }; readonly place: Place }

/** Without what had been written before the call was taken. */
export async function linesOfUnwritten(sql: Sql, given: readonly Kept[]): Promise<string[]> {
  const lines: string[] = []
  for (const { source, place } of given) {
    const text = await source.read(place).catch(() => null)
    if (text === null) lines.push('{"damaged":true}')
    else if (!(await isInLog(sql, stepOfText(text)))) lines.push(text)
  }
  return lines
}
