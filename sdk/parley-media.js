// @ts-check
/** Owns the sound of a call through the network: one RTCPeerConnection at a time, its offers and answers, and another one where the service asks for it. */
import { createPath } from './parley-path.js'

/**
 * @param {{
 *   iceServers: RTCIceServer[],
 *   send: (message: { type: string, [field: string]: unknown }) => void,
 *   microphone: () => Promise<MediaStream | null>,
 *   played: (stream: MediaStream) => void,
 *   lost: () => void,
 *   connected: () => void,
 *   answered: () => void,
 *   failed: () => void,
 * }} deps `microphone`: null when the call is over. `lost` and `connected` in turns.
 */
export function createMediaPath({ iceServers, send, microphone, played, lost, connected, answered, failed }) {
  let { peer, path } = create()

  function create() {
    const made = new RTCPeerConnection({ iceServers, bundlePolicy: 'max-bundle' })
    const way = createPath(made, {
      offer: (sdp) => send({ type: 'offer', sdp }),
      lost,
      back: connected,
      gaveUp: failed,
    })
    made.onicecandidate = ({ candidate }) =>
      made === peer && send({ type: 'candidate', candidate: candidate?.toJSON() ?? null })
    made.ontrack = ({ track }) => played(new MediaStream([track]))
    made.onconnectionstatechange = way.changed
    return { peer: made, path: way }
  }

  function close() {
    path.close()
    peer.close()
  }

  async function offer() {
    const stream = await microphone()
    if (!stream || peer.signalingState === 'closed') return
    for (const track of stream.getAudioTracks()) peer.addTrack(track, stream)
    await peer.setLocalDescription()
    send({ type: 'offer', sdp: peer.localDescription?.sdp })
  }

  return {
    peer: () => peer,
    isConnected: () => peer.connectionState === 'connected',
    offer,
    /** The process that had the sound is gone, or not reached any more: another one gets an offer of its own. */
    async offerAnew() {
      close()
      ;({ peer, path } = create())
      await offer()
    },
    /** After a resume the answer may come a second time. @param {string} sdp */
    answer(sdp) {
      if (peer.signalingState !== 'have-local-offer') return
      answered()
      peer.setRemoteDescription({ type: 'answer', sdp }).catch(failed)
    },
    /** One that cannot be used is one way less. @param {RTCIceCandidateInit | null} candidate */
    candidate: (candidate) => void peer.addIceCandidate(candidate ?? undefined).catch(() => undefined),
    /** Another microphone, without a word to the service. @param {MediaStream} stream */
    async replace(stream) {
      const [track] = stream.getAudioTracks()
      const sender = peer.getSenders().find(({ track: sent }) => sent === null || sent.kind === 'audio')
      await sender?.replaceTrack(track ?? null)
    },
    restart: () => path.renew(),
    close,
  }
}
