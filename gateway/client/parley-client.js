// @ts-check
/**
 * Browser client of a Parley web call: an ES module without dependencies but parley-path.js, parley-signaling.js and parley-sound.js beside it.
 *
 *   import { createCall, openMicrophone } from './parley-client.js'
 *   const microphone = await openMicrophone()
 *   const session = await fetch('/my-server/session', { method: 'POST' }).then((answer) => answer.json())
 *   const call = createCall({ session, microphone, onStatus: (status) => { … }, onTranscript: (line) => { … } })
 *
 * It owns socket, peer connection, audio element and level meters of one call, and closes them all when the call ends. The microphone
 * stays the integrator's when it was given; one that the call opened is stopped with it.
 */

import { createPath } from './parley-path.js'
import { createSignaling } from './parley-signaling.js'
import { createSound } from './parley-sound.js'

/**
 * @typedef {{ callId: string, sessionId: string, signalingUrl: string, token: string, iceServers: RTCIceServer[], expiresAt: string }} WebCallSession
 * @typedef {'connecting' | 'connected' | 'reconnecting' | 'ended'} CallStatus
 *   `reconnecting`: the signaling socket or the way of the sound is lost and sought again.
 * @typedef {{ role: 'user' | 'agent', text: string, isFinal: boolean, turnIndex: number, ts: string }} TranscriptLine
 * @typedef {{ ready?: number, answer?: number, connected?: number, firstAudio?: number }} Timings Milliseconds since the start.
 * @typedef {{ type: string, details: string }} CallProblem
 *
 * @typedef {object} CallOptions
 * @property {WebCallSession} session What your server got from creating the web call.
 * @property {MediaStream} [microphone] Asked for when not given.
 * @property {number} [startedAt] performance.now() of the click, for the timings.
 * @property {(status: CallStatus, reason: string | null) => void} [onStatus] `reason` comes with `ended`.
 * @property {(status: string, ts: string) => void} [onProgress] The call's own status: ringing, in_progress, …
 * @property {(line: TranscriptLine) => void} [onTranscript]
 * @property {() => void} [onInterrupted] The agent was cut off by the caller.
 * @property {(level: { you: number, agent: number }) => void} [onLevel] 0–1, twenty times a second.
 * @property {(timings: Timings) => void} [onTimings] After each new value.
 * @property {(problem: CallProblem) => void} [onProblem] Also what the call was asked for and does not do.
 *
 * @typedef {object} Call
 * @property {(muted: boolean) => void} mute
 * @property {(digits: string) => void} dtmf 0–9, A–D, * and #.
 * @property {() => void} hangUp Idempotent.
 */

/** Why a call cannot begin; `code` is stable. */
export class CallError extends Error {
  /** @param {'insecure_context' | 'no_microphone' | 'permission_denied' | 'microphone_failed'} code @param {string} message */
  constructor(code, message) {
    super(message)
    this.name = 'CallError'
    this.code = code
  }
}

/** Throws CallError. @returns {Promise<MediaStream>} */
export async function openMicrophone() {
  if (!navigator.mediaDevices)
    throw new CallError('insecure_context', 'The browser gives a microphone to secure pages only (https or localhost).')
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    })
  } catch (error) {
    throw toCallError(error)
  }
}

/** @param {unknown} error */
function toCallError(error) {
  const name = error instanceof DOMException ? error.name : ''
  if (name === 'NotAllowedError')
    return new CallError(
      'permission_denied',
      'The page may not use the microphone. Allow it in the address bar and try again.',
    )
  if (name === 'NotFoundError') return new CallError('no_microphone', 'No microphone was found.')
  return new CallError('microphone_failed', 'The microphone cannot be used. Another program may be holding it.')
}

/**
 * Starts at once; how it goes is told by the callbacks.
 * @param {CallOptions} options
 * @returns {Call}
 */
