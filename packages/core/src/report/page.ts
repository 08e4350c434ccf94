/** The path of the codes' pages in the package, because the documentation has no public address yet. */
const PAGES = '@weir/core/docs/errors/'

export function pageOf(code: string): string {
  return `${PAGES}${code.toLowerCase()}.md`
}

/** A message that ends with the page of its code. If it already does, it stays as it is. */
export function withPage(message: string, code: string): string {
  const end = ` See ${pageOf(code)}`
  return message.endsWith(end) ? message : message + end
}

/** A message without its page, so that another message can contain it. */
export function withoutPage(message: string): string {
  const end = message.lastIndexOf(` See ${PAGES}`)
  return end < 0 ? message : message.slice(0, end)
}
