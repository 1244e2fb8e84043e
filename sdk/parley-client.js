// @ts-check
/**
 * Browser SDK of Parley: a voice call between a web page and an agent. ES modules without dependencies; docs/sdk.md tells all of it.
 *
 *   import { createCall } from './parley-client.js'
 *   const session = () => fetch('/my-server/session', { method: 'POST' }).then((answer) => answer.json())
 *   const call = createCall({ session })
 *   call.on('agent', ({ state }) => { … })
 *   call.on('transcript', (line) => { … })
 *
 * A call owns its socket, peer connection, audio element and meters, and closes them all when it ends. The microphone stays the integrator's when it
 * was given; one that the call opened is stopped with it.
 */
import { createAgentState } from './parley-agent.js'
import { callError, troubleOf, troubleOfEnding, troubleOfMessage, troubleOfThrown } from './parley-errors.js'
import { createEvents, withLine } from './parley-events.js'
import { createMediaPath } from './parley-media.js'
import { createVoice, listDevices } from './parley-microphone.js'
import { createQualityWatch, statsOf } from './parley-quality.js'
import { createSignaling } from './parley-signaling.js'
import { createSound } from './parley-sound.js'

export { CallError } from './parley-errors.js'
export { listDevices, openMicrophone } from './parley-microphone.js'

/** @import { Call, CallOptions, CallStatus, CallTrouble, Timings, TranscriptLine, WebCallSession } from './types/parley-client.d.ts' */

const maxText = 1000

/**
 * Starts at once; how it goes is told by events.
 * @param {CallOptions} options @returns {Call}
 */
export function createCall(options) {
  const events = createEvents()
  const { emit, change, state } = events
  tellOptions(options, events.on)
  const timings = createTimings(options, (marked) => emit('timings', marked))
  const agent = createAgentState({
    now: () => performance.now(),
    changed(next) {
      change({ agent: next })
      emit('agent', { state: next })
    },
  })
  const sound = createSound({
    onLevel(level) {
      if (state().status === 'connected') agent.level(level)
      emit('level', level)
    },
    onFirstSound: () => timings.mark('firstAudio'),
    onHeldBack: () => trouble(troubleOf('playback_blocked')),
  })
  const voice = createVoice(options, {
    changed(next) {
      change({ microphone: next })
      emit('microphone', { state: next })
    },
    lost() {
      trouble(troubleOf('microphone_lost'))
      // The browser may have another one; what it says if not was said already.
      void exchange('').catch(() => undefined)
    },
  })
  /** @type {ReturnType<typeof createSignaling> | null} */
  let signaling = null
  /** @type {ReturnType<typeof createMediaPath> | null} */
  let media = null
  let isOver = false
  const quality = createQualityWatch({
    peer: () => media?.peer() ?? null,
    measured(measured) {
      change({ quality: measured })
      emit('quality', measured)
    },
  })
  const stopWatching = watchDevices((devices) => emit('devices', devices))

  /** @param {CallStatus} status @param {string | null} [reason] */
  function tell(status, reason = null) {
    if (isOver) return
    if (status !== 'connected') agent.rest()
    const connectedAt = state().connectedAt ?? (status === 'connected' ? Date.now() : null)
    change({ status, reason, connectedAt, ...(status === 'ended' && { endedAt: Date.now() }) })
    emit('status', { status, reason })
  }

  /** @param {CallTrouble} told */
  function trouble(told) {
    change({ error: told })
    emit('error', told)
  }

  /** @param {string} reason @param {CallTrouble | null} [why] */
  function end(reason, why = troubleOfEnding(reason)) {
    if (isOver) return
    if (why) trouble(why)
    tell('ended', reason)
    isOver = true
    stopWatching()
    for (const part of [signaling, media, quality, sound, voice]) part?.close()
  }

  /** @param {WebCallSession} session */
  function connect(session) {
    change({ callId: session.callId })
    const socket = createSignaling({ session }, { message: receive, lost: () => tell('reconnecting'), back, gaveUp })
    signaling = socket
    media = createMediaPath({
      iceServers: session.iceServers,
      send: socket.send,
      microphone: () => voice.open(),
      played: sound.play,
      lost: () => tell('reconnecting'),
      connected() {
        timings.mark('connected')
        tell('connected')
      },
      answered: () => timings.mark('answer'),
      failed: () => end('media_failed'),
    })
    socket.open()
    return media.offer()
  }

  function back() {
    if (media?.isConnected()) return tell('connected')
    // Of a call that was connected the sound is sought on.
    if (state().connectedAt === null) tell('connecting')
  }

  /** Sound may go on without signaling; without sound there is nothing left. */
  function gaveUp() {
    if (media?.isConnected()) {
      trouble(troubleOf('signaling_lost'))
      return tell('connected')
    }
    // The browser says of a socket that was never open only that it was not.
    const why = signaling?.wasOpen() ? 'signaling_lost' : isExpired(options.session) ? 'token_expired' : 'join_refused'
    end(why, troubleOf(why, { isFatal: true }))
  }

  /** @param {any} message */
  function receive(message) {
    if (message.type === 'ready') timings.mark('ready')
    if (message.newOffer) {
      tell('reconnecting')
      void media?.offerAnew().catch(() => end('media_failed'))
    }
    if (message.type === 'answer') media?.answer(message.sdp)
    if (message.type === 'candidate') media?.candidate(message.candidate)
    if (message.type === 'bye') return end(message.reason)
    show(message)
  }

  /** @param {any} message */
  function show(message) {
    if (message.type === 'status') {
      change({ progress: message.status })
      emit('progress', message)
    }
    if (message.type === 'transcript') {
      agent.line(message)
      change({ transcript: withLine(state().transcript, message) })
      emit('transcript', message)
    }
    if (message.type === 'interrupted') {
      agent.interrupted()
      emit('interrupted', {})
    }
    if (message.type === 'error') trouble(troubleOfMessage(message.error))
    if (message.type === 'warning')
      trouble(troubleOf('not_supported', { cause: message.warning.type, sentence: message.warning.message }))
  }

  /** @param {string} deviceId */
  async function exchange(deviceId) {
    const stream = await voice.exchange(deviceId)
    if (!stream) return
    sound.listenTo('you', stream)
    await media?.replace(stream)
  }

  async function begin() {
    const microphone = await voice.open()
    if (!microphone) return
    sound.listenTo('you', microphone)
    if (options.speakerId !== undefined)
      await sound.setSpeaker(options.speakerId).catch((error) => trouble({ ...troubleOfThrown(error), isFatal: false }))
    const session = await sessionOf(options.session)
    if (!isOver) await connect(session)
  }

  tell('connecting')
  begin().catch((error) => end('not_started', troubleOfThrown(error)))
  return {
    on: events.on,
    state,
    mute(isMuted) {
      voice.mute(isMuted)
      change({ isMuted })
      emit('mute', { isMuted })
    },
    dtmf: (digits) => signaling?.send({ type: 'dtmf', digits }),
    sendText(text) {
      const words = text.trim().slice(0, maxText)
      if (words === '' || isOver || !media?.isConnected()) return false
      signaling?.send({ type: 'text', text: words })
      return true
    },
    setMicrophone: exchange,
    setSpeaker: sound.setSpeaker,
    resumePlayback: sound.resume,
    async stats() {
      const peer = media?.peer()
      return peer && !isOver ? statsOf(peer) : null
    },
    restartMedia: () => media?.restart(),
    hangUp() {
      signaling?.send({ type: 'bye' })
      end('hung_up')
    },
  }
}

