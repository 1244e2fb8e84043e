/**
 * Owns the turns of a Gemini Live model: it is asked for one at a time and never while the caller speaks or is about to be answered, as any text is a
 * question to it. One that was cut off is muted to its end, as the provider cannot be told to stop. Counts frames of the caller's line.
 */
import { frameMs } from '../../../model/frame.ts'
import type { ServerContent } from './messages.ts'
import type { ModelSound } from './model-sound.ts'
import type { ToldNews } from './news.ts'
import type { SpokenReply } from './spoken-reply.ts'

/** What the model is asked for. A reply has been given when the model has answered the caller meanwhile; words are owed until they are said. */
type Request = { readonly kind: 'reply' | 'hinted reply' | 'words'; readonly text: string }

export type ModelTurns = {
  content(content: ServerContent): void
  /** The model has called a tool: it waits, or says something more. */
  toolCalled(): void
  /** The model has all the answers it waited for. */
  toolsAnswered(wantsReply: boolean): void
  /** The model waits for an answer that it will not get. */
  toolLost(): void
  /** What still comes of the turn that is under way is not heard. */
  mute(): void
  /** The model is asked to speak, when it has said what it is saying. */
  ask(request: Request): void
  /** The same, not before the next frame. */
  askSoon(request: Request): void
  callerStarts(): void
  callerStops(): void
  /**
   * The provider broke off something, and nobody was heard: true when it was our own text that broke off what it had not begun to say. The end of
   * that is then not the end of the turn that was asked for.
   */
  brokeOff(): boolean
  frame(): void
}

/** `isOwed`: somebody waits for it, and nothing of it has come. */
type Turn = {
  readonly asked: Request | null
  left: number
  isOwed: boolean
  hasBegun: boolean
  endsAfterAnother: boolean
}

type Deps = {
  readonly spoken: SpokenReply
  readonly sound: ModelSound
  readonly news: ToldNews
  /** False: not now. */
  sendText(text: string): boolean
}

/** What the model said may still come in writing for so long. */
const textGrace = 300 / frameMs
/** A model that has called a tool and says no more. */
const toolGrace = 500 / frameMs
/** A turn that was asked for and does not begin, or begins and is not heard of any more after its sound has been played. */
const askedFrames = 10_000 / frameMs
const turnFrames = 60_000 / frameMs
const longestTurn = 600_000 / frameMs
/** The provider answers the caller by itself; when it has not begun by then, it has heard no speech. */
const answerFrames = 3_000 / frameMs
/** A line that is never silent is no caller who is to be waited for. */
const speakingFrames = 60_000 / frameMs
/** After an interruption that the provider told, its turn is complete at once. */
const interruptedFrames = 3_000 / frameMs
const mutedFrames = 30_000 / frameMs
const maxRequests = 16
const bytesPerFrame = (24_000 * 2 * frameMs) / 1000

/** What the parts of the turns share. */
type Turns = Deps & {
  turn: Turn | null
  requests: Request[]
  /** Frames that the caller may still speak, and in which an answer of the model to the caller may still begin. */
  speaking: number
  answerDue: number
}

export function createModelTurns(deps: Deps): ModelTurns {
  const { spoken } = deps
  const turns: Turns = { ...deps, turn: null, requests: [], speaking: 0, answerDue: 0 }
  return {
    content: (content) => takeContent(turns, content),
    toolCalled() {
      const turn = goOn(turns)
      turn.left = turnFrames
      spoken.begin(says(turn))
      spoken.endIn(toolGrace)
    },
    toolsAnswered(wantsReply) {
      const turn = goOn(turns)
      turn.left = wantsReply ? askedFrames : answerFrames
      turn.isOwed = wantsReply
      if (wantsReply) spoken.unmute()
    },
    toolLost: () => endTurn(turns),
    mute() {
      if (spoken.isOpen()) spoken.mute(mutedFrames)
    },
    ask(request) {
      push(turns, request)
      askNext(turns)
    },
    askSoon: (request) => push(turns, request),
    callerStarts() {
      turns.speaking = speakingFrames
    },
    callerStops() {
      // A turn that nobody asked for is the answer.
      if (turns.speaking > 0 && (turns.turn === null || turns.turn.asked !== null)) turns.answerDue = answerFrames
      turns.speaking = 0
    },
    brokeOff() {
      const { turn } = turns
      if (turn === null || turn.asked === null || turn.hasBegun) return false
      turn.endsAfterAnother = true
      return true
    },
    frame() {
      spoken.frame()
      if (turns.speaking > 0) turns.speaking--
      if (turns.answerDue > 0) turns.answerDue--
      if (turns.turn !== null && --turns.turn.left <= 0) endTurn(turns)
      askNext(turns)
    },
  }
}

