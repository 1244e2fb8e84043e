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
type Request = { readonly kind: 'reply' | 'hinted reply' | 'words'; readonly text: string; readonly isRepeated?: true }

export type ModelTurns = {
  content(content: ServerContent): void
  /** The model has called a tool: it says something more, or waits, where the tool `blocks` it. */
  toolCalled(blocks: boolean): void
  /** A tool for which the model waited is answered; `areAll`: it waits for no other. */
  toolAnswered(wantsReply: boolean, areAll: boolean): void
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

type Turn = {
  readonly asked: Request | null
  /** All that the model was told when it was asked. */
  readonly text: string
  left: number
  /** Somebody waits for it, and nothing of it has come. */
  isOwed: boolean
  hasBegun: boolean
  hasSound: boolean
  endsAfterAnother: boolean
  wasSentAgain: boolean
  /** Of the tools it waits for: none; some, whose answers want words or do not; or all are answered, and nothing more is to be said. */
  tools: 'none' | 'awaited' | 'awaited for words' | 'over'
}

type Deps = {
  readonly spoken: SpokenReply
  readonly sound: ModelSound
  readonly news: ToldNews
  /** False: not now. */
  sendText(text: string): boolean
  /** Results of tools that are held back want no words: the model speaks, or the caller does. */
  settleResults(): void
  /** The model has ended its turn without a word: true when it is given results now that it answers. */
  giveResults(): boolean
  /** What asks for any words at all. */
  readonly yourTurn: Request
  /** The model says nothing any more, whatever it is asked. Null: nobody waits for its words. */
  readonly fellSilent: (() => void) | null
}

/** What the model said may still come in writing for so long. */
const textGrace = 300 / frameMs
/** A model that has called a tool and says no more. */
const toolGrace = 500 / frameMs
/** A turn that was asked for and does not begin, or begins and is not heard of any more after its sound has been played. */
const askedFrames = 10_000 / frameMs
/** Models pass over a text now and then (one in twenty of gemini-3.1-flash-live): it is sent once more. */
const passedOverFrames = 4_000 / frameMs
const turnFrames = 60_000 / frameMs
const longestTurn = 600_000 / frameMs
/** The provider answers the caller by itself; when it has not begun by then, it has heard no speech. */
const answerFrames = 3_000 / frameMs
/** A line that is never silent is no caller who is to be waited for. */
const speakingFrames = 60_000 / frameMs
/** After an interruption that the provider told, its turn is complete at once. */
const interruptedFrames = 3_000 / frameMs
const mutedFrames = 30_000 / frameMs
/** A request and its repetition, twice: some sessions are silent to their end from a certain turn on (googleapis/python-genai#2333 and #2117). */
const maxSilentTurns = 4
const maxRequests = 16
const bytesPerFrame = (24_000 * 2 * frameMs) / 1000

const says = ({ asked }: Turn): boolean => asked?.kind === 'words'

const newTurn = (asked: Request | null, text: string): Turn => ({
  asked,
  text,
  left: asked === null ? 0 : askedFrames,
  isOwed: asked !== null && !asked.isRepeated,
  hasBegun: false,
  hasSound: false,
  endsAfterAnother: false,
  wasSentAgain: false,
  tools: 'none',
})

/** It came to a bad end, such as RESPONSE_REJECTED or MALFORMED_FUNCTION_CALL. */
const isBad = ({ turnCompleteReason: reason }: ServerContent): boolean =>
  reason !== undefined && reason !== 'TURN_COMPLETE_REASON_UNSPECIFIED'
const waitsForCaller = ({ turnCompleteReason, waitingForInput }: ServerContent): boolean =>
  waitingForInput === true || turnCompleteReason === 'NEED_MORE_INPUT'

export function createModelTurns(deps: Deps): ModelTurns {
  const { spoken, sound, news, sendText } = deps
  let turn: Turn | null = null
  let requests: Request[] = []
  /** Frames that the caller may still speak. */
  let speaking = 0
  /** Frames in which an answer of the model to the caller may still begin. */
  let answerDue = 0
  /** The provider has broken something off: the end of the turn that it tells next is of that. */
  let endsBrokenOff = false
  /** In a row, of those that were to bring something. */
  let silentTurns = 0

  const askNext = (): void => {
    const [asked] = requests
    if (asked === undefined || turn !== null || speaking > 0 || answerDue > 0) return
    const text = [...news.texts(), asked.text].join('\n')
    if (!sendText(text)) return
    news.tell()
    requests.shift()
    turn = newTurn(asked, text)
  }
  const sendAgain = (asked: Turn): void => {
    const isPassedOver = asked.asked !== null && !asked.hasBegun && asked.left <= askedFrames - passedOverFrames
    if (!isPassedOver || asked.wasSentAgain || speaking > 0 || answerDue > 0) return
    asked.wasSentAgain = sendText(asked.text)
  }
  const push = (request: Request): void => {
    const asked = turn === null || turn.hasBegun || news.wantAnswer() ? null : turn.asked
    const before = requests.at(-1) ?? asked
    const isGiven = request.kind === 'reply' && before !== null && before.kind !== 'words'
    if (!isGiven && requests.length < maxRequests) requests.push(request)
  }
  /** The model says or does something: of the turn that was asked for, or by itself, which answers the caller. */
  const goOn = (): Turn => {
    const going = turn ?? newTurn(null, '')
    turn = going
    if (going.asked === null && !going.hasBegun) {
      answerDue = 0
      if (!news.wantAnswer()) requests = requests.filter(({ kind }) => kind === 'words')
    }
    going.hasBegun = true
    going.isOwed = false
    going.endsAfterAnother = false
    endsBrokenOff = false
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
  /** A turn that was silent, or came to a bad end, is asked for once more. */
  const repeat = (silent: Turn | null, isRefused: boolean): void => {
    const request = silent?.asked ?? deps.yourTurn
    const isAnswered = !silent?.asked && requests.some(({ kind }) => kind !== 'words')
    if (request.isRepeated || isAnswered) return
    requests.unshift({ ...request, isRepeated: true })
    // Not before the next frame; it may have been the end of another turn, and the answer to the caller may still come.
    answerDue = isRefused ? 1 : Math.max(1, Math.min(answerDue, toolGrace))
  }
  const complete = (content: ServerContent): void => {
    const isSilent = turn === null ? answerDue > 0 : !turn.hasSound && turn.tools === 'none'
    const isOver = endsBrokenOff || waitsForCaller(content) || !(isSilent || isBad(content))
    endsBrokenOff = false
    if (!isOver && turn !== null && deps.giveResults()) return toolAnswered(true, true)
    if (!isOver && deps.fellSilent) {
      if (++silentTurns >= maxSilentTurns) return deps.fellSilent()
      repeat(turn, isBad(content))
    }
    endTurn()
  }
  /** The caller is to be answered first. What was asked for and has not begun is asked for again then, unless that answer will do. */
  const interrupt = (): void => {
    spoken.mute(interruptedFrames)
    sound.restart()
    deps.settleResults()
    answerDue = answerFrames
    endsBrokenOff = true
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
    // It speaks on about a result that it was to take in silence.
    if (going.tools === 'over') return spoken.mute(mutedFrames)
    going.hasSound = true
    silentTurns = 0
    deps.settleResults()
    spoken.sound(payload, says(going))
  }
  const toolAnswered = (wantsReply: boolean, areAll: boolean): void => {
    const going = goOn()
    const wantsWords = wantsReply || going.tools === 'awaited for words'
    if (!areAll) going.tools = wantsWords ? 'awaited for words' : 'awaited'
    if (!areAll) return
    going.tools = wantsWords ? 'none' : 'over'
    going.left = wantsWords ? askedFrames : answerFrames
    going.isOwed = wantsWords
    if (!wantsWords) return spoken.endIn(textGrace)
    going.hasSound = false
    spoken.unmute()
  }
  return {
    content(content) {
      const { modelTurn, outputTranscription, generationComplete, interrupted, turnComplete } = content
      if (interrupted) interrupt()
      modelTurn?.parts?.forEach(takePart)
      if (outputTranscription) spoken.write(outputTranscription.text ?? '', outputTranscription.finished ?? false)
      if (generationComplete) spoken.endIn(textGrace)
      if (!turnComplete) return
      if (turn?.endsAfterAnother) turn.endsAfterAnother = false
      else complete(content)
    },
    toolCalled(blocks) {
      const going = goOn()
      silentTurns = 0
      going.left = turnFrames
      if (blocks && going.tools !== 'awaited for words') going.tools = 'awaited'
      spoken.begin(says(going))
      spoken.endIn(toolGrace)
    },
    toolAnswered,
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
      if (turn?.tools !== 'over') return
      turn.tools = 'none'
      spoken.unmute()
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
      if (turn !== null) sendAgain(turn)
      askNext()
    },
  }
}
