// @ts-check
/** Owns the microphone of a call and the choice of devices. */
import { callError } from './parley-errors.js'

/** @import { CallError } from './parley-errors.js' */
/** @import { Device, Devices, MicrophoneState } from './types/parley-client.d.ts' */

const processing = { echoCancellation: true, noiseSuppression: true, autoGainControl: true }

/** Throws CallError. @param {{ deviceId?: string }} [wish] @returns {Promise<MediaStream>} */
export async function openMicrophone({ deviceId } = {}) {
  if (!navigator.mediaDevices) throw callError('insecure_context')
  const chosen = deviceId ? { deviceId: { exact: deviceId } } : {}
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: { ...processing, ...chosen } })
  } catch (error) {
    throw toCallError(error)
  }
}

/** @param {unknown} error @returns {CallError} */
function toCallError(error) {
  const name = error instanceof DOMException ? error.name : ''
  if (name === 'NotAllowedError' || name === 'SecurityError') return callError('permission_denied', error)
  if (name === 'NotFoundError' || name === 'OverconstrainedError') return callError('no_microphone', error)
  return callError('microphone_failed', error)
}

/** Throws CallError. @returns {Promise<Devices>} */
export async function listDevices() {
  if (!navigator.mediaDevices) throw callError('insecure_context')
  const found = await navigator.mediaDevices.enumerateDevices()
  const of = (/** @type {MediaDeviceKind} */ kind) => found.filter((device) => device.kind === kind).map(toDevice)
  return { microphones: of('audioinput'), speakers: of('audiooutput') }
}

/** @param {MediaDeviceInfo} device @returns {Device} */
const toDevice = ({ deviceId, label }) => ({ id: deviceId, name: label, isDefault: deviceId === 'default' })

/**
 * The microphone during the call: opened when it is needed, changed for another one, opened anew when it was unplugged. One that was given is not
 * stopped.
 * @param {{ microphone?: MediaStream, microphoneId?: string }} options
 * @param {{ changed: (state: MicrophoneState) => void, lost: () => void }} handlers
 */
export function createVoice({ microphone: given, microphoneId }, { changed, lost }) {
  let isMuted = false
  let isClosed = false
  /** @type {MediaStream | null} */
  let microphone = null

  /** @param {MediaStream} stream */
  function take(stream) {
    microphone = stream
    for (const track of stream.getAudioTracks()) {
      track.enabled = !isMuted
      track.onended = () => {
        if (isClosed || microphone !== stream) return
        changed('lost')
        lost()
      }
    }
    changed('open')
    return stream
  }

  /** @param {MediaStream | null} stream */
  function giveBack(stream) {
    for (const track of stream === given ? [] : (stream?.getTracks() ?? [])) track.stop()
  }

  /** Null: the call was over before it came. @param {string | undefined} deviceId */
  async function ask(deviceId) {
    const stream = await openMicrophone(deviceId ? { deviceId } : {})
    if (!isClosed) return stream
    giveBack(stream)
    return null
  }

  return {
    /** @param {boolean} muted */
    mute(muted) {
      isMuted = muted
      for (const track of microphone?.getAudioTracks() ?? []) track.enabled = !muted
    },
    /** The same one each time. Null: the call is over. */
    async open() {
      if (microphone || isClosed) return microphone
      if (given) return take(given)
      changed('asking')
      try {
        const stream = await ask(microphoneId)
        return stream && take(stream)
      } catch (error) {
        changed('closed')
        throw error
      }
    },
    /** Another one in its place; the former stays where that cannot be had. @param {string} deviceId Empty: the browser's own choice. */
    async exchange(deviceId) {
      const stream = await ask(deviceId)
      if (!stream) return null
      const former = microphone
      take(stream)
      giveBack(former)
      return stream
    },
    close() {
      isClosed = true
      giveBack(microphone)
      microphone = null
      changed('closed')
    },
  }
}
