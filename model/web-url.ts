/** Owns the addresses that integrators are asked at: of endpoints and of tools. Which of them are asked, the deployment decides. */
import { z } from 'zod'

export const WebUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).max(2000)
