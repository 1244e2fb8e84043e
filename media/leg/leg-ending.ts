/**
 * Owns how a leg ends: once, told once. When the media is gone the leg stays for a while, so that its actor can still close it and learn
 * what was recorded; when nobody does, it goes by itself.
 */
import type { ClosedLeg, LegEvent } from '../../model/leg.ts'

/** The last word of a leg. */
export type LegEnd = Extract<LegEvent, { readonly type: 'disconnected' | 'dial_failed' | 'transferred' }>

export type LegEndingDeps = {
  readonly now: () => number
  readonly tell: (event: LegEvent) => void
  /** Closes the media, which ended `at`; never rejects. */
  readonly finish: (reason: string, at: number) => Promise<ClosedLeg>
  /** Lets go of what is left. */
  readonly release: () => void
}

export type LegEnding = {
  readonly isOver: () => boolean
  /** What was told at the end; null before it, and when nothing was because the leg was closed. */
  readonly told: () => LegEnd | null
  /** The media is gone, since `at` when that was noticed later: tells so, resolves when it is closed. */
  readonly end: (event: LegEnd, at?: number) => Promise<void>
  /** Tells nothing: it was asked for. */
  readonly close: (reason: string) => Promise<ClosedLeg>
  readonly tick: () => void
}

const lingerMs = 30_000

export function createLegEnding({ now, tell, finish, release }: LegEndingDeps): LegEnding {
  let overSince: number | null = null
  /** Before `overSince` when the media was lost. */
  let mediaEndedAt = 0
  let told: LegEnd | null = null
  let finishing: Promise<ClosedLeg> | null = null
  let closing: Promise<ClosedLeg> | null = null

  const finished = (reason: string) => (finishing ??= finish(reason, mediaEndedAt))
  const begin = (at: number) => {
    overSince = now()
    mediaEndedAt = at
  }
  /** Asked again later, the same end is longer ago. */
  const aged = <Told extends object>(end: Told): Told => {
    const silentFor = Math.max(0, Math.round(now() - mediaEndedAt))
    return silentFor > 0 ? { ...end, silentFor } : end
  }
  const closeAll = async (reason: string) => {
    if (overSince === null) begin(now())
    const closed = await finished(reason)
    release()
    return closed
  }
  const close = (reason: string) => (closing ??= closeAll(reason))

  return {
    isOver: () => overSince !== null,
    told: () => told && aged(told),
    async end(event, at = now()) {
      if (overSince === null) {
        begin(at)
        told = event
        tell(aged(event))
      }
      await finished(reasonOf(event))
    },
    close: async (reason) => aged(await close(reason)),
    tick() {
      if (overSince !== null && now() - overSince > lingerMs) void close('nobody closed the leg')
    },
  }
}

/** As the transport is told it, see RtpTransport. */
function reasonOf(event: LegEnd): string {
  switch (event.type) {
    case 'disconnected':
      return event.cause
    case 'dial_failed':
      return event.outcome.status
    case 'transferred':
      return event.type
  }
}
