/**
 * Owns the way out for email: one plain-text message to one address over SMTP, everything bounded, the result a value. One attempt: a
 * message whose answer was lost may have arrived, and sending it twice is worse than a worker that says it failed.
 */
import type { Log } from '../../model/log.ts'

export type EmailMessage = {
  /** An address and nothing else. */
  readonly to: string
  readonly subject: string
  readonly text: string
  /** Ends the sending as timed out. */
  readonly signal?: AbortSignal
}

export type EmailResult =
  { readonly kind: 'sent'; readonly messageId: string } | { readonly kind: 'failed'; readonly timedOut: boolean }

export type Email = {
  /** Takes 10 s at most and never throws. */
  send(message: EmailMessage): Promise<EmailResult>
  /** Ends what is under way as failed. Idempotent. */
  close(): Promise<void>
}

const sendTimeout = 10_000
const connectTimeout = 5_000
const maxConnections = 4
const maxUnderWay = 64
const idleTimeout = 30_000

export type EmailOptions = {
  /** smtp:// (with STARTTLS) or smtps://, with user and password where the server wants them. */
  readonly smtpUrl: string
  readonly from: string
  /** Nothing is sent to a server that has no STARTTLS; somebody between may have taken it out of what it offers. Else it is used where it is. */
  readonly requireTls: boolean
  readonly log: Log
}

/** The package is loaded where email is set up, and then at the start: it is 4 MB. */
async function openTransport({ smtpUrl, requireTls }: EmailOptions) {
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({
    url: smtpUrl,
    pool: true,
    requireTLS: requireTls,
    maxConnections,
    maxRequeues: 0,
    idleTimeout,
    connectionTimeout: connectTimeout,
    greetingTimeout: connectTimeout,
    dnsTimeout: connectTimeout,
    socketTimeout: sendTimeout,
    socketCloseTimeout: 0,
  })
  // What becomes of a message is told to whoever sent it; an idle connection that breaks is of no interest.
  transport.on('error', () => {})
  return transport
}

export function createEmail(options: EmailOptions): Email {
  const { from, log } = options
  const opening = openTransport(options)
  // Who sends something is told.
  opening.catch(() => {})
  const closing = new AbortController()
  let underWay = 0

  async function post({ to, subject, text, signal }: EmailMessage): Promise<EmailResult> {
    const deadline = AbortSignal.timeout(sendTimeout)
    const late = signal ? AbortSignal.any([deadline, signal]) : deadline
    try {
      const transport = await opening
      const { messageId } = await transport.sendMail({
        from,
        to: { name: '', address: to },
        subject,
        text,
        // RFC 3834: no automatic answers to an automatic message.
        headers: { 'Auto-Submitted': 'auto-generated' },
        disableFileAccess: true,
        disableUrlAccess: true,
        signal: AbortSignal.any([late, closing.signal]),
      })
      return { kind: 'sent', messageId }
    } catch (error) {
      const timedOut = late.aborted || codeOf(error) === 'ETIMEDOUT'
      log.warn('an email could not be sent', { code: codeOf(error), timedOut, personal: { error, to } })
      return { kind: 'failed', timedOut }
    }
  }
  return {
    async send(message) {
      if (closing.signal.aborted || underWay >= maxUnderWay || !isAddress(message.to)) {
        log.warn('an email was not tried', { underWay, closed: closing.signal.aborted })
        return { kind: 'failed', timedOut: false }
      }
      underWay += 1
      return post(message).finally(() => (underWay -= 1))
    },
    async close() {
      closing.abort()
      await opening.then(
        (transport) => transport.close({ force: true }),
        () => undefined,
      )
    },
  }
}

/** One mailbox: nothing that could end the address and begin another one, a header or a command. */
const isAddress = (text: string): boolean => /^[^\s<>,;:"()@]{1,64}@[^\s<>,;:"()@]{1,255}$/.test(text)

const codeOf = (error: unknown): string | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
