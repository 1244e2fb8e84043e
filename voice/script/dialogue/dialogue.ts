/**
 * Owns the conversation of a script as a pure function: (state, event) → (state, actions). No clock, no randomness, no sound. The state is
 * JSON and is what the engine remembers: a session that is opened with it goes on from there.
 */
import { answerTo, lineOf, misunderstood, pressed, unanswered } from './answers.ts'
import { hintOf, noPerson, stillWorking, stopped, toolDropped } from './own-lines.ts'
import { cancelOf, drop, fillerOver, left, lookUp, resulted, spokenOver, tookTooLong } from './tool-results.ts'
import { questionOf, stepOf, type DialogueState } from './dialogue-state.ts'
import { askAbout, doubtedOf, isMeant, isOtherWish, type DoubtedRequest } from './doubted-request.ts'
import { enter, goOn, resumable, textOf } from './enter-step.ts'
import { after, end, goodbye, joined, speak, stay } from './dialogue-turn.ts'
import type { Advanced, DialogueEvent, Setting } from './dialogue-turn.ts'
import type { Meaning, Request } from '../phrases.ts'

export function advance(setting: Setting, state: DialogueState, event: DialogueEvent): Advanced {
  if (state.phase === 'ended') return event.type === 'opened' ? end(state, '', state.nextAction) : stay(state)
  if (event.type === 'opened') return opened(setting, state, event.isOwed ?? true)
  if (state.phase === 'unopened') return stay(state)
  if (state.doubted !== null) return advanceDoubted(setting, state, state.doubted, event)
  const ask = questionOf(setting.script, state)
  switch (event.type) {
    case 'played':
    case 'interrupted':
      return lineOver(setting, state)
    case 'heard':
      return heard(setting, state, event.meaning, event.confidence ?? 1)
    case 'silence':
      if (state.phase === 'waiting') return tookTooLong(setting, state)
      return ask !== null && state.phase === 'listening' ? unanswered(setting, state, ask) : stay(state)
    case 'dtmf':
      return ask === null ? stay(state) : pressed(setting, state, ask, event.digit)
    case 'tool_result':
      return resulted(setting, state, event.id, event.result)
  }
}

/** While the caller is asked whether a request is meant; only a clear yes is one. */
function advanceDoubted(
  setting: Setting,
  state: DialogueState,
  doubted: DoubtedRequest,
  event: Exclude<DialogueEvent, { type: 'opened' }>,
): Advanced {
  const free: DialogueState = { ...state, doubted: null }
  switch (event.type) {
    case 'played':
    case 'interrupted':
      return stay({ ...state, phase: 'listening' })
    case 'heard':
      if (isMeant(event.meaning, doubted)) return requested(setting, free, doubted)
      if (isRepeat(event.meaning)) return askAbout(state, doubted)
      return isOtherWish(event.meaning) ? advance(setting, free, event) : backToLine(setting, free)
    case 'dtmf':
      if (event.digit !== '1' && event.digit !== '2') return backToLine(setting, free)
      return after(
        [{ type: 'took_keys', keys: event.digit }],
        event.digit === '1' ? requested(setting, free, doubted) : backToLine(setting, free),
      )
    case 'silence':
      return backToLine(setting, free)
    case 'tool_result':
      return resulted(setting, state, event.id, event.result)
  }
}

const isRepeat = (meaning: Meaning | null): boolean => meaning?.kind === 'request' && meaning.request === 'repeat'

/** The request was none: what was being said or asked is said again. */
function backToLine(setting: Setting, state: DialogueState): Advanced {
  if (state.call?.outcome === 'moved') return stay({ ...state, phase: 'waiting' })
  if (state.call?.outcome === 'done') return fillerOver(setting, state)
  return requested(setting, state, 'repeat')
}

function opened(setting: Setting, state: DialogueState, isOwed: boolean): Advanced {
  if (isOwed && state.doubted !== null) return askAbout(state, state.doubted)
  if (!isOwed && state.phase !== 'unopened') return state.phase === 'speaking' ? lineOver(setting, state) : stay(state)
  if (state.call?.outcome === 'pending') return speak(state, stillWorking)
  if (state.call?.outcome === 'moved') return stay({ ...state, phase: 'waiting' })
  if (state.call !== null) return fillerOver(setting, state)
  const ask = questionOf(setting.script, state)
  if (state.confirming !== null && ask !== null) return speak(state, lineOf(setting, state, ask))
  return enter(setting, { ...state, keys: '' }, '')
}

