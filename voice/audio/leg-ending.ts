/**
 * Owns how a leg ends: once, told once. When the media is gone the leg stays for a while, so that its actor can still close it and learn
 * what was recorded; when nobody does, it goes by itself.
 */
import type { LegEvent } from '../../model/leg.ts'

type Cause = Extract<LegEvent, { readonly type: 'disconnected' }>['cause']

export type LegEndingDeps = {
  readonly now: () => number
  readonly tell: (event: LegEvent) => void
  /** Closes the media; resolves with the recorded milliseconds and never rejects. */
  readonly finish: () => Promise<number | null>
  /** Lets go of what is left. */
  readonly release: () => void
}

export type LegEnding = {
  readonly isOver: () => boolean
  /** The media is gone: tells so, resolves when it is closed. */
  readonly end: (cause: Cause, details: string) => Promise<void>
  /** Tells nothing: it was asked for. Resolves with the recorded milliseconds. */
  readonly close: () => Promise<number | null>
  readonly tick: () => void
}

const lingerMs = 30_000

export function createLegEnding({ now, tell, finish, release }: LegEndingDeps): LegEnding {
  let overSince: number | null = null
  let finishing: Promise<number | null> | null = null
  let closing: Promise<number | null> | null = null

  const finished = () => (finishing ??= finish())
  const closeAll = async () => {
    overSince ??= now()
    const recordedMs = await finished()
    release()
    return recordedMs
  }
  const close = () => (closing ??= closeAll())

  return {
    isOver: () => overSince !== null,
    async end(cause, details) {
      if (overSince === null) {
        overSince = now()
        tell({ type: 'disconnected', cause, details })
      }
      await finished()
    },
    close,
    tick() {
      if (overSince !== null && now() - overSince > lingerMs) void close()
    },
  }
}
