/** Owns how whoever transcribes a caller is told their language. Pure. */

/** Of languages with several codes the one that Whisper knows, and all models after it. */
const whisperCodes: Readonly<Record<string, string>> = {
  nb: 'no',
  iw: 'he',
  in: 'id',
  fil: 'tl',
  cmn: 'zh',
}

/** Of BCP 47 the ISO 639-1 that is known; null for languages that have no such code. */
export function transcriptionLanguageOf(tag: string): string | null {
  const given = tag.split('-')[0]?.toLowerCase() ?? ''
  const language = whisperCodes[given] ?? given
  return language.length === 2 ? language : null
}

/**
 * gpt-transcribe and gpt-live-transcribe have a list of languages, pass over the one that all others take, and refuse what is not among the some sixty that
 * they know. https://developers.openai.com/api/docs/guides/speech-to-text, and tried by michaelwilhelmsen/humla#128.
 */
export const hasLanguageList = (model: string): boolean => /^gpt-(?:live-)?transcribe(?:-|$)/.test(model)

/** In a session of OpenAI's Realtime API. Null: it is to find out. */
export function languageHint(model: string, language: string | null): object {
  if (language === null) return {}
  return hasLanguageList(model) ? { languages: [language] } : { language }
}
