/** Owns the checks of sync hooks: the answer must be in time and of the right shape, because a caller waits on the line. */
import type { z } from 'zod'
import { parseWorkerRequestAnswer, ToolCallAnswer } from '../../model/events.ts'
import { flawOf } from '../../model/json.ts'
import { issuesOf } from '../../model/issues.ts'
import { printable } from './printable.ts'
import type { ProbeAnswer } from './probe.ts'
import type { Check } from './stage.ts'
import { accepted, type Finding } from './verdicts.ts'

const mends = {
  workerRequest:
    'Answer {} or an object with config, instructions, tools, metadata as documented; anything else counts like no answer at all.',
  toolCall: 'Answer {"result": …} with any JSON value, null included; anything else counts as a failed tool.',
} as const

export const hookChecks: readonly Check[] = [
  {
    name: 'worker-request',
    group: 'hooks',
    expected: '2xx within the timeout, better under 1 s, and a valid answer to call.worker_request',
    run: async ({ call, deliver }) =>
      judge(await deliver(call.workerRequest(), { delivery: 'sync' }), parseWorkerRequestAnswer, mends.workerRequest),
  },
  {
    name: 'tool-call',
    group: 'hooks',
    expected: '2xx within the timeout, better under 1 s, and {"result": …} to call.tool_call',
    run: async ({ call, deliver }) =>
      judge(
        await deliver(call.toolCall(), { delivery: 'sync' }),
        (json) => ToolCallAnswer.safeParse(json),
        mends.toolCall,
      ),
  },
]

type Parse = (json: unknown) => z.ZodSafeParseResult<unknown>

/** As the service reads it: an empty body of a 2xx is the empty object. */
function judge(answer: ProbeAnswer, parse: Parse, mend: string): Finding {
  const finding = accepted(answer)
  if (finding.verdict === 'failed' || answer.kind === 'failed') return finding
  const invalid = (why: string): Finding => ({ verdict: 'failed', got: `${answer.status}, and ${why}`, mend })
  const json = parseJson(answer.body.trim() === '' ? '{}' : answer.body)
  if (json === undefined) return invalid(`no JSON: ${printable(answer.body.slice(0, 80))}`)
  const flaw = flawOf(json)
  if (flaw) return invalid(`JSON that cannot be stored: ${printable(flaw.path.join('.'))} ${flaw.message}`)
  const parsed = parse(json)
  if (parsed.success) return finding
  const issues = issuesOf(parsed.error, json).slice(0, 5)
  return invalid(`an invalid answer: ${printable(issues.map(({ path, message }) => `${path} ${message}`).join('; '))}`)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Undefined is no JSON value, so it stands for "none".
    return undefined
  }
}
