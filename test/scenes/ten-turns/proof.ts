/** Owns what must be true of a call of ten turns when it is over, whoever the engine was and on whatever line. */
import type { Test } from 'tap'
import { toId } from '../../../model/ids.ts'
import { listTurns, type TurnRow } from '../../../store/transcripts.ts'
import type { EngineLine, EngineStage } from '../engine-stage.ts'
import { isAskedAgain, maxRepeats, unclear } from './caller.ts'
import { exchanges, goodbye, oneMoment, toolArguments, toolName } from './conversation.ts'

type Segment = {
  readonly speaker: 'user' | 'agent'
  readonly text: string
  readonly source: string
  readonly latency?: Readonly<Record<string, number | null>>
}

/** Of the longest question, on the line; spoken whole it takes three times as long. */
const cutWithin = 5_000

/** `source`: of its turns. The result tells how much was heard of the question that was spoken into, ms. */
export async function proveTenTurns(t: Test, stage: EngineStage, line: EngineLine, source: string): Promise<number> {
  const ended = await line.next('call.ended')
  const callId = String(ended['callId'])
  t.match(ended, { status: 'completed', recordingAvailable: true, workerId: line.workerId })
  const call = await stage.rest('GET', `/phone-calls/${callId}`)
  t.match(call, { status: 'completed', outcome: 'completed', postProcessingStatus: 'completed' })
  const transcript = (await stage.rest('GET', `/phone-calls/${callId}/transcript`)) as unknown as Segment[]
  t.same(transcript, ended['transcript'], 'call.ended carries the same transcript')
  const understood = asSpoken(withoutRepeats(t, transcript, source))
  proveOrder(t, understood)
  t.same([...new Set(transcript.map((segment) => segment.source))], [source])
  proveLatency(t, understood)
  const turns = await listTurns(stage.service.sql, stage.accountId, toId<'call'>(callId)!)
  proveTool(t, line, callId)
  return proveCut(t, turns)
}

/** A line that stutters under load is no fault of who listens: the caller may have said something again, to the engine that recognises for itself. */
function withoutRepeats(t: Test, transcript: readonly Segment[], source: string): Segment[] {
  const isUnclear = (segment: Segment | undefined): boolean => segment?.text === unclear
  const isUnheard = ({ speaker, text }: Segment, at: number): boolean => {
    const before = transcript[at - 1]
    return (
      speaker === 'agent' &&
      before?.speaker === 'agent' &&
      exchanges.some(({ asks }) => before.text.endsWith(asks) && isAskedAgain(text, asks))
    )
  }
  const repeats = transcript.filter((segment, at) => isUnclear(segment) || isUnheard(segment, at)).length
  t.ok(repeats <= (source === 'embedded' ? maxRepeats : 0), `${repeats} answers were not understood at once`)
  return transcript.filter(
    (segment, at) => !isUnclear(segment) && !isUnclear(transcript[at - 1]) && !isUnheard(segment, at),
  )
}

/** How much was heard of a question that was cut is told by the line: on a machine under load the words that cut it may be understood before. */
function asSpoken(transcript: readonly Segment[]): Segment[] {
  const { asks, says } = exchanges.find(({ interrupts }) => interrupts)!
  const at = transcript.findIndex(({ text }) => text !== asks && text !== '' && asks.startsWith(text))
  const before = transcript[at - 1]
  if (before?.speaker !== 'user' || before.text !== says) return [...transcript]
  return transcript.with(at - 1, transcript[at]!).with(at, before)
}

/** Question, answer, question, answer …; only the one that was spoken into is not whole. */
function proveOrder(t: Test, transcript: readonly Segment[]): void {
  const cut = exchanges.find(({ interrupts }) => interrupts)!.asks
  const said = transcript
    .filter(({ text }) => text !== oneMoment)
    .map(({ speaker, text }) => `${speaker}: ${text !== '' && cut.startsWith(text) ? cut : plain(text)}`)
  const expected = exchanges.flatMap(({ asks, says }) => [`agent: ${asks}`, `user: ${says}`])
  t.same(said, [...expected, `agent: ${goodbye}`])
}

/** On a narrow line nobody hears whether it was yes or yep, and on one that stutters the end of an answer may be heard as a word of courtesy. */
const plain = (text: string): string => text.replace(/^yep\b/, 'yes').replace(/^(?!yes\b)(.+) please$/, '$1')

/** Of each answer to the caller. */
function proveLatency(t: Test, transcript: readonly Segment[]): void {
  const answers = transcript.filter(({ speaker }, at) => speaker === 'agent' && transcript[at - 1]?.speaker === 'user')
  t.equal(answers.length, exchanges.length)
  const known = (latency: Segment['latency']): boolean =>
    ['endOfTurn', 'decided', 'firstAudio', 'firstPacket'].every((stage) => (latency?.[stage] ?? -1) >= 0)
  t.same(
    answers.filter(({ latency }) => !known(latency)),
    [],
    'how long the caller waited is known of every answer',
  )
}

function proveCut(t: Test, turns: readonly TurnRow[]): number {
  const whole = exchanges.find(({ interrupts }) => interrupts)!.asks
  const cut = turns.find(({ role, text }) => role === 'agent' && text.length > 1 && whole.startsWith(text))
  t.ok(cut && cut.text.length < whole.length / 2, `what was not heard is not in the transcript: ${cut?.text}`)
  const heardMs = cut ? cut.to - cut.from : 0
  t.ok(heardMs < cutWithin, `the agent was silent after ${heardMs} ms`)
  return heardMs
}

function proveTool(t: Test, line: EngineLine, callId: string): void {
  const asked = line.toolCalls()
  t.equal(asked.length, 1, 'the tool was asked once')
  t.match(asked[0], { callId, name: toolName })
  t.same(asked[0]?.['arguments'], toolArguments)
}

/** A disk that stands still for a second is the machine's; that nothing is lost by it is proved elsewhere. */
const ofTheDisk = /^the database does not answer; steps of calls are kept on the disk$/

/** After the service has been closed: nothing was refused, told twice, or complained about. */
export function proveQuiet(t: Test, stage: EngineStage, lines: readonly EngineLine[], expected: RegExp = /^$/): void {
  for (const line of lines) t.equal(line.events('call.ended').length, 1, `${line.name}: its end was told once`)
  t.equal(stage.receiver.counts().refused, 0, 'every delivery was signed')
  const complaints = stage.log.lines.filter(
    ({ level, message }) => /warn|error/.test(level) && !expected.test(message) && !ofTheDisk.test(message),
  )
  t.same(complaints, [], 'the log complains about nothing')
}
