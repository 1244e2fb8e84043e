/** Owns the former texts of call scripts as answers show them. docs/contract/rest.md "Documents". */
import { z } from 'zod'
import { toIso } from './clock.ts'

export type DocumentVersionFacts = {
  readonly version: number
  /** Ms since the epoch. */
  readonly savedAt: number
  readonly characters: number
  readonly content: string
}

export const DocumentVersion = z.object({
  version: z.number().int().describe('Counts from 1, the oldest.'),
  savedAt: z.string().describe('When this text was written. ISO 8601.'),
  characters: z.number().int().describe('How long the text is.'),
  text: z.string().optional().describe('Not in lists.'),
})
export type DocumentVersion = z.infer<typeof DocumentVersion>

export const toDocumentVersion = ({
  version,
  savedAt,
  characters,
  content,
}: Omit<DocumentVersionFacts, 'content'> & { readonly content?: string }): DocumentVersion => ({
  version,
  savedAt: toIso(savedAt),
  characters,
  ...(content !== undefined && { text: content }),
})
