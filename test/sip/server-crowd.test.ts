/** The embedded SIP server under a crowd of calls from sipp, with unmodified drachtio-srf as its app: 200 a second over UDP, and over TCP. */
import { test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { createSipServer } from '../../sip/server/sip-server.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openSipApp, type Loose } from '../fake/sip-app.ts'
import { sdp } from '../fake/sip-wire.ts'
import { startSipp, withoutSipp } from '../peers/sipp.ts'

const calls = 600
const rate = 200
const address = '127.0.0.1'

for (const transport of ['udp', 'tcp'] as const)
  test(
    `${calls} calls at ${rate} a second over ${transport} are set up and hung up, and nothing is left of them`,
    { skip: withoutSipp(), timeout: 100_000 },
    async (t) => {
      const log = createQuietLog()
      const listen = [{ protocol: transport, address, port: 0 }]
      const server = await createSipServer({ listen, clock: systemClock, log })
      const app = await openSipApp(server.control, [])
      let ended = 0
      const { promise: allEnded, resolve } = Promise.withResolvers<void>()
      app.srf.invite((req: Loose, res: Loose) => {
        app.srf
          .createUAS(req, res, { localSdp: sdp(50_000) })
          .then((dialog: Loose) => dialog.on('destroy', () => ++ended === calls && resolve()))
          .catch(t.threw)
      })
      // The route is asked for by the first request of the library after it.
      await new Promise((done) => setImmediate(done))
      const to = server.listening[0]?.local.port ?? 0
      const sipp = await startSipp(t, 'caller-hangs-up', { to, transport, calls, rate, number: '+1', quiet: true })
      await sipp.done
      await allEnded
      t.equal(ended, calls)
      t.equal(server.sizes().dialogs, 0)
      await app.close()
      await server.close()
      t.same(
        log.lines.filter(({ level }) => level === 'error'),
        [],
      )
    },
  )
