/** Owns the service's end of web calls, with a ticker of its own. */
import { systemClock } from '../../app/clock.ts'
import { createWeriftPeers, type WeriftPeers } from '../../gateway/werift/peer.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import type { Log } from '../../model/log.ts'

/** On loopback only; `offersInterfaces` as on default settings. */
export function openWebPeers(log: Log, { offersInterfaces = false } = {}): WeriftPeers {
  const now = (): number => performance.now()
  const ticker = createTicker({ now, after: (ms, action) => systemClock.after(ms, action) })
  const peers = createWeriftPeers({
    bindAddress: '127.0.0.1',
    offersInterfaces,
    portRange: [0, 0],
    ticker,
    now,
    log,
  })
  return { ...peers, close: () => peers.close().finally(ticker.close) }
}
