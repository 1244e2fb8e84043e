/** Owns which fields of arguments the audit log names, and of which it tells the value. What stands in none of these lists is counted. */

const listOf = (names: string): readonly string[] => names.trim().split(/\s+/)

/** Their value is one of `toldWords`, or masked. */
export const wordFields: ReadonlySet<string> = new Set(
  listOf(`
  callerId calling called codecs digestQop direction encryption eventType fallbackProviders format identityHeader llmProvider provider recordingChannelMode
  registerWith role rtp scope scopes status tagKey tagKeys transcriptEvents transferTo transport type`),
)

/** Everything the service itself has a word for; an account's own words are none. */
export const toldWords: ReadonlySet<string> = new Set(
  listOf(`
  read calls manage account_admin admin user owner operator viewer inbound outbound both customer lead phone_contact txt mdoc wav opus
  string number boolean enum date object none sdes required optional asserted preferred first every from identity username plus digits national
  udp tcp tls PCMU PCMA G722 voice_provider_a voice_provider_b cascade embedded mixed split final interim sip tel webrtc sip_trunk
  call.worker_request call.tool_call call.transcript call.status_update call.ended *
  scheduled queued ringing in_progress completed voicemail no_answer busy canceled failed pending delivered exhausted
  inbound_call_script outbound_call_script knowledge_base email call person external on off headers sound`),
)

/** Of settings: how many, how long, how large. */
export const numberFields: ReadonlySet<string> = new Set(
  listOf(`
  auditLog auditLogDays calls callDays callsPerSecond dailyMinutes firstSpeechTimeout hours limit llmTemperature maxCalls maxCallsPerSecond maxConcurrentCalls minutes offset
  port recordingDays recordings registerExpires ringTimeout temperature timeoutMs transcriptDays transcripts`),
)

/** May hold anything, under any name. */
export const openFields: ReadonlySet<string> = new Set(
  listOf('arguments context customer dataSchema disclosureText headers inputSchema metadata variables'),
)

const others = listOf(`
  required user acceptRealm account address call calledForm callingForm codec extension gateway header noQualify settings trustIdentity lastOwner passwordFile tlsCertificateFile tlsKeyFile   accountId allowedAddresses allowedOrigins allow authUsername authenticateInbound batchConfirmationToken body callId callIds callScriptDocumentIds
  callScriptFileNames captureSound city clear clientId clientName companyName config confirmationToken content country countryCode created customInstructions
  customerPhone deliveryId deliveryUrl description dimensions displayName documentId domain email emailEnabled embeddedFallback enabled
  expires expiresAt extensions externalCallId externalId externalTools facebookUrl file fileName firstName force from fromDate fromDomain
  fullName gateways grantId host homeCountry homeOnly id inbound inboundPhoneNumber inboundStaticMessageEnabled inboundStaticMessageText
  includeContent instructions internationalPrefix invitationId isActive jobTitle key keyId language lastName linkedInUrl locale member move name
  nationalPrefix nextActions notes number numberFormat numberPrefix numbers options outbound outboundPhoneNumber outboundProxy password
  persons personId personIds phone phoneCallId phoneNumber postalCode prefix properties publicName qualify query realm recording recordingEnabled
  register registrar requireConfirmationForOutboundCalls retentionDays scheduledAt secret serviceDownRedirectEnabled
  serviceDownRedirectNumber signingSecret slug stateOrProvince streetAddress subscriptionId supervision supervisionEnabled tag tags testModeEnabled text title tlsCertificate
  tlsKey to toDate token toolName transferNumber trunkId trustsIdentity unverifiedCallerUpdatesEnabled url userId username
  ranAt target seeds scenarios runs passed passAll measures value events reason seed scenario faults field wanted got atMs simulationId
  version voiceId websiteUrl worker workerId workerIds`)

export const namedFields: ReadonlySet<string> = new Set([...wordFields, ...numberFields, ...openFields, ...others])
