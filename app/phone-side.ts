/** Owns the wiring of the telephone edge: a SIP server, embedded or a drachtio-server, and the app on it. */
import { familyOf } from '../net/addresses.ts'
import type { FailureGuard } from '../net/failure-guard.ts'
import { createSipServer, type SipServer } from '../sip/server/sip-server.ts'
import { createMessageTrail, type MessageTrail } from '../sip/message-trail.ts'
import { createSipEdge, type SipHealth } from '../sip/sip-edge.ts'
import { createStrangers, type Strangers } from '../sip/strangers.ts'
import type { CallSide } from './call-side.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import { connectionsWithin, openFilesLimit } from './descriptors.ts'
import { atDrachtio, atSipPorts } from './failing-places.ts'
import { createSipReach } from './sip-reach.ts'
import type { MediaSide } from './media-side.ts'

export type PhoneSide = {
  /** Where the embedded server takes UDP and TCP; null with a drachtio-server, which has its own settings. */
  readonly listening: { readonly address: string; readonly port: number } | null
  health(): SipHealth
  /** No new calls from here on. */
  stop(): void
  /** Calls that run are left to other processes, where some would ask their telephones over. Resolves when that is written down, or cannot be. */
  handOn(): Promise<void>
  /** Resolves when no call is left, or after `ms`: those whose actors are elsewhere too. */
  drained(ms: number): Promise<void>
  /** What the embedded server keeps at this moment; null with a drachtio-server. */
  sizes(): ReturnType<SipServer['sizes']> | null
}

type Parts = {
  readonly core: Core
  readonly config: Config & { readonly sip: SipConfig }
  readonly calls: CallSide
  readonly media: MediaSide
  readonly guard: FailureGuard
}
export type SipConfig = NonNullable<Config['sip']>

export async function openPhoneSide(parts: Parts, closing: AsyncDisposableStack): Promise<PhoneSide> {
  const { core, calls, config, media, guard } = parts
  const { sip } = config
  const { clock, log, bus } = core
  const strangers = createStrangers({ guard, telephony: calls.telephony, clock, log })
  const trail = createMessageTrail(clock)
  const open = () => openSipServer(core, sip, strangers, trail)
  const server = sip.drachtio === null ? await atSipPorts(sip, open) : null
  closing.defer(async () => server?.close())
  const edge = await createSipEdgeAs(sip, {
    control: server?.control ?? (sip.drachtio as NonNullable<typeof sip.drachtio>),
    telephony: calls.telephony,
    bus,
    plane: media,
    clock,
    log,
    strangers,
    // What the embedded server does by itself: it asks after names have been looked up, tells of a 100, and is silent to strangers.
    ...(server && { trail }),
    options: server
      ? { identities: server.identities, forget: server.forget, onRefreshed: server.onRefreshed }
      : { ...notEmbedded, mayReach: createSipReach(sip.allowHosts) },
  })
  closing.defer(() => edge.close(0))
  const local = server?.listening[0]?.local
  const { health, stop, handOn, drained } = edge
  return { listening: local ?? null, health, stop, handOn, drained, sizes: () => server?.sizes() ?? null }
}

/** A failure names what is set; the embedded server has no such settings. */
const createSipEdgeAs = async (
  { drachtio }: SipConfig,
  options: Parameters<typeof createSipEdge>[0],
): ReturnType<typeof createSipEdge> =>
  drachtio === null ? createSipEdge(options) : atDrachtio(drachtio, () => createSipEdge(options))

const notEmbedded = { tellsTrying: false, refusesStrangers: true } as const

export function openSipServer(
  { clock, log }: Pick<Core, 'clock' | 'log'>,
  sip: SipConfig,
  strangers: Pick<Strangers, 'hears' | 'admits' | 'isKnown'> | null = null,
  trail: Pick<MessageTrail, 'note'> | null = null,
): Promise<SipServer> {
  const { address, publicAddress } = sip
  const isSix = publicAddress !== null && familyOf(publicAddress) === 6
  const externalAddress = { ipv4: isSix ? null : publicAddress, ipv6: isSix ? publicAddress : null }
  const plain = (['udp', 'tcp'] as const).map((protocol) => ({ protocol, address, port: sip.port }))
  const secure = sip.tls ? [{ protocol: 'tls', address, port: sip.tlsPort, tls: sip.tls } as const] : []
  const { tlsClient } = sip
  const mayReach = createSipReach(sip.allowHosts)
  const guarded = strangers && { hears: strangers.hears, peers: strangers }
  const limits = {
    maxConnections: connectionsWithin(openFilesLimit(), { http: 0, sip: sip.connections.inAll }).sip,
    maxConnectionsPerAddress: sip.connections.perAddress,
  }
  const listen = [...plain, ...secure]
  return createSipServer({
    listen,
    externalAddress,
    tlsClient,
    mayReach,
    limits,
    ...guarded,
    ...(trail && { told: trail.note }),
    clock,
    log,
  })
}
