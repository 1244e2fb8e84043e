/** Owns external tool definitions: sent with a web call or returned by call.worker_request. docs/contract/tools.md "External tools". */
import { z } from 'zod'
import { JsonObject } from './json.ts'
import { repeatedIn } from './repeated-names.ts'
import { WebUrl } from './web-url.ts'

export const ExternalTool = z.strictObject({
  /** Any text: engines get another one where they need it (engine-tool-name.ts). */
  name: z.string().min(1).max(128),
  description: z.string().max(2000).default(''),
  inputSchema: z
    .looseObject({
      type: z.literal('object'),
      properties: JsonObject.optional(),
      required: z.array(z.string()).optional(),
    })
    .optional(),
  deliveryUrl: WebUrl,
  signingSecret: z.string().min(1).max(500),
})
export type ExternalTool = z.infer<typeof ExternalTool>

/** Bound to one call: a name stands for one tool. */
export const ExternalTools = z
  .array(ExternalTool)
  .max(64)
  .superRefine((tools, context) => {
    for (const index of repeatedIn(tools.map(({ name }) => name)))
      context.addIssue({ code: 'custom', path: [index, 'name'], message: 'is the name of another tool too' })
  })
