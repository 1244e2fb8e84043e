/** Owns the tools that a Gemini Live session has called and that are not answered yet: the provider's ids become ids that no other session of the call has. */

export type PendingTools = {
  begin(theirs: string | undefined): string
  /** Null: not of this session, or nobody waits for it. */
  end(ours: string): string | null
  cancel(theirs: string): string[]
  isEmpty(): boolean
}

const maxPending = 64

export function createPendingTools(session: string): PendingTools {
  const pending = new Map<string, string>()
  let count = 0
  return {
    begin(theirs) {
      const ours = `${session}-${++count}`
      pending.set(ours, theirs ?? '')
      if (pending.size > maxPending) pending.delete([...pending.keys()][0]!)
      return ours
    },
    end(ours) {
      const theirs = pending.get(ours) ?? null
      pending.delete(ours)
      return theirs
    },
    cancel(theirs) {
      const ours = [...pending].flatMap(([key, value]) => (value === theirs ? [key] : []))
      for (const key of ours) pending.delete(key)
      return ours
    },
    isEmpty: () => pending.size === 0,
  }
}
