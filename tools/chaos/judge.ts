/** Owns what must hold for every call whatever strikes, and what it is called when it does not: from what was seen from outside. Pure. */
import { unseenSilence } from './conversation.ts'
import type { FaultKind } from './plan.ts'
import type { Said, Silence } from './talk.ts'
import type { ToldCall } from './told.ts'

export const invariants = [
  'placed',
  'completed',
  'silence',
  'utterances',
  'ended once',
  'order',
  'tools',
  'told',
  'rows',
  'ports',
  'processes',
] as const
export type Invariant = (typeof invariants)[number]

export type Violation = {
  readonly invariant: Invariant
  /** Null: of no call. */
  readonly callId: string | null
  readonly text: string
}

/** Of the database, when all is over. */
export type CallRow = {
  readonly id: string
  readonly outcome: string | null
  readonly failedReason: string | null
  readonly endedBy: string | null
  readonly finished: boolean
  /** By the service's clock, ms; null: it has not ended. */
  readonly endedAt: number | null
  /** What callers said, as it was written down. */
  readonly heard: readonly string[]
}

export type SeenCall = {
  readonly way: string
  readonly number: string
  readonly edge: string | null
  readonly said: readonly Said[]
  readonly silences: readonly Silence[]
  /** By performance.now; null: it had to be hung up by us. */
  readonly endedAt: number | null
  readonly how: string
  readonly wasTold: boolean
  /** Null: the service knows nothing of it. */
  readonly row: CallRow | null
  readonly told: ToldCall
}

export type SeenRound = {
  readonly kind: FaultKind
  /** Names of the processes that were struck. */
  readonly struck: readonly string[]
  /** When, by performance.now and by the clock of the day. */
  readonly struckAt: number
  readonly struckOn: number
  /** Ms that a caller waits at most without a fault. */
  readonly usualSilence: number
  /** Ms for which lines between two processes hold besides. */
  readonly holds: number
  /** Ms that the measure itself may be off, on a machine that does other things too. */
  readonly slack: number
  /** What the host gave of this machine's processors to others, from 0 to 1. */
  readonly stolen: number
  /** Calls of the tool in a whole talk. */
  readonly toolCalls: number
}

/** Where the host took more, nobody knows for what callers waited. */
const mostStolen = 0.1
export const areSilencesJudged = ({ stolen }: Pick<SeenRound, 'stolen'>): boolean => stolen <= mostStolen

/** A telephone hears of the end of its line, and a row of a call without one ends, within so many ms. */
const toldWithin = 5_000
/** Ms from the beginning of an answer until it is written down. */
const longestSaying = 2_500
/** What is said so late may be after the last question. */
const lastWords = 4_000
const ranks = ['scheduled', 'queued', 'ringing', 'in_progress']

/** Ms that callers wait at most where nothing is struck. */
export const usualSilenceOf = (calls: readonly Pick<SeenCall, 'silences'>[]): number =>
  Math.max(unseenSilence, ...calls.flatMap(({ silences }) => silences.map(({ ms }) => ms)))

/** The longest of them beyond what is usual; 0 when there is none. */
export const extraSilenceOf = (call: SeenCall, usual: number): number =>
  Math.max(0, ...call.silences.map(({ ms }) => ms - usual))

/** What callers said that nobody wrote down. */
export function lostOf({ said, row, endedAt }: SeenCall): number {
  const counted = said.filter(({ at }) => endedAt === null || at < endedAt - lastWords)
  return Math.max(0, counted.length - (row?.heard.length ?? 0))
}

/** What its caller was saying when its line went, or said until it could have another one: no other process has ever heard it. */
const saidInVain = ({ said }: SeenCall, { struckAt, slack }: SeenRound): number =>
  said.filter(({ at }) => at > struckAt - longestSaying - slack && at < struckAt + toldWithin + slack).length

/** Its sound went with the process that was struck. */
export const lostItsLine = (call: SeenCall, { kind, struck }: Pick<SeenRound, 'kind' | 'struck'>): boolean =>
  kind.takesLegs === true && (call.edge === null || struck.includes(call.edge))

