/** Owns how a call's diagnosis reads in a terminal of a hundred columns. Pure. */
import type { CallDiagnostics, DiagnosedTurn } from '../../model/call-diagnostics.ts'
import { toClockOffset } from '../../model/call.ts'

const columns = 100

/** Lines without a line's end. */
export function reportOf(found: CallDiagnostics): string[] {
  const lines = [
    `Call ${found.callId}`,
    found.ending ?? 'It has not ended.',
    ...section('Times', timesOf(found)),
    ...section('Sound', found.quality === null ? ['not told (yet)'] : qualityOf(found.quality)),
    ...section('Use', found.usage === null ? [] : usageOf(found.usage)),
    ...section('Answers, from the end of the caller’s speech', waterfallOf(found.turns.data)),
    ...section('Engines', found.engines.map(engineLine)),
    ...section(
      'Actors',
      found.tenures.some(({ takenOver }) => takenOver) ? found.tenures.map((tenure) => tenureLine(tenure, found)) : [],
    ),
    ...section('Ladder: this service ─ the other side', ladderOf(found)),
    ...section('Course', courseOf(found)),
  ]
  return lines.map(fitting)
}

/** Control characters of others stay out of a terminal. */
const fitting = (line: string): string => {
  const shown = line.replace(/\p{Cc}/gu, '·')
  return shown.length <= columns ? shown : `${shown.slice(0, columns - 1)}…`
}

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)]

function timesOf({ createdAt, startedAt, endedAt }: CallDiagnostics): string[] {
  const since = (at: string | null) => (at === null ? '–' : `${at}  +${offsetOf(at, createdAt)}`)
  return [`created   ${createdAt}`, `answered  ${since(startedAt)}`, `ended     ${since(endedAt)}`]
}

function qualityOf(quality: NonNullable<CallDiagnostics['quality']>): string[] {
  const { mos, codec, received, sent, roundTripMs, concealedMs, lateFrames, strangerPackets } = quality
  const way = (name: string, told: typeof received) =>
    told === null
      ? `${name} not reported`
      : `${name} ${(100 * told.loss).toFixed(2)} % lost, jitter ${told.jitterMs ?? '–'} ms`
  return [
    `MOS ${mos ?? '–'} (estimate), ${codec}, round trip ${roundTripMs ?? '–'} ms`,
    `${way('received:', received)}; ${way('sent:', sent)}`,
    `${concealedMs} ms concealed, ${lateFrames} late frames, ${strangerPackets ?? 0} packets of strangers`,
  ]
}

function usageOf(usage: NonNullable<CallDiagnostics['usage']>): string[] {
  const { speechInSeconds, speechOutSeconds, toolCalls, carrierSeconds, engines, priceVersion } = usage
  const cost = (price: number | null): string =>
    price === null ? 'price not known' : `${price} ${usage.currency ?? ''}`
  const carried = carrierSeconds === null ? [] : [`carrier ${carrierSeconds.toFixed(1)} s: ${cost(usage.carrierPrice)}`]
  return [
    `caller ${speechInSeconds.toFixed(1)} s of speech, agent ${speechOutSeconds.toFixed(1)} s, ${toolCalls} tool calls`,
    ...carried,
    ...engines.map(({ engine, model, unit, amount, price }) => `${engine} ${model} ${unit} ${amount}: ${cost(price)}`),
    `in all: ${cost(usage.price)}${priceVersion === null ? '' : ` (prices of ${priceVersion})`}`,
  ]
}

/** Stages in their order, each with what its part of the bar is drawn with. */
const stages = [
  ['endOfTurn', '░', 'end of turn'],
  ['recognised', '▒', 'recognised'],
  ['decided', '▓', 'decided'],
  ['firstAudio', '█', 'first sound'],
  ['firstPacket', '▪', 'first packet'],
] as const
const barColumns = 56

function waterfallOf(turns: readonly DiagnosedTurn[]): string[] {
  const answers = turns.flatMap((turn) => (turn.latency === null ? [] : [{ ...turn, latency: turn.latency }]))
  if (answers.length === 0) return []
  const longest = Math.max(...answers.map(({ latency }) => lastOf(latency)), 1)
  const rows = answers.map(({ turnIndex, from, source, latency }) => {
    const bar = barOf(latency, longest).padEnd(barColumns)
    const place = `${String(turnIndex).padStart(4)}  ${toClockOffset(from)}`
    return `${place}  ${bar} ${String(lastOf(latency)).padStart(6)} ms  ${source ?? ''}`
  })
  return [stages.map(([, sign, name]) => `${sign} ${name}`).join('  '), ...rows]
}

