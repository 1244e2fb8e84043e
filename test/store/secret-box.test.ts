/** Secrets at rest, and the key behind them. */
import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import t from 'tap'
import { createSecretBox, loadAppKey, subkey } from '../../store/secret-box.ts'

const folder = await mkdtemp(path.join(tmpdir(), 'parley-key-'))
t.teardown(() => rm(folder, { recursive: true }))
const appSecret = 'correct horse battery staple, and then some'
const key = await loadAppKey({ appSecret, dataDir: folder })

await t.test('a secret opens as it was sealed, and reads like nothing', async (t) => {
  const box = createSecretBox(key)
  for (const text of ['', 'whsec_abc', 'ümläut 🎧', 'x'.repeat(100_000)]) {
    const sealed = box.seal(text)
    t.equal(box.open(sealed), text)
    t.match(sealed, /^v1\.[A-Za-z0-9_-]+$/)
  }
  t.not(box.seal('same'), box.seal('same'))
})

await t.test('a secret does not open when any byte of it was altered, or it was cut', async (t) => {
  const box = createSecretBox(key)
  const bytes = Buffer.from(box.seal('whsec_abc').slice(3), 'base64url')
  for (let index = 0; index < bytes.length; index++) {
    const altered = Buffer.from(bytes)
    altered[index] = (altered[index] ?? 0) ^ (1 << (index % 8))
    t.throws(() => box.open(`v1.${altered.toString('base64url')}`), /does not open/)
    t.throws(() => box.open(`v1.${bytes.subarray(0, index).toString('base64url')}`))
  }
  t.throws(() => box.open(`v2.${bytes.toString('base64url')}`), /no sealed secret/)
  t.throws(() => box.open(''), /no sealed secret/)
})

await t.test('a secret opens with its own key only, and a key of another purpose is another key', async (t) => {
  const secrets = subkey(key, 'secrets')
  const urls = subkey(key, 'recording-urls')
  const sealed = createSecretBox(secrets).seal('text')
  t.throws(() => createSecretBox(urls).open(sealed), /another key/)
  t.throws(() => createSecretBox(key).open(sealed), /another key/)
  t.throws(() => createSecretBox(createSecretKey(randomBytes(32))).open(sealed), /another key/)
  t.ok(subkey(key, 'secrets').equals(secrets))
  t.equal(createSecretBox(subkey(key, 'secrets')).open(sealed), 'text')
})

await t.test('APP_SECRET gives the key, the same everywhere, and a short one is refused', async (t) => {
  t.ok(key.equals(await loadAppKey({ appSecret, dataDir: '/nowhere' })))
  t.notOk(key.equals(await loadAppKey({ appSecret: `${appSecret}!`, dataDir: '/nowhere' })))
  await t.rejects(loadAppKey({ appSecret: 'x'.repeat(31), dataDir: '/nowhere' }), /at least 32/)
  t.strictSame(await readdir(folder), [], 'no file is made when there is an APP_SECRET')
})

await t.test('without APP_SECRET a key is made once, for this user only, and everybody gets the same', async (t) => {
  const dataDir = path.join(folder, 'new')
  const [first, ...others] = await Promise.all(
    Array.from({ length: 20 }, () => loadAppKey({ appSecret: null, dataDir })),
  )
  const again = await loadAppKey({ appSecret: null, dataDir })
  for (const other of [...others, again]) t.ok(first?.equals(other))
  t.strictSame(await readdir(dataDir), ['app.key'])
  t.equal((await stat(path.join(dataDir, 'app.key'))).mode & 0o777, 0o600)
  const elsewhere = await loadAppKey({ appSecret: null, dataDir: path.join(folder, 'other') })
  t.notOk(first?.equals(elsewhere))
})

await t.test('a damaged key file is an error and never replaced', async (t) => {
  const dataDir = path.join(folder, 'new')
  await writeFile(path.join(dataDir, 'app.key'), 'half a key')
  await t.rejects(loadAppKey({ appSecret: null, dataDir }), /holds no key/)
})
