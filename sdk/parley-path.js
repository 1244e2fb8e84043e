// @ts-check
/**
 * Owns the way of a call's sound through the network: when it is lost (another network, a NAT that forgot), it offers once more with new
 * ICE credentials, and the same call goes on over whatever way is found then.
 */

/** A browser says so when checks go unanswered; it may be a moment only. */
const restartAfter = 2000
/** An offer that led nowhere by then is made once more. */
const retryEvery = 8000
/** As long as the service keeps the call for a client that may come back. */
const giveUpAfter = 30_000

/**
 * @param {RTCPeerConnection} peer
 * @param {{ offer: (sdp: string | undefined) => void, lost: () => void, back: () => void, gaveUp: () => void }} handlers
 *   `lost` and `back` in turns, after the call was connected once.
 */
export function createPath(peer, { offer, lost, back, gaveUp }) {
  /** @type {number | undefined} */
  let timer
  let lostAt = 0
  let isClosed = false
  /** Somebody asked for a new way although there is one. */
  let isWished = false

  async function restart() {
    if (isClosed || (peer.connectionState === 'connected' && !isWished)) return
    if (lostAt > 0 && performance.now() - lostAt > giveUpAfter) return gaveUp()
    timer = setTimeout(tryAgain, retryEvery)
    isWished = false
    peer.restartIce()
    // An offer that is not answered yet would be answered twice.
    if (peer.signalingState === 'have-local-offer') await peer.setLocalDescription({ type: 'rollback' })
    await peer.setLocalDescription()
    if (!isClosed) offer(peer.localDescription?.sdp)
  }

  // Where one cannot be made, the next one may be.
  const tryAgain = () => void restart().catch(() => undefined)

  /** @param {number} after */
  function lose(after) {
    if (lostAt === 0) lost()
    lostAt ||= performance.now()
    clearTimeout(timer)
    timer = setTimeout(tryAgain, after)
  }

  function found() {
    clearTimeout(timer)
    lostAt = 0
    back()
  }

  return {
    /** `connectionState` is another one. */
    changed() {
      if (peer.connectionState === 'connected') found()
      if (peer.connectionState === 'disconnected') lose(restartAfter)
      if (peer.connectionState === 'failed') lose(0)
    },
    /** A new way, whatever the one of now looks like. */
    renew() {
      clearTimeout(timer)
      isWished = true
      tryAgain()
    },
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
