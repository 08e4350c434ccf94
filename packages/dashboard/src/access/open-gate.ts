import { answer, json } from '../answer.ts'
import { type Gate, type Grant, UNLIMITED, type Visit } from './gate.ts'
import { hasSafeHost } from './origin.ts'

const REJECTED = `With authorize: 'none' the dashboard answers only if the address contains an IP address or "localhost",
because another web site could point its own host name here. Set "authorize":

    dashboard(throttler, { authorize: password(process.env.DASHBOARD_PASSWORD) })
`

/** `authorize: 'none'`: everyone who can reach the server. */
export class OpenGate implements Gate {
  readonly sessions = undefined

  async allow({ request }: Visit): Promise<Grant | undefined> {
    return hasSafeHost(request) ? UNLIMITED : undefined
  }

  reject({ response }: Visit, wanted: 'page' | 'data'): void {
    if (wanted === 'page') answer(response, 403, REJECTED)
    else json(response, 403, { error: 'Not allowed under this host name.' })
  }

  close(): void {}
}
