/** Owns what the operator has connected the service to, as accounts are told of it: whether it is there, and nothing else. */
import type { Integration } from '../mcp/tools/account-tools.ts'
import type { Config } from './config.ts'

type Connected = Pick<Config, 'voice' | 'email' | 'embeddings' | 'extraction' | 'recordingsBucket'>

export function integrationsOf({ voice, email, embeddings, extraction, recordingsBucket }: Connected): Integration[] {
  const { openai, gemini, cascade } = voice
  const connected: [type: string, category: Integration['category'], configured: boolean][] = [
    ['voice_provider_a', 'voice', openai !== null],
    ['voice_provider_b', 'voice', gemini !== null],
    ['cascade', 'voice', cascade !== null],
    ['embedded', 'voice', true],
    ['smtp', 'email', email !== null],
    ['embeddings', 'knowledge', embeddings !== null],
    ['extraction', 'extraction', extraction !== null],
    ['recordings_bucket', 'storage', recordingsBucket !== null],
  ]
  return connected.map(([type, category, configured]) => ({ type, category, configured, configured_by: 'service' }))
}
