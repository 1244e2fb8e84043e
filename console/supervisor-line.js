/** Owns the sound between this browser and a call that is listened to: heard at once, and spoken into when the call is taken over. */
import { ask } from './ask.js'

/**
 * @typedef {object} SupervisorLine
 * @property {string} id
 * @property {() => Promise<void>} openMicrophone asks for it, and sends it from here on
 * @property {() => void} closeMicrophone
 * @property {(isTelling: boolean) => void} close `isTelling`: the service does not know of it yet
 */

/** Ms. */
const gatherWithin = 1_000

/**
 * @param {string} address of the supervision of the call
 * @param {(reason: string) => void} lost the sound is gone
 * @returns {Promise<SupervisorLine>}
 */
export async function openLine(address, lost) {
  const peer = new RTCPeerConnection({ bundlePolicy: 'max-bundle' })
  const player = new Audio()
  // Both ways from the beginning, so that nothing is negotiated anew when the call is taken over.
  const { sender } = peer.addTransceiver('audio', { direction: 'sendrecv' })
  peer.addEventListener('track', ({ track }) => {
    player.srcObject = new MediaStream([track])
    player.play().catch(() => {
      if (!isOpen) return
      close(true)
      lost('The browser does not play the sound.')
    })
  })
  let isOpen = true
  let id = ''
  /** @type {MediaStreamTrack | null} */
  let microphone = null
  const closeMicrophone = () => {
    microphone?.stop()
    microphone = null
    if (isOpen) void sender.replaceTrack(null)
  }
  const gone = () => close(true)
  const close = (/** @type {boolean} */ isTelling) => {
    if (!isOpen) return
    closeMicrophone()
    isOpen = false
    removeEventListener('pagehide', gone)
    player.srcObject = null
    peer.close()
    if (isTelling && id !== '') ask(`${address}/${id}`, { method: 'DELETE', isLast: true }).catch(() => undefined)
  }
  peer.addEventListener('connectionstatechange', () => {
    if (!isOpen || !['failed', 'closed'].includes(peer.connectionState)) return
    close(true)
    lost('The sound was lost. Listen again.')
  })
  addEventListener('pagehide', gone)
  try {
    await peer.setLocalDescription()
    await gathered(peer)
    const answer = /** @type {{ id: string, sdp: string }} */ (
      await ask(address, { method: 'POST', json: { sdp: peer.localDescription?.sdp ?? '' } })
    )
    id = answer.id
    if (!isOpen) {
      ask(`${address}/${id}`, { method: 'DELETE', isLast: true }).catch(() => undefined)
      throw new Error('The sound was lost. Listen again.')
    }
    await peer.setRemoteDescription({ type: 'answer', sdp: answer.sdp })
  } catch (error) {
    close(true)
    throw error
  }
  return {
    id,
    close,
    closeMicrophone,
    async openMicrophone() {
      const track = (await askMicrophone()).getAudioTracks()[0] ?? null
      if (!isOpen) return track?.stop()
      microphone = track
      await sender.replaceTrack(track)
    },
  }
}

/** Why browsers give none (Media Capture and Streams, section 10.2), and what helps. @type {Readonly<Record<string, string>>} */
const noMicrophone = {
  NotAllowedError:
    'The microphone is not allowed for this page. Allow it in the browser, beside the address of the page',
  NotFoundError: 'There is no microphone. Connect one',
  NotReadableError: 'The microphone cannot be opened: another program may use it. Close that',
}

async function askMicrophone() {
  // The types do not know of pages that browsers do not trust.
  const devices = /** @type {MediaDevices | undefined} */ (navigator.mediaDevices)
  if (!devices)
    throw new Error(
      'Browsers give a microphone to pages by https only, and to those of their own machine. Nothing has changed: the agent has the call.',
    )
  return devices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true } }).catch((error) => {
    const reason =
      noMicrophone[error.name] ?? `The microphone cannot be used (${error.name}). Look at the browser's settings`
    throw new Error(`${reason}, and take over again. Nothing has changed: the agent has the call.`)
  })
}

/** The service looks where checks come from: what is not found soon is not needed. @param {RTCPeerConnection} peer */
const gathered = (peer) =>
  peer.iceGatheringState === 'complete'
    ? undefined
    : new Promise((resolve) => {
        setTimeout(resolve, gatherWithin)
        peer.addEventListener('icegatheringstatechange', () => peer.iceGatheringState === 'complete' && resolve(null))
      })
