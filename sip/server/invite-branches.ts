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
  /** False: a provisional response of this dialog that must not be told: a repetition, or out of order. */
  isNews(dialog: Dialog | null, response: SipResponse): boolean
  /** Whose provisional response this PRACK is for. */
  acknowledgedBy(prack: SipRequest): Dialog | null
  /** Those that are not answered are over. */
  forgetEarly(): void
}

const maxBranches = 16

export function createInviteBranches(core: Core, app: App, dialogId: string): InviteBranches {
  const dialogs = new Map<string, Dialog>()

  return {
    dialogOf(placed) {
      const isFinal = placed.response.status >= 200
      // A peer of RFC 2543 answers without a tag; its 2xx makes a dialog all the same.
      const tag = tagOf(placed.response, 'To') ?? (isFinal ? '' : null)
      const known = tag === null ? undefined : dialogs.get(tag)
      // A 2xx needs its ACK and a BYE, also when the app does not wait for it any more.
      if (known && !(isFinal && known.isForgotten())) return known
      if (tag === null || (!known && dialogs.size >= maxBranches)) return null
      const dialog = core.placedDialog(app, dialogId, placed)
      dialogs.set(tag, dialog)
      if (dialogs.size === 1) core.dialogs.name(dialog)
      return dialog
    },

    isNews(dialog, response) {
      if (!hasTag(response, 'Require', '100rel')) return true
      const rseq = rseqOf(response)
      return dialog !== null && rseq !== null && dialog.heardReliably(rseq)
    },

    acknowledgedBy(prack) {
      const rseq = rackOf(prack)?.rseq
      for (const dialog of dialogs.values()) if (dialog.remoteRSeq() === rseq) return dialog
      return null
    },

    forgetEarly() {
      for (const dialog of dialogs.values()) if (dialog.isEarly()) dialog.forget()
    },
  }
}
