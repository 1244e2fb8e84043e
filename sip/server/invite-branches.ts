/** Owns the branches of one INVITE that was sent: what has answered it, each a dialog of its own. RFC 3261 §12.1, §13.2.2; RFC 3262 §4. */
import type { App } from './control/app.ts'
import type { Core, Placed } from './core.ts'
import type { Dialog } from './dialog/dialog.ts'
import { tagOf } from './message/address.ts'
import { hasTag } from './message/header-fields.ts'
import type { SipRequest, SipResponse } from './message/message.ts'
import { rackOf, rseqOf } from './message/numbered-fields.ts'

export type InviteBranches = {
  /** The dialog of an answer, made by its first. Null: it has no tag, or there are too many. */
  dialogOf(placed: Placed): Dialog | null
  /** False: a provisional response that must not be told: a repetition, or out of order. */
  isNews(response: SipResponse): boolean
  /** Whose provisional response this PRACK is for. */
  acknowledgedBy(prack: SipRequest): Dialog | null
  /** Those that are not answered are over. */
  forgetEarly(): void
}

const maxBranches = 16

export function createInviteBranches(core: Core, app: App, dialogId: string): InviteBranches {
  const dialogs = new Map<string, Dialog>()
  /** RSeq of the last reliable response of each branch. */
  const numbers = new Map<string, number>()

  return {
    dialogOf(placed) {
      // A peer of RFC 2543 answers without a tag; its 2xx makes a dialog all the same.
      const tag = tagOf(placed.response, 'To') ?? (placed.response.status < 200 ? null : '')
      const known = tag === null ? null : dialogs.get(tag)
      if (tag === null || known || dialogs.size >= maxBranches) return known ?? null
      const dialog = core.placedDialog(app, dialogId, placed)
      dialogs.set(tag, dialog)
      if (dialogs.size === 1) core.dialogs.name(dialog)
      return dialog
    },

    isNews(response) {
      if (!hasTag(response, 'Require', '100rel')) return true
      const tag = tagOf(response, 'To')
      const number = rseqOf(response)
      if (tag === null || number === null) return false
      const last = numbers.get(tag)
      if (last !== undefined ? number !== last + 1 : numbers.size >= maxBranches) return false
      numbers.set(tag, number)
      return true
    },

    acknowledgedBy(prack) {
      const number = rackOf(prack)?.rseq
      for (const [tag, last] of numbers) if (last === number) return dialogs.get(tag) ?? null
      return null
    },

    forgetEarly() {
      for (const dialog of dialogs.values()) if (dialog.cell.phase === 'early') dialog.forget()
    },
  }
}
