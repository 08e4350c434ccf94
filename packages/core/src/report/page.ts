/** Where each code has its page: the path in the package, as long as the documentation has no public address. */
const PAGES = '@weir/core/docs/errors/'

export function pageOf(code: string): string {
  return `${PAGES}${code.toLowerCase()}.md`
}

/** A message that ends with the page of its code, once. */
export function withPage(message: string, code: string): string {
  const end = ` See ${pageOf(code)}`
  return message.endsWith(end) ? message : message + end
}

/** A message without its page, to be a part of another message. */
export function withoutPage(message: string): string {
  const end = message.lastIndexOf(` See ${PAGES}`)
  return end < 0 ? message : message.slice(0, end)
}
