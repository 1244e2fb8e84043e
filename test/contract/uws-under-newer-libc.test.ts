/**
 * The listener's rules and the MCP peers over uWebSockets.js on a machine whose C library is too old for it: the same files, run through the loader
 * that .ci/newer-libc.sh unpacks.
 */
import path from 'node:path'
import { test } from 'tap'
import { needsTool } from '../peers/tools.ts'

const root = path.resolve(import.meta.dirname, '../..')
const folder = path.join(root, '.data/newer-libc')
const loaders = ['ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'].map((name) => path.join(folder, name))

const loadsByItself = (): Promise<boolean> => import('uWebSockets.js').then(Boolean, () => false)

/** Each takes LISTENER_DRIVER. */
const files = [
  'contract/listener.test.ts',
  'contract/listener-flood.test.ts',
  'flows/mcp-clients.test.ts',
  'mcp/conformance-authorization.test.ts',
  'mcp/conformance.test.ts',
  'mcp/oauth/code-flow.test.ts',
  'mcp/streams.test.ts',
]

test('the listener keeps its rules over uWebSockets.js', async (t) => {
  if (await loadsByItself())
    return void t.pass('uws', { skip: 'loads here by itself, so those files prove it themselves' })
  const loader = needsTool(t, 'a newer C library, unpacked by .ci/newer-libc.sh', loaders)
  if (!loader) return
  const env = { ...process.env, LISTENER_DRIVER: 'uws' }
  for (const name of files) {
    const command = ['--library-path', path.join(folder, 'lib'), process.execPath, path.join(root, 'test', name)]
    await t.spawn(loader, command, { cwd: root, env, timeout: 240_000 }, `${name} under the newer C library`)
  }
})
