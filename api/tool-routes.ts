/** Owns the routes that list and call the tools of a worker. docs/contract/tools.md "Tool dispatch". */
import { createRoute, z } from '@hono/zod-openapi'
import type { AccountId, WorkerId } from '../model/ids.ts'
import { PhoneNumber } from '../model/phone-number.ts'
import { ToolCallRequest, ToolDescriptor, ToolResult } from '../model/tool.ts'
import { findWorker } from '../store/workers.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'
import { withPlus } from './with-plus.ts'

const tools = '/v1/accounts/{accountId}/workers/{workerId}/mcp/tools'
const params = z.object({ accountId: z.string(), workerId: z.string() })
const shared = { security, tags: ['Tools'] }

const list = createRoute({
  ...shared,
  method: 'get',
  path: tools,
  operationId: 'listWorkerTools',
  ...needs('read'),
  summary: 'List the tools of a worker',
  description:
    'With phoneCallId also the tools that are bound to the call, and those for an identified caller; customerPhone (E.164) is for the latter alone.',
  request: {
    params,
    query: z.object({
      phoneCallId: z.string().optional(),
      customerPhone: withPlus('number', PhoneNumber.optional()),
    }),
  },
  responses: answerOf(
    z.object({ tools: z.array(named('ToolDescriptor', ToolDescriptor)) }),
    'The tools; those for an identified caller only with a call or a number.',
  ),
})

const call = createRoute({
  ...shared,
  method: 'post',
  path: `${tools}/call`,
  operationId: 'callWorkerTool',
  ...needs('calls'),
  summary: 'Call a tool of a worker',
  ...refusing('INVALID_TOOL'),
  description:
    'An external tool needs the phoneCallId of a call that is going on; what its receiver gives as result comes as data.result. A tool that could not do its work is a 200 with result.error.',
  middleware: [readJson],
  request: {
    params,
    body: bodyOf(named('ToolCallRequest', ToolCallRequest), {
      toolName: 'search',
      provider: 'knowledge_base',
      arguments: { query: 'opening hours' },
    }),
  },
  responses: answerOf(
    z.object({ result: named('ToolResult', ToolResult) }),
    'What the tool answered, also when it could not do its work.',
  ),
})

export function addToolRoutes(app: Api, { sql, tools: toolbox }: ApiDeps): void {
  const workerIdOf = async (accountId: AccountId, segment: string): Promise<WorkerId> =>
    existing(await findWorker(sql, accountId, idOf<'worker'>(segment))).id

  app.openapi(list, async (c) => {
    const workerId = await workerIdOf(c.get('accountId'), c.req.valid('param').workerId)
    return c.json({ tools: await toolbox.list(c.get('accountId'), workerId, c.req.valid('query')) }, 200)
  })
  app.openapi(call, async (c) => {
    const workerId = await workerIdOf(c.get('accountId'), c.req.valid('param').workerId)
    return c.json({ result: await toolbox.call(c.get('accountId'), workerId, c.req.valid('json')) }, 200)
  })
}
