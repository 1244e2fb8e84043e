/** Owns whether a call that was made again is as its session file expects. What is not: a sentence with the file. */
import { askService } from '../ask-api.ts'
import type { WebTarget } from '../load-job.ts'
import { untilOrStopped } from '../run-load.ts'
import type { Session } from './session-format.ts'

export type MadeCall = {
  /** Ms from when it was due; null: never. */
  readonly answeredAfter: number | null
  /** Ms from the answer; null: never. */
  readonly audioAfter: number | null
  /** As the service names it; null: it is found by `calling`. */
  readonly callId: string | null
  readonly calling: string | null
  /** By Date.now. */
  readonly beganAt: number
}

const lookEvery = 250
const settledWithin = 15_000

/** Facts of the service are asked of its API, when the call is over. */
export const needsService = ({ expected }: Session): boolean =>
  expected.transcriptContains.length > 0 || expected.outcome !== null

export async function unmetOf(
  session: Session,
  call: MadeCall,
  { web, stopping }: { readonly web: WebTarget | null; readonly stopping: AbortSignal },
): Promise<string[]> {
  const { expected } = session
  const timed = [
    ...lateWords('answer', expected.answerWithin, call.answeredAfter),
    ...lateWords('audio', expected.audioWithin, call.audioAfter),
  ]
  const facts =
    needsService(session) && web && !stopping.aborted ? await unmetFacts(session, call, { web, stopping }) : []
  return [...timed, ...facts].map((words) => `${session.file}: ${words}`)
}

function lateWords(what: string, within: number | null, took: number | null): string[] {
  if (within === null) return []
  if (took === null) return [`${what} within ${within} ms: none came`]
  return took <= within ? [] : [`${what} within ${within} ms: it took ${took.toFixed(0)} ms`]
}

type Asked = { readonly web: WebTarget; readonly stopping: AbortSignal }

async function unmetFacts({ expected }: Session, call: MadeCall, asked: Asked): Promise<string[]> {
  const found = await finishedCall(call, asked)
  if (found === null)
    return ['the service does not know the call, or it did not end: neither transcript nor outcome can be looked at']
  const outcome =
    expected.outcome === null || expected.outcome === found.outcome
      ? []
      : [`outcome ${expected.outcome}: it was ${found.outcome ?? 'none'}`]
  if (expected.transcriptContains.length === 0) return outcome
  const said = await transcriptOf(found.id, asked.web)
  const missing = expected.transcriptContains
    .filter((words) => !said.toLowerCase().includes(words.toLowerCase()))
    .map((words) => `transcript contains ${JSON.stringify(words)}: it does not`)
  return [...outcome, ...missing]
}

type Found = { readonly id: string; readonly outcome: string | null }
type Row = { readonly id?: string; readonly fromNumber?: string; readonly endedAt?: string; readonly outcome?: string }

/** Null: there is none, or it did not end in time. */
async function finishedCall(call: MadeCall, { web, stopping }: Asked): Promise<Found | null> {
  const until = performance.now() + settledWithin
  while (performance.now() < until && !stopping.aborted) {
    const row = call.callId === null ? await callFrom(call, web) : await rowOf(call.callId, web)
    if (row?.id !== undefined && row.outcome !== undefined) return { id: row.id, outcome: row.outcome }
    await untilOrStopped(lookEvery, stopping)
  }
  return null
}

const rowOf = async (callId: string, web: WebTarget): Promise<Row | null> =>
  (await askService(web, { method: 'GET', path: `phone-calls/${callId}` })) as Row

/** The clock of the service may be another one. */
const clockSlack = 5_000

async function callFrom({ calling, beganAt }: MadeCall, web: WebTarget): Promise<Row | null> {
  const from = new Date(beganAt - clockSlack).toISOString()
  const path = `phone-calls?direction=inbound&from=${encodeURIComponent(from)}&limit=100`
  const page = (await askService(web, { method: 'GET', path })) as { readonly data?: readonly Row[] }
  return page.data?.find(({ fromNumber }) => fromNumber === calling) ?? null
}

async function transcriptOf(callId: string, web: WebTarget): Promise<string> {
  const answer = await askService(web, { method: 'GET', path: `phone-calls/${callId}/transcript` })
  const texts: string[] = []
  JSON.stringify(answer, (key, value: unknown) => {
    if (key === 'text' && typeof value === 'string') texts.push(value)
    return value
  })
  return texts.join('\n')
}