type Latency = NonNullable<DiagnosedTurn['latency']>

const lastOf = (latency: Latency): number => Math.max(...stages.map(([stage]) => latency[stage] ?? 0))

/** A stage that nobody measured belongs to the next one. */
export function barOf(latency: Latency, longest: number): string {
  let bar = ''
  for (const [stage, sign] of stages) {
    const at = latency[stage]
    if (at !== null) bar = bar.padEnd(Math.round((barColumns * at) / longest), sign)
  }
  return bar
}

function engineLine({ from, to, engine, purpose, ending, details }: CallDiagnostics['engines'][number]): string {
  const end = to === null ? 'runs' : `until ${timeOf(to)}: ${ending ?? 'unknown'}`
  return `${timeOf(from)}  ${(engine ?? 'not known').padEnd(18)} ${purpose}, ${end}${details === null ? '' : ` (${details})`}`
}

function tenureLine(
  { epoch, from, steps, takenOver }: CallDiagnostics['tenures'][number],
  { createdAt }: CallDiagnostics,
) {
  return `+${offsetOf(from, createdAt)}  epoch ${epoch}, ${steps} steps${takenOver ? ', took the call over' : ''}`
}

/** Who sent what, by SIP or a socket, with the description's sound. */
function ladderOf({ messages, createdAt }: CallDiagnostics): string[] {
  const rows = messages.data.map(({ at, direction, protocol, remote, text }) => {
    const arrow = direction === 'in' ? '<───' : '───>'
    const shown = (protocol === 'ws' ? startOfJson(text) : startOfSip(text)).slice(0, 44)
    const sound = /(?:^|\\n)m=audio (\d+)/m.exec(text)?.[1]
    return `+${offsetOf(at, createdAt)}  ${arrow} ${protocol} ${remote.padEnd(21)} ${shown}${sound ? ` (audio ${sound})` : ''}`
  })
  return messages.leftOut === 0 ? rows : [...rows, `and ${messages.leftOut} more`]
}

const startOfSip = (text: string): string => (text.split('\r\n')[0] ?? '').replace(/ ?SIP\/2\.0 ?/, '')

/** It may have been cut. */
function startOfJson(text: string): string {
  const of = (name: string): string => new RegExp(`"${name}":"([^"]*)"`).exec(text)?.[1] ?? ''
  return [of('type'), of('status') || of('reason') || of('candidate') || of('message')].join(' ').trim()
}

type Entry = { readonly at: string; readonly kind: string; readonly text: string }

/** All that has a time, in its order; of one time as the log has it. */
function courseOf(found: CallDiagnostics): string[] {
  const entries = [...stepEntries(found), ...hookEntries(found), ...deliveryEntries(found)]
  const inOrder = entries.sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)))
  return inOrder.map(({ at, kind, text }) => `+${offsetOf(at, found.createdAt)}  ${kind.padEnd(8)} ${text}`)
}

function stepEntries({ steps }: CallDiagnostics): Entry[] {
  return steps.data.map(({ at, seq, fact, ignored, details }) => {
    const told = Object.entries(details).map(([name, value]) => `${name}=${value}`)
    return { at, kind: `#${seq}`, text: [fact, ...told, ...(ignored ? ['(ignored)'] : [])].join(' ') }
  })
}

function hookEntries({ hooks }: CallDiagnostics): Entry[] {
  return hooks.map(({ at, type, name, verdict, tookMs, details }) => {
    const end = verdict === null ? 'not answered' : `${verdict} in ${tookMs ?? '–'} ms`
    return { at, kind: 'hook', text: `${name ?? type}: ${end}${details === null ? '' : `, ${details}`}` }
  })
}

function deliveryEntries({ deliveries }: CallDiagnostics): Entry[] {
  return deliveries.data.flatMap(({ eventType, subscriptionId, status, eventAt, attempts }) => {
    const whose = `${eventType} → ${subscriptionId.slice(-6)}`
    if (attempts.length === 0) return [{ at: eventAt, kind: 'webhook', text: `${whose}: ${status}` }]
    return attempts.map(({ at, attempt, statusCode, error, durationMs }) => ({
      at,
      kind: 'webhook',
      text: `${whose}, attempt ${attempt}: ${statusCode ?? 'no answer'} in ${durationMs} ms${error === null ? '' : `, ${error}`}`,
    }))
  })
}

const timeOf = (iso: string): string => iso.slice(11, 23)

function offsetOf(at: string, since: string): string {
  const ms = Math.max(0, Date.parse(at) - Date.parse(since))
  return `${toClockOffset(ms)}.${String(ms % 1000).padStart(3, '0')}`
}
