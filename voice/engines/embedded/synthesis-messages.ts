/** Owns what the synthesis thread is told and what it answers. */
import type { FliteVoice } from './flite.ts'

export type SynthesisRequest = { readonly voice: FliteVoice; readonly text: string }
export type SynthesisReply =
  | { readonly type: 'ready' }
  /** 16 kHz, whole frames of 20 ms. */
  | { readonly type: 'spoken'; readonly samples: Int16Array<ArrayBuffer> }
