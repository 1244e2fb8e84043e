/** Owns documents as answers show them and as they are sent. docs/contract/rest.md "Documents". */
import { z } from 'zod'
import { toIso } from './clock.ts'
import type { AccountId, DocumentId, WorkerId } from './ids.ts'
import { FilterText, PartPaging } from './paging.ts'
import { ScriptError } from './script-check.ts'

export const DocumentStatus = z.enum(['queued', 'completed', 'failed'])
export type DocumentStatus = z.infer<typeof DocumentStatus>

/** Those that somebody writes, and those that are made from a file. docs/contract/rest.md "Documents". */
export const WrittenType = z.enum(['txt', 'mdoc'])
export type WrittenType = z.infer<typeof WrittenType>
export type DocumentType = WrittenType | 'html' | 'docx' | 'pdf'

/** Why a document is `failed`; what is wrong with the file, or what was not to be had. */
export type DocumentFailure =
  | 'empty'
  | 'no_text'
  | 'unreadable'
  | 'encrypted'
  | 'wrong_type'
  | 'not_allowed'
  | 'too_long'
  | 'too_complex'
  | 'embeddings_unavailable'
  | 'gave_up'

/** A document with one of these is a call script, and nothing to look things up in. */
export const scriptTags: readonly string[] = ['inbound_call_script', 'outbound_call_script']

const typesByEnding: Readonly<Record<string, DocumentType>> = {
  txt: 'txt',
  text: 'txt',
  md: 'mdoc',
  mdoc: 'mdoc',
  markdown: 'mdoc',
  html: 'html',
  htm: 'html',
  docx: 'docx',
  pdf: 'pdf',
}

/** As the name of a file says; null for what cannot be read. */
export function typeOfFile(fileName: string): DocumentType | null {
  const ending = /\.([^.]+)$/.exec(fileName)?.[1]?.toLowerCase() ?? ''
  return Object.hasOwn(typesByEnding, ending) ? (typesByEnding[ending] ?? null) : null
}

const TagKey = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,63}$/, 'must be lower-case letters, digits and _, starting with a letter')

const fields = {
  title: z.string().min(1).max(300),
  /** How scripts are named when a call pins them; made from the title when absent. */
  fileName: z
    .string()
    .regex(/^[^/\\\r\n\t]{1,200}$/, 'must be a file name without a folder')
    .optional(),
  text: z.string().max(500_000),
  isActive: z.boolean().optional(),
  /** Replaces the whole set. */
  tagKeys: z.array(TagKey).max(50).optional(),
  /** Replaces the whole list. */
  workerIds: z.array(z.string()).max(1000).optional(),
}

export const DocumentRequest = z.strictObject({ ...fields, type: WrittenType.optional() })
export type DocumentRequest = z.infer<typeof DocumentRequest>
/** What is not named stays. */
export const DocumentChange = z.strictObject(fields).partial()
export type DocumentChange = z.infer<typeof DocumentChange>

const { text: _text, ...settings } = fields
/** What comes beside a file. */
export const UploadRequest = z.strictObject(settings).partial({ title: true })
export type UploadRequest = z.infer<typeof UploadRequest>

export const DocumentQuery = z
  .object({ workerId: FilterText.optional(), tagKey: FilterText.optional() })
  .extend(PartPaging.shape)
export type DocumentQuery = z.infer<typeof DocumentQuery>

const maxSlug = 100

/** `Opening hours, Zürich` gives `opening-hours-zurich.txt`. */
export function fileNameOf(title: string, ending = 'txt'): string {
  const plain = title.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  const letters = Array.from(plain.replace(/[^\p{L}\p{N}]+/gu, ' ').trim())
    .slice(0, maxSlug)
    .join('')
    .trim()
  return `${letters === '' ? 'document' : letters.replaceAll(' ', '-')}.${ending}`
}

export const Document = z.object({
  id: z.string(),
  accountId: z.string(),
  title: z.string(),
  fileName: z.string(),
  type: z.string(),
  status: DocumentStatus,
  /** Of a failed one. */
  failedReason: z.string().optional(),
  isActive: z.boolean(),
  tagKeys: z.array(z.string()),
  workerIds: z.array(z.string()),
  /** Not in lists, and not while it has to be read from a file. */
  text: z.string().optional(),
  /** Of a call script that has any: what the embedded engine cannot follow. Not in lists. */
  scriptErrors: z.array(ScriptError).optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type Document = z.infer<typeof Document>

export type DocumentFacts = {
  readonly id: DocumentId
  readonly accountId: AccountId
  readonly title: string
  readonly fileName: string
  readonly type: string
  readonly status: DocumentStatus
  readonly failedReason: string | null
  readonly isActive: boolean
  readonly tagKeys: readonly string[]
  readonly workerIds: readonly WorkerId[]
  readonly createdAt: number
  readonly updatedAt: number
}

/** `text` null: not told. */
export function toDocument(
  { failedReason, tagKeys, workerIds, createdAt, updatedAt, ...facts }: DocumentFacts,
  text: string | null,
): Document {
  const lists = { tagKeys: [...tagKeys], workerIds: [...workerIds] }
  return {
    ...facts,
    ...(failedReason !== null && { failedReason }),
    ...lists,
    ...(text !== null && { text }),
    createdAt: toIso(createdAt),
    updatedAt: toIso(updatedAt),
  }
}
