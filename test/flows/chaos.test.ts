/**
 * The short chaos run of CI: two processes of the service with database and bus, calls by browser and telephone in both directions, and faults that
 * every call must outlive. Which faults the whole of `npm run chaos` finds wanting, docs/operations.md tells.
 */
import { execFile } from 'node:child_process'
import { readdir, readlink } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { createFolder } from '../scenes/folder.ts'
import { natsServerPaths } from '../peers/nats-server.ts'
import { needsTool } from '../peers/tools.ts'

const program = path.join(import.meta.dirname, '../../tools/chaos/chaos.ts')
const run = promisify(execFile)

test(
  'while NATS is killed and while packets come late, every call comes to its end, and nothing of it is lost or done twice',
  { timeout: 200_000 },
  async (t) => {
    if (!needsTool(t, 'nats-server', natsServerPaths)) return
    const folder = await createFolder(t)
    // How long callers wait is told by a machine that has time: here only whether they are heard at all.
    const words = '--whole 2 --faults nats-kill,net-delay --calls 3 --turns 2 --slack 8000 --folder'.split(' ')
    const { code, stdout } = await run(process.execPath, [program, ...words, folder]).then(
      ({ stdout: told }) => ({ code: 0, stdout: told }),
      (error: { code: number; stdout: string; stderr: string }) => ({
        code: error.code,
        stdout: error.stdout + error.stderr,
      }),
    )
    t.equal(code, 0, stdout)
    for (const fault of ['none', 'nats-kill', 'net-delay'])
      t.match(stdout, new RegExp(`\\| ${fault} +\\|.*\\| +3/3 \\|`))
    t.same(await processesIn(folder), [], 'no process is left over')
  },
)

/** Those of the cluster work in folders of their own. */
async function processesIn(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '')
      return cwd.startsWith(folder) ? [pid] : []
    }),
  )
  return found.flat()
}
