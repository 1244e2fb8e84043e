/** Owns what is said while a tool takes its time, in the languages we are sure of. */

const words: Readonly<Record<string, string>> = {
  en: 'One moment, please.',
  de: 'Einen Moment, bitte.',
  fr: 'Un instant, s’il vous plaît.',
  es: 'Un momento, por favor.',
  it: 'Un momento, per favore.',
  pt: 'Um momento, por favor.',
  nl: 'Een ogenblikje, alstublieft.',
  pl: 'Chwileczkę, proszę.',
  sv: 'Ett ögonblick, tack.',
  da: 'Et øjeblik, tak.',
}

/** By BCP 47; null where silence is better than another language. */
export const fillerWordsOf = (language: string): string | null => words[language.split('-')[0]!.toLowerCase()] ?? null
