/** Owns a real nats-server on a loopback port, for tests: started by the test, ended by its teardown. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { until } from '../scenes/in-time.ts'

export const natsServerPaths = ['/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server']

export type NatsServer = {
  readonly url: string
  readonly port: number
  /** It keeps its connections and says nothing, when it resolves. */
  freeze(): Promise<void>
  thaw(): void
  /** Idempotent; the program has ended when it resolves. */
  close(): Promise<void>
}

/** Port -1 takes a free one. Throws with the server's own words when it does not come up. */
export async function startNatsServer(
  program: string,
  port = -1,
  options: readonly string[] = [],
): Promise<NatsServer> {
  const child = spawn(program, ['-a', '127.0.0.1', '-p', String(port), ...options], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = once(child, 'exit')
  const lines: string[] = []
  let bound = 0
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line)
    bound ||= Number(/Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? 0)
    if (line.endsWith('Server is ready')) break
  }
  if (bound === 0) throw new Error(`nats-server did not come up: ${lines.join('\n')}`)
  child.stderr.resume()
  async function close(): Promise<void> {
    child.kill('SIGKILL')
    await ended
  }
  return {
    url: `nats://127.0.0.1:${bound}`,
    port: bound,
    async freeze() {
      child.kill('SIGSTOP')
      await until(async () => /^\d+ \(.*\) T /.test(await readFile(`/proc/${child.pid}/stat`, 'utf8')))
    },
    thaw: () => void child.kill('SIGCONT'),
    close,
  }
}
