/** Owns how the ports for the sound of telephones are opened. */
import { createMediaPorts, type MediaPorts } from '../media/rtp/media-ports.ts'
import type { Log } from '../model/log.ts'
import { now } from './clock.ts'
import type { PhoneSettings } from './media-settings.ts'

export const openMediaPorts = (
  { address, publicAddress, mediaPorts }: Omit<PhoneSettings, 'inbandKeys'>,
  log: Log,
): MediaPorts =>
  createMediaPorts({ bindAddress: address, externalAddress: publicAddress, portRange: mediaPorts, now, log })
