/** Owns what a conversation is made of once its leg has started. */
import type { Subscription } from '../../model/bus.ts'
import type { Turn } from '../../model/call.ts'
import type { LineFormats } from '../../model/frame.ts'
import type { KeyEvent, SettledLine } from '../../model/leg.ts'
import type { ToolResult } from '../../model/tool.ts'
import type { Earlier } from './earlier.ts'
import type { SessionKeeper } from './session-keeper.ts'
import type { TurnLog } from './turn-log.ts'
import type { TurnTiming } from './turn-timing.ts'
import type { UnbrokenLine } from './unbroken-line.ts'

/** What there is once the leg has said in which formats it speaks. */
export type Talking = {
  readonly session: SessionKeeper
  readonly turnLog: TurnLog
  readonly timing: TurnTiming
  readonly hearing: Subscription
  readonly line: Pick<UnbrokenLine, 'press'>
  settles(turn: Turn): SettledLine | null
  written(settled: SettledLine): void
  /** Before the session is open. */
  hearEarlier(frames: readonly Uint8Array[]): void
  played(lastPlayedSeq: number): void
  fallSilent(): Promise<void>
  leave(): KeyEvent[]
  /** The leg is another one: of what it has kept nothing is settled. */
  restart(): void
  /** What the former leg has not played is heard by nobody any more. */
  breakOff(): Promise<void>
  readonly formats: LineFormats
  isQuiet(): boolean
  toolResult(id: string, name: string, result: ToolResult): void
  leaveMessage(): Promise<void>
  handOver: Earlier['take']
}