function takeContent(turns: Turns, content: ServerContent): void {
  const { modelTurn, outputTranscription, generationComplete, interrupted, turnComplete } = content
  const { spoken, sound } = turns
  if (interrupted) interrupt(turns)
  for (const part of modelTurn?.parts ?? []) {
    const { data = '', mimeType } = (!part.thought && part.inlineData) || {}
    const payload = data === '' ? null : sound.take(data, mimeType)
    if (payload === null) continue
    const turn = goOn(turns)
    turn.left = Math.min(longestTurn, Math.max(turn.left, turnFrames) + Math.ceil(payload.length / bytesPerFrame))
    spoken.sound(payload, says(turn))
  }
  if (outputTranscription) spoken.write(outputTranscription.text ?? '', outputTranscription.finished ?? false)
  if (generationComplete) spoken.endIn(textGrace)
  if (!turnComplete) return
  if (turns.turn?.endsAfterAnother) turns.turn.endsAfterAnother = false
  else endTurn(turns)
}

/** The model says or does something: of the turn that was asked for, or by itself, which answers the caller. */
function goOn(turns: Turns): Turn {
  turns.turn ??= { asked: null, left: 0, isOwed: false, hasBegun: false, endsAfterAnother: false }
  const { turn, news } = turns
  if (turn.asked === null && !turn.hasBegun) {
    turns.answerDue = 0
    if (!news.wantAnswer()) turns.requests = turns.requests.filter(({ kind }) => kind === 'words')
  }
  turn.hasBegun = true
  turn.isOwed = false
  turn.endsAfterAnother = false
  return turn
}

const says = ({ asked }: Turn): boolean => asked?.kind === 'words'

/** The caller is to be answered first. What was asked for and has not begun is asked for again then, unless that answer will do. */
function interrupt(turns: Turns): void {
  const { turn, requests } = turns
  turns.spoken.mute(interruptedFrames)
  turns.sound.restart()
  turns.answerDue = answerFrames
  if (turn === null || turn.asked === null || turn.hasBegun) return
  turn.isOwed = false
  turn.hasBegun = true
  if (requests.length < maxRequests) requests.unshift(turn.asked)
}

/** Who waits for a turn learns of its end, even when nothing of it came. */
function endTurn(turns: Turns): void {
  const { spoken, sound, news } = turns
  if (turns.turn?.isOwed) spoken.begin(says(turns.turn))
  else if (turns.turn !== null) news.settle()
  turns.turn = null
  spoken.end()
  spoken.unmute()
  sound.restart()
  askNext(turns)
}

function push({ requests, turn, news }: Turns, request: Request): void {
  const asked = turn === null || turn.hasBegun || news.wantAnswer() ? null : turn.asked
  const before = requests.at(-1) ?? asked
  const isGiven = request.kind === 'reply' && before !== null && before.kind !== 'words'
  if (!isGiven && requests.length < maxRequests) requests.push(request)
}

function askNext(turns: Turns): void {
  const { turn, speaking, answerDue, news } = turns
  const [asked] = turns.requests
  if (asked === undefined || turn !== null || speaking > 0 || answerDue > 0) return
  if (!turns.sendText([...news.texts(), asked.text].join('\n'))) return
  news.tell()
  turns.requests.shift()
  turns.turn = { asked, left: askedFrames, isOwed: true, hasBegun: false, endsAfterAnother: false }
}
