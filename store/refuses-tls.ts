/**
 * Owns the question whether a server of Postgres speaks TLS at all. The driver (3.4.9) begins TLS whatever it is answered, and the server that speaks none
 * cuts the connection, which looks like one that restarts. https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL
 */
import net from 'node:net'
import type { Sql } from './sql.ts'

const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const refusal = 'N'
const answersWithin = 2_000

/** What the driver resolved of its options. */
type Resolved = {
  readonly ssl: unknown
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path: string | false
}

/** True: TLS is asked for, and the first host that is named has none. Never rejects. */
export function refusesTls(sql: Sql): Promise<boolean> {
  const { ssl, host, port, path } = sql.options as unknown as Resolved
  if (!ssl || ssl === 'prefer' || path) return Promise.resolve(false)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = net.connect({ host: host[0] ?? '', port: port[0] ?? 0 })
  socket.setTimeout(answersWithin, () => socket.destroy())
  socket.once('connect', () => socket.write(sslRequest))
  socket.once('data', (answer) => {
    resolve(answer.toString('latin1') === refusal)
    socket.destroy()
  })
  socket.on('error', () => resolve(false))
  socket.on('close', () => resolve(false))
  return promise
}
