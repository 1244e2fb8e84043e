/**
 * Owns sending a request within a dialog, in the place of the library's own way: while a request of ours waits for its answer the library
 * gives each UPDATE of that call to the request and not to the dialog, where nobody would answer it.
 */
import type { ResponseIn, SipDialog } from './stack-types.ts'

type Request = { readonly method: string; readonly headers?: Record<string, string>; readonly body?: string }

/** `done` once: with the final answer, or with why there is none. Never throws. */
export function requestWithin(
  dialog: SipDialog,
  { method, headers = {}, body }: Request,
  done: (error: unknown, response?: ResponseIn) => void,
): void {
  const { id: stackDialogId, auth, socket } = dialog
  const options = { method, stackDialogId, headers, _socket: socket, ...(body && { body }), ...(auth && { auth }) }
  try {
    dialog.agent.request(options, (error, sent) => {
      if (error || !sent) return done(error ?? new Error('the request was not sent'))
      sent.on('update', (update, reply) => void dialog.emit('update', update, reply))
      sent.on('response', (response) => {
        if (response.status >= 200) done(null, response)
      })
    })
  } catch (error) {
    done(error)
  }
}
