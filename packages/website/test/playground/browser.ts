import type { AddressInfo } from 'node:net'
import { server } from '../../src/playground/serve.js'

export { CHROMIUM, complaints, launch, MISSING } from '@weir/tooling/browser'

/** Serves the built page. Returns its address. */
export async function serve(): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

export function unserve(): void {
  server.closeAllConnections()
  server.close()
}
