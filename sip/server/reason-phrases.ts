/** Owns the words of the answers that the server makes by itself. RFC 3261 §21 and its extensions. */
const phrases: Readonly<Record<number, string>> = {
  200: 'OK',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  422: 'Session Interval Too Small',
  481: 'Call/Transaction Does Not Exist',
  482: 'Loop Detected',
  487: 'Request Terminated',
  491: 'Request Pending',
  500: 'Server Internal Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Server Time-out',
}

export const phraseOf = (status: number): string => phrases[status] ?? (status < 500 ? 'Bad Request' : 'Server Error')
