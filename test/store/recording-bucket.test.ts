/**
 * The storage of recordings on the wire: what is asked of a server that speaks S3, judged by s3rver and by a second signer, and what is believed of its
 * answers. What becomes of recordings meanwhile: test/actors/recording-keeping.test.ts.
 */
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { inspect } from 'node:util'
import { test, type Test } from 'tap'
import { BucketFailure, createRecordingBucket, type BucketSettings } from '../../store/recording-bucket.ts'
import { openMoodyStorage, openS3rver, type Manner } from '../fake/s3-storage.ts'
import { flawOfSignature } from '../fake/signature-v4.ts'
import { createFolder } from '../scenes/folder.ts'

const key = '01980a5e/01980a5f.wav'
const never = new AbortController().signal
const bytes = randomBytes(300_000)

async function openBucket(t: Test, settings: BucketSettings, timeout?: number) {
  const bucket = createRecordingBucket(settings, timeout)
  t.teardown(() => bucket.close())
  const file = path.join(await createFolder(t), 'sound.wav')
  await writeFile(file, bytes)
  const read = async (from = 0, to = bytes.length - 1) => {
    const reader = await bucket.read(key)
    return reader && Buffer.from(await new Response(reader.stream(from, to)).arrayBuffer())
  }
  return { bucket, read, put: () => bucket.put(key, file, 'audio/wav', never) }
}

test('the second signer agrees with the example of the specification, and with no other', (t) => {
  const secretAccessKey = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
  const headers = {
    host: 'examplebucket.s3.amazonaws.com',
    range: 'bytes=0-9',
    'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'x-amz-date': '20130524T000000Z',
    authorization:
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  }
  const given = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey, region: 'us-east-1' }
  const then = Date.UTC(2013, 4, 24)
  const flaw = (over: object, target = '/test.txt', now = then) =>
    flawOfSignature({ method: 'GET', target, headers: { ...headers, ...over } }, given, now)
  t.equal(flaw({}), null)
  t.match(flaw({}, '/other.txt'), /another one/)
  t.match(flaw({ range: 'bytes=0-8' }), /another one/)
  t.match(flaw({ 'x-amz-acl': 'public-read' }), /not signed/)
  t.match(flaw({}, '/test.txt', then + 3_600_000), /not now/)
  t.end()
})

test('s3rver takes, shows, sends and removes a recording, and the second signer finds no flaw in any request', async (t) => {
  const { settings, asked } = await openS3rver(t)
  const { bucket, put, read } = await openBucket(t, settings)
  t.equal(await read(), null, 'nothing is there yet')
  await put()
  t.ok(bytes.equals((await read())!), 'byte for byte')
  for (const [from, to] of [
    [0, 0],
    [100, 199],
    [65_530, 131_080],
    [299_999, 299_999],
  ] as const)
    t.ok(bytes.subarray(from, to + 1).equals((await read(from, to))!), `${from} to ${to}`)
  await bucket.remove(key)
  t.equal(await read(), null)
  await bucket.remove(key)
  t.same(
    asked.filter(({ flaw }) => flaw !== null),
    [],
  )
  t.ok(
    asked.every(({ path }) => path.startsWith('/recordings/calls/01980a5e/')),
    'path-style, in the folder of the bucket',
  )
  t.same([...new Set(asked.map(({ method }) => method))].toSorted(), ['DELETE', 'GET', 'HEAD', 'PUT'])
})

test('what is there already is not sent again', async (t) => {
  const { settings, asked } = await openMoodyStorage(t)
  const { put } = await openBucket(t, settings)
  await put()
  await put()
  t.equal(asked.filter(({ method }) => method === 'PUT').length, 1)
})

test('a wrong key is told as the storage tells it, and the secret is not told', async (t) => {
  const { settings } = await openMoodyStorage(t)
  const { put } = await openBucket(t, { ...settings, secretAccessKey: 'wrong-and-secret' })
  await t.rejects(put(), { name: 'BucketFailure', message: /403/ })
  const told = await put().catch((error: unknown) => error)
  t.notMatch(inspect(told), /wrong-and-secret/)
})

const troubles: Readonly<Record<Exclude<Manner, 'good' | 'cuts'>, RegExp>> = {
  away: /^HEAD: /,
  full: /507 InsufficientStorage/,
  busy: /503/,
  refusing: /403/,
  hangs: /TIMEOUT/,
  truncates: /150000 bytes of 300000/,
  garbles: /other bytes/,
}

for (const [manner, told] of Object.entries(troubles))
  test(`a storage that is ${manner} has not taken the recording, says why, and takes it when it is good again`, async (t) => {
    const storage = await openMoodyStorage(t)
    const { put, read } = await openBucket(t, storage.settings, 300)
    storage.manner = manner as Manner
    await t.rejects(put(), { name: 'BucketFailure', message: told })
    storage.manner = 'good'
    await put()
    t.ok(bytes.equals((await read())!))
  })

test('a download that the storage cuts is an error and no shorter recording', async (t) => {
  const storage = await openMoodyStorage(t)
  const { put, read } = await openBucket(t, storage.settings)
  await put()
  storage.manner = 'cuts'
  await t.rejects(read())
})

test('a storage that is away is not one without the recording', async (t) => {
  const storage = await openMoodyStorage(t)
  const { bucket, put } = await openBucket(t, storage.settings)
  await put()
  for (const manner of ['away', 'busy', 'refusing'] as const) {
    storage.manner = manner
    await t.rejects(bucket.read(key), BucketFailure, manner)
  }
})