function lineOver(setting: Setting, state: DialogueState): Advanced {
  if (state.doubted !== null) return stay({ ...state, phase: 'listening' })
  if (state.call !== null) return fillerOver(setting, state)
  return questionOf(setting.script, state) === null ? goOn(setting, state) : stay({ ...state, phase: 'listening' })
}

function heard(setting: Setting, state: DialogueState, meaning: Meaning | null, confidence: number): Advanced {
  const intent = meaning?.kind === 'intent' ? setting.script.intents[meaning.index] : undefined
  if (meaning?.kind === 'request' && isAsked(meaning.request)) {
    const doubted = doubtedOf(setting.script, meaning.request, confidence)
    return doubted === null ? requested(setting, state, meaning.request) : askAbout(state, doubted)
  }
  if (state.call?.outcome === 'moved') return stay(state)
  if (intent !== undefined && setting.script.asides.has(intent.name)) return turnAside(setting, state, intent.name)
  if (state.call !== null) return heardMeanwhile(setting, state, meaning)
  const ask = questionOf(setting.script, state)
  // Who is pressing keys did not answer with a murmur.
  if (meaning === null && state.keys !== '') return stay(state)
  const answer = ask === null ? null : answerTo(setting, state, ask, meaning, confidence)
  if (answer !== null) return answer
  const found = meaning?.kind === 'free' ? lookUp(setting, state, meaning.text) : null
  if (found !== null) return found
  return ask === null ? goOn(setting, state) : misunderstood(setting, state, ask)
}

/** "Okay" while a tool runs is for the words that were said meanwhile. */
function heardMeanwhile(setting: Setting, state: DialogueState, meaning: Meaning | null): Advanced {
  if (meaning?.kind === 'request' && (meaning.request === 'yes' || meaning.request === 'nod')) return stay(state)
  const isQuestion = meaning?.kind === 'free' && state.call?.purpose !== 'transfer'
  const found = isQuestion ? lookUp(setting, { ...left(state).state, call: state.call }, meaning.text) : null
  return found === null ? spokenOver(setting, state) : after(cancelOf(state.call), found)
}

type Asked = Exclude<Request, 'yes' | 'no' | 'nod'>
const isAsked = (request: Request): request is Asked => request !== 'yes' && request !== 'no' && request !== 'nod'

function requested(setting: Setting, state: DialogueState, request: Asked): Advanced {
  if (request === 'goodbye') return after(cancelOf(state.call), end({ ...state, call: null }, goodbye, null))
  if (state.call?.outcome === 'moved') return stay(state)
  if (setting.script.asides.has(request)) return turnAside(setting, state, request)
  if (state.call !== null) return requestedMeanwhile(setting, state, request)
  const ask = questionOf(setting.script, state)
  const step = stepOf(setting.script, state)
  const line = ask ? lineOf(setting, state, ask) : textOf(setting, state, step?.text ?? '')
  switch (request) {
    case 'hello':
      return ask ? speak(state, line) : goOn(setting, state)
    case 'repeat':
      return line === '' ? goOn(setting, state) : speak(state, line)
    case 'stop':
      return ask ? speak(state, stopped) : goOn(setting, state, stopped)
    case 'person':
      return speak(state, ask ? joined(noPerson, line) : noPerson)
    case 'help':
      return speak(state, ask ? joined(hintFor(state, ask), line) : 'You can say repeat, or goodbye.')
  }
}

const hintFor = (state: DialogueState, { slot }: Parameters<typeof lineOf>[2]): string =>
  state.confirming === null ? hintOf(slot) : 'You can say yes or no.'

function requestedMeanwhile(setting: Setting, state: DialogueState, request: Exclude<Asked, 'goodbye'>): Advanced {
  switch (request) {
    case 'stop':
      return drop(setting, state, toolDropped)
    case 'person':
      return speak(state, joined(noPerson, stillWorking))
    case 'hello':
    case 'repeat':
    case 'help':
      return speak(state, stillWorking)
  }
}

/** What the script has for an intent or a request; then it goes on where it was. */
function turnAside(setting: Setting, state: DialogueState, name: string): Advanced {
  const { pending, state: free } = left(resumable(setting, state))
  return after(cancelOf(pending), enter(setting, { ...free, aside: { name, step: 0 } }, ''))
}