export function createCall(options) {
  const timings = createTimings(options)
  const sound = createSound({ ...options, onFirstSound: () => timings.mark('firstAudio') })
  const voice = createVoice(options)
  let { peer, path } = createMedia()
  const signaling = createSignaling(options, {
    message: receive,
    lost: () => tell('reconnecting'),
    back: tellState,
    gaveUp,
  })
  let isOver = false

  /** One connection for the sound, and its way. */
  function createMedia() {
    const made = new RTCPeerConnection({ iceServers: options.session.iceServers, bundlePolicy: 'max-bundle' })
    const way = createPath(made, {
      offer: (sdp) => signaling.send({ type: 'offer', sdp }),
      lost: () => tell('reconnecting'),
      back() {
        timings.mark('connected')
        tell('connected')
      },
      gaveUp: () => end('media_failed'),
    })
    made.onicecandidate = ({ candidate }) =>
      made === peer && signaling.send({ type: 'candidate', candidate: candidate?.toJSON() ?? null })
    made.ontrack = ({ track }) => sound.play(new MediaStream([track]))
    made.onconnectionstatechange = way.changed
    return { peer: made, path: way }
  }

  /** The process that had the sound is gone, or not reached any more: another one gets an offer of its own. */
  async function offerAnew() {
    path.close()
    peer.close()
    ;({ peer, path } = createMedia())
    tell('reconnecting')
    await offerOf({ peer, voice, signaling })
  }

  /** @param {CallStatus} status @param {string | null} [reason] */
  function tell(status, reason = null) {
    if (!isOver) options.onStatus?.(status, reason)
  }

  function tellState() {
    tell(peer.connectionState === 'connected' ? 'connected' : 'connecting')
  }

  /** @param {string} reason */
  function end(reason) {
    if (isOver) return
    tell('ended', reason)
    isOver = true
    for (const part of [signaling, path, peer, sound, voice]) part.close()
  }

  /** @param {any} message */
  function receive(message) {
    if (message.type === 'ready') timings.mark('ready')
    if (message.newOffer) void offerAnew().catch(() => end('media_failed'))
    if (message.type === 'answer') void takeAnswer(message.sdp)
    if (message.type === 'candidate') void peer.addIceCandidate(message.candidate ?? undefined)
    if (message.type === 'bye') return end(message.reason)
    show(options, message)
  }

  /** @param {string} sdp */
  async function takeAnswer(sdp) {
    // After a resume the answer may come a second time.
    if (peer.signalingState !== 'have-local-offer') return
    timings.mark('answer')
    await peer.setRemoteDescription({ type: 'answer', sdp }).catch(() => end('media_failed'))
  }

  /** Sound may go on without signaling; without sound there is nothing left. */
  function gaveUp() {
    options.onProblem?.({ type: 'SIGNALING_LOST', details: 'The connection to the service was lost.' })
    if (peer.connectionState !== 'connected') return end('signaling_lost')
    tell('connected')
  }

  tell('connecting')
  begin({ peer, sound, voice, signaling }, () => isOver).catch((error) => {
    options.onProblem?.({ type: error.code ?? 'CLIENT_FAILED', details: error.message })
    end('not_started')
  })
  return callOf({ signaling, voice, end })
}

/**
 * @typedef {{ peer: RTCPeerConnection, sound: ReturnType<typeof createSound>, voice: ReturnType<typeof createVoice>, signaling: ReturnType<typeof createSignaling> }} Parts
 * @param {Parts} parts
 * @param {() => boolean} isOver Whoever hangs up while the browser asks for the microphone gets no call.
 */
async function begin({ peer, sound, voice, signaling }, isOver) {
  const microphone = await voice.open()
  if (isOver()) return voice.close()
  sound.listenTo('you', microphone)
  signaling.open()
  await offerOf({ peer, voice, signaling })
}

/** @param {Pick<Parts, 'peer' | 'voice' | 'signaling'>} parts */
async function offerOf({ peer, voice, signaling }) {
  const microphone = await voice.open()
  for (const track of microphone.getAudioTracks()) peer.addTrack(track, microphone)
  await peer.setLocalDescription()
  signaling.send({ type: 'offer', sdp: peer.localDescription?.sdp })
}

/** @param {{ signaling: ReturnType<typeof createSignaling>, voice: ReturnType<typeof createVoice>, end: (reason: string) => void }} parts @returns {Call} */
const callOf = ({ signaling, voice, end }) => ({
  mute: voice.mute,
  dtmf: (digits) => signaling.send({ type: 'dtmf', digits }),
  hangUp() {
    signaling.send({ type: 'bye' })
    end('hung_up')
  },
})

/** The microphone during the call. @param {CallOptions} options */
function createVoice(options) {
  let isMuted = false
  /** @type {MediaStream | null} */
  let microphone = null

  /** @param {boolean} muted */
  function mute(muted) {
    isMuted = muted
    for (const track of microphone?.getAudioTracks() ?? []) track.enabled = !muted
  }

  return {
    mute,
    async open() {
      microphone ??= options.microphone ?? (await openMicrophone())
      mute(isMuted)
      return microphone
    },
    close() {
      for (const track of options.microphone ? [] : (microphone?.getTracks() ?? [])) track.stop()
    },
  }
}

/** What goes to the page as it came. @param {CallOptions} options @param {any} message */
function show(options, message) {
  if (message.type === 'status') options.onProgress?.(message.status, message.ts)
  if (message.type === 'transcript') options.onTranscript?.(message)
  if (message.type === 'interrupted') options.onInterrupted?.()
  if (message.type === 'error') options.onProblem?.(message.error)
  if (message.type === 'warning') options.onProblem?.({ type: message.warning.type, details: message.warning.message })
}

/** @param {CallOptions} options */
function createTimings({ startedAt = performance.now(), onTimings }) {
  /** @type {Timings} */
  const timings = {}
  return {
    /** The first time counts. @param {keyof Timings} name */
    mark(name) {
      if (timings[name] !== undefined) return
      timings[name] = Math.round(performance.now() - startedAt)
      onTimings?.({ ...timings })
    },
  }
}
