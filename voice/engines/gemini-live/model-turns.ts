/**
 * Owns the turns of a Gemini Live model: it is asked for one at a time and never while the caller speaks or is about to be answered, as any text is a
 * question to it. One that was cut off is muted to its end, as the provider cannot be told to stop. Counts frames of the caller's line.
 */
import { frameMs } from '../../../model/frame.ts'
import type { ModelPart, ServerContent } from './messages.ts'
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

const says = ({ asked }: Turn): boolean => asked?.kind === 'words'

export function createModelTurns({ spoken, sound, news, sendText }: Deps): ModelTurns {
  let turn: Turn | null = null
  let requests: Request[] = []
  /** Frames that the caller may still speak. */
  let speaking = 0
  /** Frames in which an answer of the model to the caller may still begin. */
  let answerDue = 0

  const askNext = (): void => {
    const [asked] = requests
    if (asked === undefined || turn !== null || speaking > 0 || answerDue > 0) return
    if (!sendText([...news.texts(), asked.text].join('\n'))) return
    news.tell()
    requests.shift()
    turn = { asked, left: askedFrames, isOwed: true, hasBegun: false, endsAfterAnother: false }
  }
  const push = (request: Request): void => {
    const asked = turn === null || turn.hasBegun || news.wantAnswer() ? null : turn.asked
    const before = requests.at(-1) ?? asked
    const isGiven = request.kind === 'reply' && before !== null && before.kind !== 'words'
    if (!isGiven && requests.length < maxRequests) requests.push(request)
  }
  /** The model says or does something: of the turn that was asked for, or by itself, which answers the caller. */
  const goOn = (): Turn => {
    const going: Turn = turn ?? { asked: null, left: 0, isOwed: false, hasBegun: false, endsAfterAnother: false }
    turn = going
    if (going.asked === null && !going.hasBegun) {
      answerDue = 0
      if (!news.wantAnswer()) requests = requests.filter(({ kind }) => kind === 'words')
    }
    going.hasBegun = true
    going.isOwed = false
    going.endsAfterAnother = false
    return going
  }
  /** A turn that somebody waits for is told to be over, even when nothing of it came. */
  const endTurn = (): void => {
    if (turn?.isOwed) spoken.begin(says(turn))
    else if (turn !== null) news.settle()
    turn = null
    spoken.end()
    spoken.unmute()
    sound.restart()
    askNext()
  }
  /** The caller is to be answered first. What was asked for and has not begun is asked for again then, unless that answer will do. */
  const interrupt = (): void => {
    spoken.mute(interruptedFrames)
    sound.restart()
    answerDue = answerFrames
    if (turn === null || turn.asked === null || turn.hasBegun) return
    turn.isOwed = false
    turn.hasBegun = true
    if (requests.length < maxRequests) requests.unshift(turn.asked)
  }
  const takePart = ({ thought, inlineData }: ModelPart): void => {
    const { data = '', mimeType } = (!thought && inlineData) || {}
    const payload = data === '' ? null : sound.take(data, mimeType)
    if (payload === null) return
    const going = goOn()
    going.left = Math.min(longestTurn, Math.max(going.left, turnFrames) + Math.ceil(payload.length / bytesPerFrame))
    spoken.sound(payload, says(going))
  }
  return {
    content({ modelTurn, outputTranscription, generationComplete, interrupted, turnComplete }) {
      if (interrupted) interrupt()
      modelTurn?.parts?.forEach(takePart)
      if (outputTranscription) spoken.write(outputTranscription.text ?? '', outputTranscription.finished ?? false)
      if (generationComplete) spoken.endIn(textGrace)
      if (!turnComplete) return
      if (turn?.endsAfterAnother) turn.endsAfterAnother = false
      else endTurn()
    },
    toolCalled() {
      const going = goOn()
      going.left = turnFrames
      spoken.begin(says(going))
      spoken.endIn(toolGrace)
    },
    toolsAnswered(wantsReply) {
      const going = goOn()
      going.left = wantsReply ? askedFrames : answerFrames
      going.isOwed = wantsReply
      if (wantsReply) spoken.unmute()
    },
    toolLost: endTurn,
    mute() {
      if (spoken.isOpen()) spoken.mute(mutedFrames)
    },
    ask(request) {
      push(request)
      askNext()
    },
    askSoon: push,
    callerStarts() {
      speaking = speakingFrames
    },
    callerStops() {
      // A turn that was not asked for is the answer.
      if (speaking > 0 && (turn === null || turn.asked !== null)) answerDue = answerFrames
      speaking = 0
    },
    brokeOff() {
      if (turn === null || turn.asked === null || turn.hasBegun) return false
      turn.endsAfterAnother = true
      return true
    },
    frame() {
      spoken.frame()
      if (speaking > 0) speaking--
      if (answerDue > 0) answerDue--
      if (turn !== null && --turn.left <= 0) endTurn()
      askNext()
    },
  }
}
