/** Owns what a client says that it can do, beside calling tools. In the revisions of 2025 it says so once, to a session that is not kept: nothing is known. */
import { CLIENT_CAPABILITIES_META_KEY, type ServerContext } from '@modelcontextprotocol/server'

export const tasksExtension = 'io.modelcontextprotocol/tasks'

type Declared = {
  readonly elicitation?: { readonly url?: unknown }
  readonly extensions?: Readonly<Record<string, unknown>>
}

const declaredOf = ({ envelope }: Pick<ServerContext['mcpReq'], 'envelope'>): Declared =>
  ((envelope as Readonly<Record<string, unknown>> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] ?? {}) as Declared

/** It can send its user to a page of ours, and come back. */
export const showsPages = (request: Pick<ServerContext['mcpReq'], 'envelope'>): boolean =>
  declaredOf(request).elicitation?.url !== undefined

/** It can be given a task in place of a result, and ask for that later. */
export const followsTasks = (request: Pick<ServerContext['mcpReq'], 'envelope'>): boolean =>
  declaredOf(request).extensions?.[tasksExtension] !== undefined
