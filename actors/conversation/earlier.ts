/** Owns what a talk takes over from what the same actor had before it: a disclosure, or the talk of an engine that was lost. */
import type { LineFormats } from '../../model/frame.ts'
import type { KeyEvent } from '../../model/leg.ts'
import type { PrivateKeys } from './private-keys.ts'
import type { LeftBehind } from './session-backlog.ts'

/** What the caller said and pressed while nobody listened. */
export type Earlier = {
  readonly keys: PrivateKeys
  /** Pressed or typed before it is taken: its line has a place for it. */
  press(event: KeyEvent): void
  /** Once; nothing more is kept. `results`: of tools, of which nobody has spoken. `nextSeq`: of the first frame that the leg has not had. */
  take(formats: LineFormats): LeftBehind & { readonly nextSeq: number }
}
