/**
 * Owns what a person reads before outbound calls are confirmed: who is called, by which worker, from which number, when, following what, and which limits
 * apply. Names and texts of others stand in quotation marks, on one line, and cut: they cannot pass for words of this service. Pure.
 */
import type { CallLimits, PlannedCall } from '../../model/outbound-calls.ts'

export function summaryOf(calls: readonly PlannedCall[], limits: CallLimits): string {
  const [first] = calls
  if (calls.length === 1 && first) return `${sentencesOf(first)}\n${limitsIn(limits)}`
  const listed = calls.map((call, index) => `${index + 1}. ${sentencesOf(call)}`)
  return [`${calls.length} calls:`, ...listed, limitsIn(limits)].join('\n')
}

function sentencesOf(call: PlannedCall): string {
  const { workerName, calleeName, toNumber, fromNumber } = call
  const callee = calleeName === null ? toNumber : `${quoted(calleeName)} at ${toNumber}`
  return `The worker ${quoted(workerName)} calls ${callee} from ${fromNumber} ${timeIn(call)}. ${followed(call)}${background(call)}`
}

function timeIn({ scheduledAt, utcOffset }: PlannedCall): string {
  return scheduledAt === null ? 'as soon as it is confirmed' : `on ${timeInWords(scheduledAt, utcOffset)}`
}

/** `Tuesday, 1 December 2026 at 09:30 (UTC+01:00)`. */
export function timeInWords(at: number, utcOffset: string): string {
  const form = { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' } as const
  const date = new Intl.DateTimeFormat('en-GB', { ...form, timeZone: utcOffset })
  const time = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: utcOffset })
  return `${date.format(at)} at ${time.format(at)} (UTC${utcOffset === '+00:00' ? '' : utcOffset})`
}

function followed({ scripts, instructions }: PlannedCall): string {
  if (instructions !== null) return `It follows these instructions: ${quoted(instructions, 500)}.`
  const titles = scripts.map(({ title }) => quoted(title)).join(', ')
  return `It follows the call script${scripts.length === 1 ? '' : 's'} ${titles}.`
}

const background = ({ context }: PlannedCall): string =>
  context === null ? '' : ` It is told as background: ${quoted(context, 300)}.`

function limitsIn({ dailyMinutes, maxConcurrentCalls, maxCallsPerSecond, homeCountryOnly }: CallLimits): string {
  const limits = [
    `at most ${maxConcurrentCalls} calls at once`,
    ...(maxCallsPerSecond === null ? [] : [`${maxCallsPerSecond} begun in a second`]),
    ...(dailyMinutes === null ? [] : [`${dailyMinutes} minutes of outbound talk a day`]),
    ...(homeCountryOnly ? ['numbers of the home country only'] : []),
  ]
  return `Limits: ${limits.join(', ')}.`
}

/** Control characters, and what would change the direction of the text around it. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu

function quoted(text: string, most = 100): string {
  const line = text.replace(unseen, ' ').trim().replaceAll('"', '”')
  return `"${line.length > most ? `${line.slice(0, most).toWellFormed()}…` : line}"`
}