export function violationsOf(call: SeenCall, round: SeenRound): Violation[] {
  const { row, told } = call
  const callId = row?.id ?? null
  const who = `${call.way}${call.edge === null ? '' : ` by ${call.edge}`}${call.number && ` ${call.number}`}`
  const found: Violation[] = []
  const holds = (invariant: Invariant, isGood: boolean, text: string): void => {
    if (!isGood) found.push({ invariant, callId, text: `${who}: ${text}` })
  }
  const isDone = row?.outcome === 'completed' && row.endedBy === 'agent' && call.endedAt !== null
  const mayEnd = lostItsLine(call, round)
  if (!row) return [{ invariant: 'rows', callId, text: `${who}: the service has no row of it` }]
  holds('completed', isDone || mayEnd, `${row.outcome} by ${row.endedBy} (${row.failedReason}); the line: ${call.how}`)
  if (!isDone && mayEnd) found.push(...ofLostLine(call, round, who))
  const extra = extraSilenceOf(call, round.usualSilence)
  const allowed = round.kind.mayWait + round.holds + round.slack
  // Its line went with the process, and perhaps came back by another one.
  const wasCut = mayEnd && (!isDone || extra > allowed)
  const isQuiet = extra <= allowed || (wasCut && (!isDone || extra <= toldWithin + round.slack))
  holds(
    'silence',
    isQuiet || !areSilencesJudged(round),
    `waited ${Math.round(extra)} ms longer than usual, ${allowed} are allowed`,
  )
  const lost = lostOf(call)
  const words = `${call.said.map(({ text }) => text).join(', ')}; written down: ${row.heard.join(', ')}`
  const inVain = mayEnd ? saidInVain(call, round) : 0
  holds('utterances', lost <= inVain, `${lost} of ${call.said.length} are lost. Said: ${words}`)
  holds('rows', row.finished, 'its row never finished')
  const ends = told.events.filter(({ type }) => type === 'call.ended').length
  holds('ended once', ends === 1, `call.ended was told ${ends} times`)
  for (const flaw of flawsOfOrder(told)) holds('order', false, flaw)
  for (const flaw of flawsOfTools(told, isDone ? round.toolCalls : null)) holds('tools', false, flaw)
  const line = call.endedAt === null ? 'nobody told it that the call is over' : `the line: ${call.how}`
  holds('told', call.wasTold, line)
  return found
}

/** Of a call while processes are killed: it has an end, which was told once, and everything in its order. */
export function violationsOfCount(row: CallRow, told: ToldCall): Violation[] {
  const callId = row.id
  const ends = told.events.filter(({ type }) => type === 'call.ended').length
  const of = (invariant: Invariant, texts: readonly string[]): Violation[] =>
    texts.map((text) => ({ invariant, callId, text }))
  return [
    ...of('rows', row.finished && row.outcome !== null ? [] : ['its row never finished']),
    ...of('ended once', ends === 1 ? [] : [`call.ended was told ${ends} times`]),
    ...of('order', flawsOfOrder(told)),
    ...of('tools', flawsOfTools(told, null)),
  ]
}

/** How often each end, the most frequent first. */
export function endsOf(rows: readonly CallRow[]): ReadonlyMap<string, number> {
  const byEnd = Map.groupBy(
    rows,
    ({ outcome, failedReason, endedBy }) =>
      `${outcome ?? 'no end'}${failedReason === null ? '' : ` (${failedReason})`} by ${endedBy ?? 'nobody'}`,
  )
  const counts = [...byEnd].map(([end, of]) => [end, of.length] as const)
  return new Map(counts.toSorted(([, a], [, b]) => b - a))
}

function ofLostLine(call: SeenCall, { struckAt, struckOn }: SeenRound, who: string): Violation[] {
  const { row, endedAt } = call
  const callId = row?.id ?? null
  const rowMs = row?.endedAt == null ? null : row.endedAt - struckOn
  const lineMs = endedAt === null ? null : endedAt - struckAt
  const late = (ms: number | null): boolean => ms === null || ms > toldWithin
  const inMs = (ms: number | null): string => (ms === null ? 'never' : `${Math.round(ms)} ms after the blow`)
  return [
    ...(late(rowMs) ? [{ invariant: 'rows', callId, text: `${who}: its row ended ${inMs(rowMs)}` } as const] : []),
    ...(late(lineMs) ? [{ invariant: 'told', callId, text: `${who}: its line ended ${inMs(lineMs)}` } as const] : []),
  ]
}

function flawsOfOrder({ events }: ToldCall): string[] {
  const flaws: string[] = []
  let [rank, turn] = [-1, -1]
  let isOver = false
  for (const { type, fields } of events) {
    if (isOver) flaws.push(`${type} came after call.ended`)
    if (type === 'call.ended') isOver = true
    if (type === 'call.status_update') {
      const next = rankOf(String(fields['status']))
      if (next <= rank) flaws.push(`the status ${String(fields['status'])} came after a later one, or twice`)
      rank = Math.max(rank, next)
    }
    if (type === 'call.transcript') {
      const next = Number(fields['turnIndex'])
      if (next <= turn) flaws.push(`turn ${next} came after turn ${turn}`)
      turn = Math.max(turn, next)
    }
  }
  return flaws
}

/** Whatever is not among them is an end. */
function rankOf(status: string): number {
  const rank = ranks.indexOf(status)
  return rank === -1 ? ranks.length : rank
}

/** One that comes again under its id is the same one. `wanted`: so many, in a talk that was whole. */
function flawsOfTools({ tools }: ToldCall, wanted: number | null): string[] {
  const byTurn = Map.groupBy(tools, ({ turn }) => turn)
  const twice = [...byTurn].flatMap(([turn, of]) => {
    const ids = new Set(of.map(({ toolCallId }) => toolCallId))
    return ids.size > 1 ? [`the tool of turn ${turn} ran ${ids.size} times`] : []
  })
  return wanted === null || byTurn.size === wanted ? twice : [...twice, `${byTurn.size} of ${wanted} tools ran`]
}
