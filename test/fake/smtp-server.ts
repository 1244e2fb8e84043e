/** Owns a mail server for tests: a real one on loopback whose answers are chosen and whose messages are kept. */
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

export type ReceivedEmail = { readonly from: string; readonly to: readonly string[]; readonly raw: string }

export type FakeSmtpServer = {
  /** With user and password, as a deployment names its server. */
  readonly url: string
  readonly received: readonly ReceivedEmail[]
  /** How it answers to messages from here on. `hang` never answers. */
  behave(how: 'accept' | 'refuse' | 'hang'): void
  /** Resolves when a message has come that is not answered. */
  hanging(): Promise<void>
}

export async function openFakeSmtpServer(t: {
  teardown(close: () => Promise<void>): unknown
}): Promise<FakeSmtpServer> {
  const received: ReceivedEmail[] = []
  let how: 'accept' | 'refuse' | 'hang' = 'accept'
  const { promise: hanging, resolve: hangs } = Promise.withResolvers<void>()
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    closeTimeout: 0,
    onAuth: ({ username, password }, _session, done) =>
      username === 'parley' && password === 'p@ss' ? done(null, { user: username }) : done(new Error('wrong password')),
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        if (how === 'hang') return hangs()
        if (how === 'refuse') return done(new Error('mailbox full'))
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? '' : mailFrom.address
        received.push({ from, to: rcptTo.map(({ address }) => address), raw: Buffer.concat(chunks).toString('utf8') })
        done()
      })
    },
  })
  // A client that goes away in the middle is what some tests are about.
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => server.close(resolve)))
  return {
    url: `smtp://parley:p%40ss@127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    received,
    behave: (wanted) => (how = wanted),
    hanging: () => hanging,
  }
}
