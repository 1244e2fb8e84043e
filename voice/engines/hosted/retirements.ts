/** Owns what OpenAI has announced the end of: https://developers.openai.com/api/docs/deprecations, as of November 2026. Pure. */

const ends: readonly { readonly models: RegExp; readonly on: string; readonly instead: string }[] = [
  {
    models: /^(?:tts-1|gpt-4o-mini-tts)(?:-|$)/,
    on: '2027-01-06',
    // The recommended gpt-realtime-2.1-mini does not speak at that endpoint.
    instead: 'another server that speaks at /audio/speech, or OpenAI Realtime in place of the cascade',
  },
  {
    models: /^gpt-(?:realtime|4o-realtime-preview|4o-mini-realtime-preview)(?:-mini)?(?:-\d{4}-\d\d-\d\d)?$/,
    on: '2027-01-20',
    instead: 'gpt-realtime-2.1 or gpt-realtime-2.1-mini',
  },
  {
    models: /^(?:whisper-1|gpt-4o-(?:mini-)?transcribe)(?:-|$)/,
    on: '2027-02-26',
    instead: 'gpt-transcribe',
  },
]

/** Of a model at an address; null when it stays, or is somebody else's: servers of one's own use these names as well. */
export function retirementOf(url: string, model: string): { readonly on: string; readonly instead: string } | null {
  if (!/(?:^|\.)openai\.com$/.test(new URL(url).hostname)) return null
  const end = ends.find(({ models }) => models.test(model))
  return end ? { on: end.on, instead: end.instead } : null
}
