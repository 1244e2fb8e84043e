/** Owns what is known of Google's Live models by their names. Facts: https://ai.google.dev/gemini-api/docs/models. Pure. */

/**
 * It takes the result of a tool without saying something about it (`SILENT`), of a tool that does not block it. Of one that does the scheduling is
 * ignored, and older models have no others.
 */
export const takesSilentResults = (model: string): boolean => isSince(model, 3, 8) === true

/** It takes the schemas of tools as JSON Schema; of a name that tells no version that is taken for granted. */
export const takesJsonSchema = (model: string): boolean => isSince(model, 3, 1) !== false

/** Null: its name tells no version. */
function isSince(model: string, major: number, minor: number): boolean | null {
  const [, ours, ourMinor = 0] = (/gemini-(?:live-)?(\d+)(?:\.(\d+))?/.exec(model) ?? []).map(Number)
  return ours === undefined ? null : ours > major || (ours === major && ourMinor >= minor)
}

/** Why no call can be held with it; null when nothing is known against it. */
export function unfitnessOf(model: string): string | null {
  const instead = 'set GEMINI_LIVE_MODEL=gemini-3.8-live'
  if (/-extended-thinking\b/.test(model))
    return `${model} cannot hold a call: it must be told how long to think, says fillers while it does, and does not wait for the tools of a worker; ${instead}`
  if (/-translate\b/.test(model))
    return `${model} cannot hold a call: it translates what it hears and takes neither instructions nor tools; ${instead}`
  return null
}
