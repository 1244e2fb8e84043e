/** Owns the list of tools: those of the contract's table in its order. What a token sees of it follows from its scopes. */
import type { Tools } from '../tool-server.ts'
import { accountTools, type AccountToolDeps } from './account-tools.ts'
import { documentTools, type DocumentToolDeps } from './document-tools.ts'
import { personTools, type PersonToolDeps } from './person-tools.ts'
import { placeCallTools, policyTools, type PlaceCallToolDeps } from './place-call-tools.ts'
import { readCallTools } from './read-call-tools.ts'
import { serveTool } from './served-tool.ts'
import type { McpTool } from './tool.ts'
import { workerTools, type WorkerToolDeps } from './worker-tools.ts'

export type AllToolDeps = WorkerToolDeps & PlaceCallToolDeps & DocumentToolDeps & PersonToolDeps & AccountToolDeps

/** The order is that of the contract. */
export const allTools = (deps: AllToolDeps): McpTool[] => [
  ...plain(workerTools(deps)),
  ...placeCallTools(deps),
  ...plain(readCallTools(deps)),
  ...policyTools(deps),
  ...plain(documentTools(deps)),
  ...plain(personTools(deps)),
  ...plain(accountTools(deps)),
]

const plain = (tools: readonly McpTool[]): McpTool[] => tools.map((tool) => ({ ...tool, isPlain: true }))

/** Of a list that never changes. */
export function fixedTools(tools: readonly McpTool[]): Tools {
  const served = tools.map(serveTool)
  const byName = new Map(served.map((tool) => [tool.listing.name, tool]))
  return {
    list: async ({ scopes: granted }) => served.filter(({ scopes }) => scopes.some((scope) => granted.includes(scope))),
    find: async (name, { scopes: granted }) => {
      const tool = byName.get(name)
      return tool?.scopes.some((scope) => granted.includes(scope)) ? tool : null
    },
    scopesOf: (name) => byName.get(name)?.scopes ?? null,
  }
}

/** Of several lists one, in their order. */
export const joinedTools = (parts: readonly Tools[]): Tools => ({
  list: async (access) => (await Promise.all(parts.map((part) => part.list(access)))).flat(),
  async find(name, access) {
    for (const part of parts) {
      const tool = await part.find(name, access)
      if (tool) return tool
    }
    return null
  },
  scopesOf: (name) => parts.map((part) => part.scopesOf(name)).find((scopes) => scopes !== null) ?? null,
})
