/** Owns a document that comes as a file: what of the form is the file, and what is said of it. docs/contract/rest.md "Documents". */
import { issuesOf } from '../model/issues.ts'
import { typeOfFile, UploadRequest, type DocumentType } from '../model/document.ts'
import { flawOf } from '../model/json.ts'
import { invalidFields, Problem } from '../model/problem.ts'
import { boundaryOf, readForm, type FormPart } from '../net/http/multipart.ts'

export const maxUploadBytes = 20 * 1024 * 1024
/** Of the form around the file. */
export const maxFormBytes = maxUploadBytes + 256 * 1024

/** Where a body may be longer than elsewhere. */
export const takesFiles = (method: string, path: string): boolean =>
  method === 'POST' && /^\/v1\/accounts\/[^/]+\/documents$/.test(path)

export type Upload = {
  readonly request: UploadRequest
  readonly file: { readonly fileName: string; readonly type: DocumentType; readonly bytes: Uint8Array<ArrayBuffer> }
}

const maxFieldBytes = 64 * 1024
const maxListEntries = 1_000
const lists = new Set(['tagKeys', 'workerIds'])

export const isForm = (contentType: string | undefined): boolean =>
  /^multipart\/form-data\s*(;|$)/i.test(contentType ?? '')

/** Throws Problem. */
export function uploadOf(contentType: string, body: Uint8Array<ArrayBuffer>): Upload {
  const boundary = boundaryOf(contentType)
  const parts = boundary === null ? null : readForm(body, boundary)
  if (parts === null) throw wrong('', 'must be a form of the type multipart/form-data')
  const files = parts.filter(({ name, fileName }) => name === 'file' && fileName !== null)
  const [file] = files
  if (!file || files.length > 1)
    throw wrong('file', files.length > 1 ? 'must be one file' : 'is required: a part with a file name')
  if (file.bytes.length > maxUploadBytes) throw new Problem('PAYLOAD_TOO_LARGE', 'A file may have 20 MiB at most.')
  const request = requestOf(parts.filter((part) => part !== file))
  const fileName = request.fileName ?? plainName(file.fileName ?? '')
  const type = typeOfFile(fileName)
  if (type === null)
    throw wrong(
      request.fileName === undefined ? 'file' : 'fileName',
      'must end with .txt, .md, .mdoc, .html, .docx or .pdf',
    )
  const title = request.title ?? (fileName.replace(/\.[^.]+$/, '') || fileName)
  return { request: { ...request, title }, file: { fileName, type, bytes: file.bytes } }
}

function requestOf(parts: readonly FormPart[]): UploadRequest {
  const given: Record<string, unknown> = {}
  for (const { name, fileName, bytes } of parts) {
    if (fileName !== null) throw wrong(name, 'must not be a file')
    if (bytes.length > maxFieldBytes) throw wrong(name, 'is too long')
    const value = textOf(name, bytes)
    if (lists.has(name)) given[name] = longerList(name, given[name] as string[] | undefined, listOf(value))
    else if (Object.hasOwn(given, name)) throw wrong(name, 'must be there once')
    else given[name] = name === 'isActive' ? booleanOf(value) : value
  }
  const flaw = flawOf(given)
  if (flaw)
    throw new Problem('VALIDATION_FAILED', 'The form cannot be stored.', [
      { path: flaw.path.join('.'), message: flaw.message },
    ])
  const parsed = UploadRequest.safeParse(given)
  if (!parsed.success) throw invalidFields(issuesOf(parsed.error, given))
  return parsed.data
}

/** Any field of a form may be a list of thousands: more than a document can have is refused before it is put together. */
function longerList(name: string, before: readonly string[] = [], more: readonly string[]): string[] {
  if (before.length + more.length > maxListEntries) throw wrong(name, `must have at most ${maxListEntries} entries`)
  return [...before, ...more]
}

/** A list as several fields of one name, or with commas between. */
const listOf = (value: string): string[] =>
  value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')

const booleanOf = (value: string): unknown => (value === 'true' || value === 'false' ? value === 'true' : value)

function textOf(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw wrong(name, 'must be UTF-8')
  }
}

/** Some send the whole way to the file; what could not be a name of ours is left out of it. */
const plainName = (given: string): string =>
  (given.split(/[\\/]/).at(-1) ?? '')
    .replace(/[\p{Cc}]/gu, '')
    .toWellFormed()
    .slice(-200) || 'document'

const wrong = (path: string, message: string): Problem => invalidFields([{ path, message }])
