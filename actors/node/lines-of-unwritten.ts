/** Owns what is put aside of steps that were kept and can be written no more. */
import type { CallId } from '../../model/ids.ts'
import { callHasWords } from '../../store/call-steps.ts'
import type { Place } from '../../store/journal-file.ts'
import type { Sql } from '../../store/sql.ts'
import { isInLog } from '../../store/write-steps.ts'
import { birthOfText } from '../call/birth/kept-birth.ts'
import { stepOfText, type KeptStep } from '../call/call-step.ts'
import type { BringFound } from './found-turns.ts'

type Kept = { readonly source: { read(place: Place): Promise<string> }; readonly place: Place }

type Deps = { readonly sql: Sql; readonly bringFound: BringFound }

/**
 * Without what had been written before the call was taken, and without turns that its other actor has written. Of a call that was deleted, or whose words
 * were removed, nothing is kept; of one that was never written, all.
 */
export async function linesOfUnwritten(
  { sql, bringFound }: Deps,
  callId: CallId,
  given: readonly Kept[],
  signal: AbortSignal,
): Promise<string[]> {
  const texts = await Promise.all(given.map(({ source, place }) => source.read(place).catch(() => null)))
  const isUnborn = texts.some((text) => text !== null && birthOfText(text) !== null)
  if (isUnborn) return texts.map((text) => text ?? damaged)
  if (!(await callHasWords(sql, callId))) return []
  const lines: { readonly text: string; readonly step: KeptStep | null }[] = []
  for (const text of texts) {
    const step = text === null ? null : stepOfText(text)
    if (step === null || !(await isInLog(sql, step))) lines.push({ text: text ?? damaged, step })
  }
  const there = await bringFound(
    callId,
    lines.flatMap(({ step }) => step ?? []),
    signal,
  )
  return lines.flatMap(({ text, step }) => (step && there.has(step) ? [] : [text]))
}

const damaged = '{"damaged":true}'