/**
 * What it could not be got for is said in the integrator's own words, or in those of the service where its refusal was passed on.
 * @param {CallOptions['session']} session
 */
async function sessionOf(session) {
  const asked = async () => (typeof session === 'function' ? session() : session)
  /** @type {any} */
  const got = await asked().catch((error) => refused(error, error instanceof Error && error.message))
  if (typeof got?.signalingUrl !== 'string' || typeof got.token !== 'string') refused(got, got?.details)
  return /** @type {WebCallSession} */ (got)
}

/** @param {unknown} cause @param {unknown} words @returns {never} */
function refused(cause, words) {
  const error = callError('session_failed', cause)
  if (typeof words === 'string' && words !== '') error.message = words
  throw error
}

/** @param {CallOptions['session']} session */
const isExpired = (session) => typeof session !== 'function' && Date.parse(session.expiresAt) < Date.now()

/** @param {(devices: import('./types/parley-client.d.ts').Devices) => void} changed */
function watchDevices(changed) {
  const look = () => void listDevices().then(changed, () => undefined)
  navigator.mediaDevices?.addEventListener('devicechange', look)
  return () => navigator.mediaDevices?.removeEventListener('devicechange', look)
}

/** The callbacks of the options are listeners like others. @param {CallOptions} options @param {Call['on']} on */
function tellOptions(options, on) {
  on('status', ({ status, reason }) => options.onStatus?.(status, reason))
  on('progress', ({ status, ts }) => options.onProgress?.(status, ts))
  on('transcript', (line) => options.onTranscript?.(line))
  on('interrupted', () => options.onInterrupted?.())
  on('level', (level) => options.onLevel?.(level))
  on('timings', (timings) => options.onTimings?.(timings))
  on('error', (trouble) => options.onProblem?.({ type: problemTypeOf(trouble), details: trouble.sentence }))
}

/** As pages know them from before there were codes for all of it. @param {CallTrouble} trouble */
function problemTypeOf({ code, cause }) {
  if (cause && /^[A-Z_]+$/.test(cause)) return cause
  return code === 'signaling_lost' || code === 'client_failed' ? code.toUpperCase() : code
}

/** @param {CallOptions} options @param {(timings: Timings) => void} marked */
function createTimings({ startedAt = performance.now() }, marked) {
  /** @type {Timings} */
  const timings = {}
  return {
    /** The first time counts. @param {keyof Timings} name */
    mark(name) {
      if (timings[name] !== undefined) return
      timings[name] = Math.round(performance.now() - startedAt)
      marked({ ...timings })
    },
  }
}
