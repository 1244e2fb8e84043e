/** Owns what is put aside of steps that were kept and can be written no more. */
import type { CallId } from '../../model/ids.ts'
import { callIsStored } from '../../store/call-steps.ts'
import type { Place } from '../../store/journal-file.ts'
import type { Sql } from '../../store/sql.ts'
import { isInLog } from '../../store/write-steps.ts'
import { birthOfText } from '../call/birth/kept-birth.ts'
import { stepOfText } from '../call/call-step.ts'

type Kept = { readonly source: { read(place: Place): Promise<string> }; readonly place: Place }

/** Without what had been written before the call was taken. Of a call that was deleted nothing is kept; of one that was never written, all. */
export async function linesOfUnwritten(sql: Sql, callId: CallId, given: readonly Kept[]): Promise<string[]> {
  const texts = await Promise.all(given.map(({ source, place }) => source.read(place).catch(() => null)))
  const isUnborn = texts.some((text) => text !== null && birthOfText(text) !== null)
  if (!isUnborn && !(await callIsStored(sql, callId))) return []
  const lines: string[] = []
  for (const text of texts) {
    if (text === null) lines.push('{"damaged":true}')
    else if (isUnborn || !(await isInLog(sql, stepOfText(text)))) lines.push(text)
  }
  return lines
}
