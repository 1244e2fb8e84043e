/** Owns what is one line: text that is written into headers of other protocols later, where a second line would be a header of its own. */

export const oneLine = (text: string): boolean => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)
