/** Owns how a session of Gemini Live is opened, and what the end of its connection means. Facts: https://ai.google.dev/api/live. */
import type { Clock } from '../../../model/clock.ts'
import { EngineRefusal } from '../../../model/voice-engine.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'
import { openJsonSocket } from '../hosted/json-socket.ts'
import type { OpenWire, Wire, WireSetup, WireTold } from '../hosted/wire.ts'
import type { Notices } from '../notices.ts'
import { createLiveSession } from './live-session.ts'
import { readMessage, type ServerMessage } from './messages.ts'
import { addressOf, handleOf, historyOf, newsOf, setupOf } from './setup.ts'

type Deps = {
  readonly url: string
  readonly apiKey: string
  readonly model: string
  readonly voice: string | null
  readonly clock: Clock
  readonly tellOnce: Notices
  /** Languages that the model has refused; written here. */
  readonly refusedLanguages?: Set<string>
  createDetector(): VoiceDetector
}

const setupTimeout = 10_000
/** A handle that is not taken up costs the caller this much of silence at most, before a new session is opened. */
const resumeTimeout = 4_000
const maxEarly = 100

type Emit = (event: WireTold) => void

/**
 * A session goes on from its handle; a handle that is refused or too old costs a second try with what was said. So does a language: models know few by
 * their codes, and speak more, as the prompt asks them to.
 */
export const createGeminiWire = (deps: Deps): OpenWire => {
  const { refusedLanguages = new Set() } = deps
  const without = (setup: WireSetup): WireSetup => ({ ...setup, language: '' })
  const openAnew = async (setup: WireSetup, emit: Emit): Promise<Wire> => {
    try {
      return await openSession(deps, setup, emit, null)
    } catch (error) {
      if (setup.language === '' || !mayMeanLanguage(error)) throw error
      const wire = await openSession(deps, without(setup), emit, null)
      refusedLanguages.add(setup.language)
      deps.tellOnce('the model does not take a language of workers by its code: the prompt alone asks for it')
      return wire
    }
  }
  return async (given, emit) => {
    const setup = refusedLanguages.has(given.language) ? without(given) : given
    const handle = handleOf(setup.memory)
    if (handle !== null)
      try {
        return await openSession(deps, setup, emit, handle)
      } catch {
        deps.tellOnce('the provider did not take up a session again: a new one is told what was said')
      }
    return openAnew(setup, emit)
  }
}

/** 1007 may mean anything in the setup, and says so in words of its own only of some. */
const mayMeanLanguage = (error: unknown): boolean =>
  error instanceof EngineRefusal && /\(1007\b/.test(error.message) && !/api[ _]?key|voice/i.test(error.message)

/**
 * Google closes with 1007 (argument), 1008 (policy) and 1011 (internal, but quota as well) and says why in words only. During the setup the first two are
 * the setup's fault, which it refuses again. Of a session that had taken it they are told as well in the midst of sound like the sound before
 * (hkjarral/AVA-AI-Voice-Agent-for-Asterisk#496) and of tools (pipecat-ai/pipecat#4403): a new one lives, unless the words say that the account has none.
 */
export function isRetryable(details: string, code: number, wasReady: boolean): boolean {
  if (/api[ _]?key|credential|permission|unauthenticated|quota|billing/i.test(details)) return false
  if (wasReady) return true
  return code !== 1007 && code !== 1008 && !/not found for api|not supported|blocked/i.test(details)
}

async function openSession(deps: Deps, setup: WireSetup, emit: Emit, handle: string | null): Promise<Wire> {
  const ready = Promise.withResolvers<void>()
  ready.promise.catch(() => {}) // It may be rejected before anybody waits for it.
  const early: ServerMessage[] = []
  let take = (message: ServerMessage): void => {
    if (early.length < maxEarly) early.push(message)
  }
  let lost = (details: string, code: number): void =>
    ready.reject(new EngineRefusal(details, isRetryable(details, code, false)))
  const socket = await openJsonSocket({
    url: addressOf(deps.url, deps.apiKey),
    key: deps.apiKey,
    clock: deps.clock,
    onMessage(raw) {
      const message = readMessage(raw)
      if (message.setupComplete) ready.resolve()
      take(message)
    },
    onLost: (details, code) => lost(details, code),
  }).catch((error: unknown) => {
    throw refusalOf(error, deps.apiKey)
  })
  const refuse = (): void => ready.reject(new EngineRefusal('it did not answer the setup in time', true))
  const cancel = deps.clock.after(handle === null ? setupTimeout : resumeTimeout, refuse)
  try {
    socket.send(setupOf(setup, deps, handle))
    await ready.promise
  } catch (error) {
    socket.close()
    throw error
  } finally {
    cancel()
  }
  const history = handle === null ? historyOf(setup.history) : null
  if (history !== null) socket.send(history)
  const session = beginSession({
    ...deps,
    socket,
    handle,
    news: newsOf(setup.memory),
    attends: setup.attends === true,
    emit,
  })
  lost = (details, code) => session.lost(details, isRetryable(details, code, true))
  take = session.take
  early.forEach(take)
  return session.wire
}

/** Without a session its socket must be closed here. */
function beginSession(deps: Parameters<typeof createLiveSession>[0]): ReturnType<typeof createLiveSession> {
  try {
    return createLiveSession(deps)
  } catch (error) {
    deps.socket.close()
    throw error
  }
}

function refusalOf(error: unknown, apiKey: string): unknown {
  if (!(error instanceof EngineRefusal)) return error
  const details = error.message.replaceAll(apiKey, '[key]')
  return new EngineRefusal(details, error.isRetryable && isRetryable(details, 1006, true))
}
