/**
 * Owns the console's files: the modules of console/ and of the packages they import, from memory, compressed once. Their addresses change with
 * their bytes, so that a browser keeps what it has until there is something else. docs/console.md "How it is served".
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { createReadyResponse } from '../../net/http/ready-response.ts'

type Bytes = Uint8Array<ArrayBuffer>
type Encoding = 'br' | 'gzip' | 'identity'
type ConsoleFile = { readonly bytes: Bytes; readonly type: string; readonly encoded: Map<Encoding, Bytes> }

/** The browser SDK stands among the modules of the console: a worker is called from its page. Colours are those of all pages. */
const folders = ['../../console/', '../../look/', '../../sdk/'].map((folder) => new URL(folder, import.meta.url))
const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
}

/** What modules import by name, and the file that is served for it. */
const packages = {
  preact: { file: 'preact.js', url: () => new URL('preact.mjs', import.meta.resolve('preact')) },
  'preact/hooks': { file: 'preact-hooks.js', url: () => new URL('hooks.mjs', import.meta.resolve('preact/hooks')) },
  uplot: { file: 'uplot.js', url: () => new URL('uPlot.esm.js', import.meta.resolve('uplot')) },
} as const

/** Its name as a package, and its first module. */
const sdk = ['parley-client', 'parley-client.js'] as const

export type ConsoleFiles = {
  /** Where the files are. */
  readonly root: string
  /** Import map, as it stands in the page. */
  readonly importMap: string
  /** What the page needs at once. */
  readonly first: readonly string[]
  /** Null: there is no such file, or not any more. */
  answer(path: string, request: Request): Response | null
}

/** Reads the files once. */
export function readConsoleFiles(): ConsoleFiles {
  const files = new Map<string, ConsoleFile>()
  for (const folder of folders)
    for (const name of readdirSync(folder).toSorted()) {
      const type = types[name.split('.').at(-1) ?? '']
      if (type !== undefined) files.set(name, fileOf(readFileSync(new URL(name, folder)), type))
    }
  for (const { file, url } of Object.values(packages))
    files.set(file, fileOf(withoutMap(readFileSync(url())), types['js'] ?? ''))
  const root = `/console/assets/${versionOf(files)}/`
  const named = [...Object.entries(packages).map(([name, { file }]) => [name, file] as const), sdk]
  const imports = Object.fromEntries(named.map(([name, file]) => [name, root + file]))
  return {
    root,
    importMap: JSON.stringify({ imports }),
    first: firstOf(files),
    answer(path, request) {
      const file = path.startsWith(root) ? files.get(path.slice(root.length)) : undefined
      return file ? answerWith(file, request) : null
    },
  }
}

const fileOf = (bytes: Uint8Array, type: string): ConsoleFile => ({
  bytes: new Uint8Array(bytes),
  type,
  encoded: new Map(),
})

/** Nobody serves the map. */
const withoutMap = (bytes: Buffer): Buffer =>
  Buffer.from(bytes.toString('utf8').replace(/\n\/\/# sourceMappingURL=\S+\s*$/, '\n'))

function versionOf(files: ReadonlyMap<string, ConsoleFile>): string {
  const sum = createHash('sha256')
  for (const [name, { bytes }] of files) sum.update(`${name} ${bytes.length}\n`).update(bytes)
  return sum.digest('base64url').slice(0, 16)
}

/** What the first module imports, and what that imports: told at once, they are fetched at once. */
function firstOf(files: ReadonlyMap<string, ConsoleFile>): string[] {
  const found = new Set<string>()
  const visit = (name: string): void => {
    const file = files.get(name)
    if (!file || found.has(name)) return
    found.add(name)
    const text = new TextDecoder().decode(file.bytes)
    for (const [, wanted = ''] of text.matchAll(/^(?:import|\} from) [^'\n]*?'([^']+)'/gm)) {
      const known = Object.hasOwn(packages, wanted)
        ? packages[wanted as keyof typeof packages].file
        : wanted.replace('./', '')
      visit(known)
    }
  }
  visit('main.js')
  return [...found].filter((name) => name !== 'main.js')
}

function answerWith(file: ConsoleFile, request: Request): Response {
  const encoding = encodingFor(request.headers.get('accept-encoding') ?? '')
  const body = file.encoded.get(encoding) ?? encoded(file.bytes, encoding)
  file.encoded.set(encoding, body)
  return createReadyResponse(body, 200, {
    'content-type': file.type,
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'accept-encoding',
    ...(encoding !== 'identity' && { 'content-encoding': encoding }),
  })
}

const encodingFor = (accepted: string): Encoding => {
  const names = accepted.split(',').map((one) => one.trim().split(';')[0])
  if (names.includes('br')) return 'br'
  return names.includes('gzip') ? 'gzip' : 'identity'
}

/** Each file once, so that a millisecond of it is nothing. */
function encoded(bytes: Bytes, encoding: Encoding): Bytes {
  if (encoding === 'identity') return bytes
  if (encoding === 'gzip') return new Uint8Array(gzipSync(bytes))
  return new Uint8Array(brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }))
}
