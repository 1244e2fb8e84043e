/** Owns what Gemini Live says on the wire, as far as it is used. Lenient: a field that is not as documented is as good as missing. */
import { z } from 'zod'
import { JsonObject } from '../../../model/json.ts'
import { UsageMetadata } from './usage.ts'

const text = z.string().optional().catch(undefined)
const flag = z.boolean().optional().catch(undefined)
const Transcription = z.object({ text, finished: flag }).optional().catch(undefined)
const ModelPart = z
  .object({ inlineData: z.object({ data: z.string(), mimeType: text }).optional().catch(undefined), thought: flag })
  .catch({})
export type ModelPart = z.infer<typeof ModelPart>
const FunctionCall = z
  .object({ id: text, name: z.string(), args: JsonObject.nullish().catch(null) })
  .nullable()
  .catch(null)
export type FunctionCall = z.infer<typeof FunctionCall>

const ServerContent = z.object({
  modelTurn: z
    .object({ parts: z.array(ModelPart).optional().catch(undefined) })
    .optional()
    .catch(undefined),
  turnComplete: flag,
  turnCompleteReason: text,
  waitingForInput: flag,
  generationComplete: flag,
  interrupted: flag,
  inputTranscription: Transcription,
  interimInputTranscription: Transcription,
  outputTranscription: Transcription,
})
export type ServerContent = z.infer<typeof ServerContent>

const ServerMessage = z.object({
  setupComplete: z.object({}).optional().catch(undefined),
  serverContent: ServerContent.optional().catch(undefined),
  toolCall: z
    .object({ functionCalls: z.array(FunctionCall) })
    .optional()
    .catch(undefined),
  toolCallCancellation: z
    .object({ ids: z.array(z.string()) })
    .optional()
    .catch(undefined),
  goAway: z.object({ timeLeft: text }).optional().catch(undefined),
  sessionResumptionUpdate: z.object({ newHandle: text, resumable: flag }).optional().catch(undefined),
  usageMetadata: UsageMetadata,
  voiceActivity: z.object({ voiceActivityType: text }).optional().catch(undefined),
})
export type ServerMessage = z.infer<typeof ServerMessage>

export const readMessage = (message: Readonly<Record<string, unknown>>): ServerMessage =>
  ServerMessage.safeParse(message).data ?? {}

/** A duration of protobuf in JSON, such as "59.5s"; null for anything else. */
export function msOf(duration: string | undefined): number | null {
  const seconds = /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(duration ?? '')?.[1]
  return seconds === undefined ? null : Math.round(Number(seconds) * 1000)
}
