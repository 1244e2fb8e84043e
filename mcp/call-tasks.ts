/**
 * Owns calls as tasks: `working` until they are over, then how they ended and what was said. There is no second truth: a task is read from its call, and its id
 * is that of the call, sealed for the client and the user that it was given to. MCP 2026-07-28, extension `io.modelcontextprotocol/tasks`.
 */
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Audit } from '../model/audit.ts'
import { callStatusOf } from '../model/call.ts'
import { toIso } from '../model/clock.ts'
import { toId, type CallId } from '../model/ids.ts'
import type { McpAccess } from '../model/mcp-access.ts'
import type { EndCall } from '../model/phone-call.ts'
import { Problem } from '../model/problem.ts'
import { findDatedCall } from '../store/call-reports.ts'
import type { DatedCall } from '../store/call-rows.ts'
import { openedOrNull, secretPlace, type SecretBox } from '../store/secret-box.ts'
import type { Sql } from '../store/sql.ts'
import { listTurns } from '../store/transcripts.ts'
import { followsTasks, tasksExtension } from './client-abilities.ts'
import type { Connection } from './tool-server.ts'
import { toCallResult, toTranscript } from './tools/call-fields.ts'

export type CallTaskDeps = {
  readonly sql: Sql
  readonly box: SecretBox
  readonly endCall: EndCall
  readonly audit: Audit
}

/** Ms. */
const pollInterval = 2_000

const taskCapability = { extensions: { [tasksExtension]: {} } }

const placeOf = ({ accountId, userId, clientId }: McpAccess): string =>
  secretPlace('mcp.task', accountId, userId, clientId)

/** In place of a result, for a call that is written by now. */
export function newCallTask({ box }: Pick<CallTaskDeps, 'box'>, access: McpAccess, call: DatedCall): Result {
  const taskId = box.seal(call.id, placeOf(access))
  return { resultType: 'task', ...taskFields(taskId, call) }
}

const TaskParams = z.looseObject({ taskId: z.string() })

/** The extension is of the current revision: in those of 2025 a client cannot say that it follows tasks. */
export function prepareCallTasks(deps: CallTaskDeps) {
  return (server: Server, { access, requestId, era }: Connection): void => {
    if (era === 'legacy') return
    server.registerCapabilities(taskCapability as never)
    const handle = (method: string, answer: (call: DatedCall, taskId: string) => Promise<Result>): void => {
      server.setRequestHandler(method, { params: TaskParams }, async ({ taskId }, context) => {
        requireTasks(context)
        return answer(await callOf(deps, access, taskId), taskId)
      })
    }
    handle('tasks/get', (call, taskId) => detailedTask(deps, call, taskId))
    // A call asks its client for nothing.
    handle('tasks/update', async () => ({}))
    handle('tasks/cancel', async (call) => {
      await endCallOf(deps, call)
      const actor = { kind: 'mcp_client', clientId: access.clientId, userId: access.userId } as const
      const { accountId } = access
      const callIds = [call.id]
      const noted = { accountId, actor, action: 'tasks/cancel', arguments: {}, callIds, requestId }
      await deps.audit.note({ ...noted, result: 'success' })
      return {}
    })
  }
}

function requireTasks({ mcpReq }: ServerContext): void {
  if (!followsTasks(mcpReq))
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: taskCapability as never })
}

/** Throws for an id that this client was not given for this user, or of a call that is gone. */
async function callOf({ sql, box }: CallTaskDeps, access: McpAccess, taskId: string): Promise<DatedCall> {
  const callId = openedId(box, access, taskId)
  const call =
    callId !== null && access.scopes.includes('account_admin')
      ? await findDatedCall(sql, access.accountId, callId)
      : null
  if (!call) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such task.')
  return call
}

function openedId(box: SecretBox, access: McpAccess, taskId: string): CallId | null {
  const id = openedOrNull(box, taskId, placeOf(access))
  return id === null ? null : toId<'call'>(id)
}

const isOver = (call: DatedCall): boolean => call.outcome !== null

function taskFields(taskId: string, call: DatedCall) {
  const { createdAt, startedAt, endedAt } = call
  return {
    taskId,
    status: statusOf(call),
    statusMessage: messageOf(call),
    createdAt: toIso(createdAt),
    lastUpdatedAt: toIso(Math.max(createdAt, startedAt ?? 0, endedAt ?? 0)),
    // As long as the account keeps its calls.
    ttlMs: null,
    pollIntervalMs: pollInterval,
  }
}

function statusOf(call: DatedCall): 'working' | 'completed' | 'cancelled' {
  if (!isOver(call)) return 'working'
  return call.outcome === 'canceled' ? 'cancelled' : 'completed'
}

function messageOf({ id, progress, outcome, scheduledAt }: DatedCall): string {
  const when = progress === 'scheduled' && scheduledAt !== null ? ` for ${toIso(scheduledAt)}` : ''
  return `Call ${id}: ${outcome ?? progress}${when}.`
}

async function detailedTask({ sql }: CallTaskDeps, call: DatedCall, taskId: string): Promise<Result> {
  const task = taskFields(taskId, call)
  if (task.status !== 'completed') return task
  const turns = await listTurns(sql, call.accountId, call.id)
  const told = { call: toCallResult(call), ...toTranscript(turns) }
  return { ...task, result: { content: [{ type: 'text', text: JSON.stringify(told) }], structuredContent: told } }
}

/** What waits is canceled, what runs is hung up; what is over stays so. */
async function endCallOf({ endCall }: CallTaskDeps, call: DatedCall): Promise<void> {
  if (isOver(call)) return
  const isWaiting = ['scheduled', 'queued'].includes(callStatusOf(call.progress))
  const acts = [endCall.cancel, endCall.hangUp]
  const [first, second] = isWaiting ? acts : acts.toReversed()
  await first!(call.accountId, call.id).catch(async (error: unknown) => {
    if (!(error instanceof Problem) || error.type !== 'CONFLICT') throw error
    // It went on meanwhile, or is over.
    await second!(call.accountId, call.id).catch(ignoreConflict)
  })
}

function ignoreConflict(error: unknown): void {
  if (!(error instanceof Problem) || error.type !== 'CONFLICT') throw error
}
