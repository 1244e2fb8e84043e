/** Owns what callers stand on: the deployment or a service of our own, a telephone, voices, and a receiver of events where one can be reached. */
import { systemClock as clock } from '../../app/clock.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { orCannot } from '../cannot.ts'
import type { ChatEndpoint } from './chat-caller.ts'
import { openDeployment } from './deployment.ts'
import { openEvents } from './events.ts'
import { openTelephone } from './lines.ts'
import { openOwnParley } from './own-parley.ts'
import type { Stage } from './run-call.ts'
import { openVoices } from './voices.ts'

export type StageWish = {
  /** Null: a service of our own. */
  readonly deployment: { readonly url: string; readonly key: string } | null
  /** `host:port`, of a deployment. */
  readonly sip: string | null
  /** Local address from which telephones and browsers of ours call; null: loopback. */
  readonly from: string | null
  readonly scriptFile?: string | undefined
  readonly chat?: ChatEndpoint | null
  readonly settings: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
}

/** Closed with `closing`. */
export async function openStage(wish: StageWish, closing: AsyncDisposableStack): Promise<Stage> {
  const ticker = createTicker({ now: () => performance.now(), after: (ms, action) => clock.after(ms, action) })
  closing.defer(() => ticker.close())
  const named = wish.deployment && (await openDeployment(wish.deployment))
  const voices = await openVoices()
  closing.defer(() => voices.close())
  const address = wish.from ?? '127.0.0.1'
  const telephone = await orCannot(`--from ${address}`, () => openTelephone({ address, ticker }))
  closing.defer(() => telephone.close())
  const { scriptFile, settings } = wish
  const own = named ? null : await openOwnParley({ scriptFile, settings, phonePort: telephone.port }, closing)
  const deployment = named ?? (await openDeployment(own!))
  // Another machine cannot reach a receiver on our loopback.
  const events = isNear(deployment.url) ? await openEvents(deployment) : null
  if (events) closing.defer(() => events.close())
  const sip = own ? `127.0.0.1:${own.sip.port}` : wish.sip
  return {
    deployment,
    telephone,
    sip,
    webAddress: wish.from,
    events,
    voices,
    chat: wish.chat ?? null,
    opus: createOpusLibrary(),
    ticker,
    shown: new Set(),
    signal: wish.signal,
  }
}

const isNear = (url: string): boolean => /^(127\.|localhost$|\[::1\]$)/.test(new URL(url).hostname)
