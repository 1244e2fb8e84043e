/** Owns the scopes that clients may ask for, and how they are told to people. docs/contract/mcp.md "Scopes". */
import type { McpScope } from '../../model/mcp-access.ts'

/** What a client that names none asks for. */
export const defaultScope: McpScope = 'account_admin'

/** Asked for as well by clients that keep access for longer; a refresh token is issued with it and without. */
export const offlineAccess = 'offline_access'

export const scopeWords: Readonly<Record<McpScope, { readonly title: string; readonly details: string }>> = {
  account_admin: {
    title: 'Manage the whole account',
    details:
      'Read and change workers, documents and persons, prepare and place calls, and read calls with their transcripts. Account info and the state of phone lines and integrations, without secrets.',
  },
  admin: {
    title: 'Configure one worker',
    details: 'Read and change the settings of the chosen worker and its documents, call scripts included. No calls.',
  },
  user: {
    title: 'Use the tools of one worker',
    details:
      'What the chosen worker may use during a call: its knowledge base, e-mail, persons, and tools of yours that it is bound to.',
  },
}
