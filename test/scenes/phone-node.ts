/** Owns the start and the end of one node of the service in a process of its own (phone-node-process.ts). */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import type { Test } from 'tap'
import type { NodeId } from '../../model/ids.ts'
import type { Sql } from '../../store/sql.ts'
import { inTime } from './in-time.ts'

export type PhoneNode = {
  readonly child: ChildProcess
  readonly url: string
  readonly id: NodeId
  /** With SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
}

const program = path.join(import.meta.dirname, 'phone-node-process.ts')

/** `given`: the folder, the address of NATS, the port for SIP; empty: none. One at a time. */
export async function startPhoneNode(
  t: Pick<Test, 'teardown'>,
  sql: Sql,
  given: readonly [dataDir: string, natsUrl: string, sipPort: string],
): Promise<PhoneNode> {
  const before = await sql<{ id: NodeId }[]>`select id from nodes`
  const child = fork(program, given)
  t.teardown(() => child.kill('SIGKILL'))
  const failed = once(child, 'exit').then(([code]) =>
    Promise.reject(new Error(`a node ended with ${code} at its start`)),
  )
  failed.catch(() => {}) // Later it may end.
  const told = once(child, 'message') as Promise<[{ url: string }]>
  const [{ url }] = await inTime('the start of a node', Promise.race([told, failed]))
  const known = before.map(({ id }) => id)
  const [node] = await sql<{ id: NodeId }[]>`select id from nodes where id <> all(${known}::text[])`
  const kill = async () => {
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  }
  return { child, url, id: node?.id as NodeId, kill }
}
