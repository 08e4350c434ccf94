/** A response that only keeps its headers. */
export class Answer {
  readonly headers: Record<string, unknown> = {}
  readonly headersSent = false
  statusCode = 200
  setHeader(name: string, value: unknown): void {
    this.headers[name] = value
  }
  header(name: string, value: unknown): void {
    this.headers[name] = value
  }
  status(code: number): this {
    this.statusCode = code
    return this
  }
  send(): void {}
}

/** Whether a middleware that throws its rejections allows a request. */
export async function isAllowed(result: Promise<unknown>): Promise<boolean> {
  try {
    await result
    return true
  } catch (error) {
    if (
      (error as { readonly statusCode?: number; readonly status?: number }).statusCode === 429 ||
      (error as { readonly status?: number }).status === 429
    )
      return false
    throw error
  }
}
