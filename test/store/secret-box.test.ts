/** Secrets at rest, and the key behind them. */
import { createCipheriv, createSecretKey, randomBytes, type KeyObject } from 'node:crypto'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import t from 'tap'
import { createSecretBox, loadAppKey, loadAppKeys, secretPlace, subkey } from '../../store/secret-box.ts'

const folder = await mkdtemp(path.join(tmpdir(), 'parley-key-'))
t.teardown(() => rm(folder, { recursive: true }))
const appSecret = 'correct horse battery staple, and then some'
const key = await loadAppKey({ appSecret, dataDir: folder })

await t.test('a secret opens as it was sealed, and reads like nothing', async (t) => {
  const box = createSecretBox(key)
  for (const text of ['', 'whsec_abc', 'ümläut 🎧', 'x'.repeat(100_000)]) {
    const sealed = box.seal(text, 'here')
    t.equal(box.open(sealed, 'here'), text)
    t.match(sealed, /^v2\.[\w-]{8}\.[A-Za-z0-9_-]+$/)
  }
  t.not(box.seal('same', 'here'), box.seal('same', 'here'))
})

await t.test('a secret does not open when any byte of it was altered, or it was cut', async (t) => {
  const box = createSecretBox(key)
  const { currentPrefix: prefix } = box
  const bytes = Buffer.from(box.seal('whsec_abc', 'here').slice(prefix.length), 'base64url')
  for (let index = 0; index < bytes.length; index++) {
    const altered = Buffer.from(bytes)
    altered[index] = (altered[index] ?? 0) ^ (1 << (index % 8))
    t.throws(() => box.open(prefix + altered.toString('base64url'), 'here'), /does not open/)
    t.throws(() => box.open(prefix + bytes.subarray(0, index).toString('base64url'), 'here'))
  }
  t.throws(() => box.open(`v3.${bytes.toString('base64url')}`, 'here'), /no sealed secret/)
  t.throws(() => box.open('', 'here'), /no sealed secret/)
})

await t.test('a secret opens with its own key only, and a key of another purpose is another key', async (t) => {
  const secrets = subkey(key, 'secrets')
  const urls = subkey(key, 'recording-urls')
  const sealed = createSecretBox(secrets).seal('text', 'here')
  t.throws(() => createSecretBox(urls).open(sealed, 'here'), /another key/)
  t.throws(() => createSecretBox(key).open(sealed, 'here'), /another key/)
  t.throws(() => createSecretBox(createSecretKey(randomBytes(32))).open(sealed, 'here'), /another key/)
  t.ok(subkey(key, 'secrets').equals(secrets))
  t.equal(createSecretBox(subkey(key, 'secrets')).open(sealed, 'here'), 'text')
})

/** As versions of before sealed: without a place, and without saying by which key. */
function sealedBefore(by: KeyObject, text: string): string {
  const nonce = randomBytes(12)
  const encrypting = createCipheriv('aes-256-gcm', by, nonce)
  const parts = [nonce, encrypting.update(text, 'utf8'), encrypting.final(), encrypting.getAuthTag()]
  return `v1.${Buffer.concat(parts).toString('base64url')}`
}

await t.test('a secret opens in its own place only', async (t) => {
  const box = createSecretBox(key)
  const own = secretPlace('trunks.password', 'account', 'trunk')
  const sealed = box.seal('text', own)
  t.equal(box.open(sealed, own), 'text')
  for (const other of [
    secretPlace('trunks.password', 'account', 'other'),
    secretPlace('trunks.password', 'other', 'trunk'),
    secretPlace('trunks.tls_key', 'account', 'trunk'),
    '',
  ])
    t.throws(() => box.open(sealed, other), /another place/, other)
})

await t.test('a box seals with its first key and opens with all of them, what was sealed before too', async (t) => {
  const [old, fresh] = [createSecretKey(randomBytes(32)), createSecretKey(randomBytes(32))]
  const [before, rotated, without] = [createSecretBox(old), createSecretBox(fresh, [key, old]), createSecretBox(fresh)]
  const sealed = before.seal('text', 'here')
  t.equal(rotated.open(sealed, 'here'), 'text')
  t.throws(() => without.open(sealed, 'here'), /another key/)
  t.notOk(sealed.startsWith(rotated.currentPrefix))
  const again = rotated.seal('text', 'here')
  t.ok(again.startsWith(without.currentPrefix))
  t.equal(without.open(again, 'here'), 'text')
  t.throws(() => before.open(again, 'here'), /another key/)
  t.equal(rotated.open(sealedBefore(old, 'from before'), 'here'), 'from before')
  t.equal(rotated.open(sealedBefore(fresh, 'from before'), 'here'), 'from before')
  t.throws(() => without.open(sealedBefore(old, 'from before'), 'here'), /does not open/)
})

await t.test(
  'APP_SECRET takes the new one and the old ones, and the key made before there was one is an old one',
  async (t) => {
    const [old, fresh] = ['an old secret that is long enough for this', 'a fresh secret that is long enough as well']
    const [newest, former, whole] = await loadAppKeys({ appSecret: `${fresh}, ${old}`, dataDir: folder })
    t.ok(newest.equals(await loadAppKey({ appSecret: fresh, dataDir: folder })))
    t.ok(former?.equals(await loadAppKey({ appSecret: old, dataDir: folder })))
    t.ok(whole, 'a secret of before may have had a comma')
    t.equal((await loadAppKeys({ appSecret: `${fresh}, yes`, dataDir: folder })).length, 1, 'too short to be two')
    const dataDir = path.join(folder, 'moved')
    const made = await loadAppKey({ appSecret: null, dataDir })
    const moved = await loadAppKeys({ appSecret, dataDir })
    t.ok(moved[0].equals(key))
    t.ok(moved[1]?.equals(made))
    await rm(dataDir, { recursive: true })
  },
)

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
