import type { CDPSession, Page } from 'playwright-core'
import { SCENES } from '../../src/playground/settings/scenes.ts'

/** Memory that a page keeps after garbage collection. */
export interface Held {
  /** Bytes of objects and typed arrays, in the page and in its worker. */
  readonly page: number
  readonly worker: number
  readonly workers: number
  readonly nodes: number
  readonly listeners: number
}

/** Ten intervals of a minute. A run that leaks would leave a quarter of a megabyte or more. */
const SETTINGS = `&limit=100&load=10&interval=60&${new URLSearchParams({ options: "{ limit: 100, interval: '10s' }" })}`
/** Milliseconds between two pictures. */
const STEP = 200

/** Replaces the animation frames by frames on demand, so that watching for minutes takes only the time to draw. */
const PICTURES = `{
  let now = 0
  let ids = 0
  let queue = new Map()
  requestAnimationFrame = (callback) => (queue.set(++ids, callback), ids)
  cancelAnimationFrame = (id) => void queue.delete(id)
  // Recorded events are written by tasks.
  const others = () => new Promise((resolve) => setTimeout(resolve))
  watch = async (length) => {
    for (const end = now + length; now < end; ) {
      now += ${STEP}
      const due = queue
      queue = new Map()
      for (const callback of due.values()) callback(now)
      if (now % ${10 * STEP} === 0) await others()
    }
  }
}`

/** A page that can be watched for long in a short time. */
export class Watched {
  readonly #page: Page
  readonly #session: CDPSession
  readonly #workers = new Set<string>()
  readonly #answers = new Map<number, (result: unknown) => void>()
  #asked = 0

  private constructor(page: Page, session: CDPSession) {
    this.#page = page
    this.#session = session
  }

  static async open(page: Page, root: string): Promise<Watched> {
    const session = await page.context().newCDPSession(page)
    const watched = new Watched(page, session)
    session.on('Target.attachedToTarget', ({ sessionId, targetInfo }) => {
      if (targetInfo.type === 'worker') watched.#workers.add(sessionId)
    })
    session.on('Target.detachedFromTarget', ({ sessionId }) => watched.#workers.delete(sessionId))
    session.on('Target.receivedMessageFromTarget', ({ message }) => {
      const { id, result } = JSON.parse(message) as { id: number; result: unknown }
      watched.#answers.get(id)?.(result)
    })
    await session.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false, flatten: false })
    await page.addInitScript(PICTURES)
    // Beside other suites a run may take a minute.
    page.setDefaultTimeout(300_000)
    await page.goto(`${root}?scene=limit${SETTINGS}`)
    return watched
  }

  /** Runs each scene once with a seed, and watches each for some seconds. The first scene comes last. */
  async round(seed: number): Promise<void> {
    const names = SCENES.map(({ name }) => name)
    for (const name of [...names.slice(1), names[0]]) {
      await this.#page.evaluate(
        `history.pushState(null, '', '?scene=${name}${SETTINGS}&seed=${seed}'); dispatchEvent(new Event('popstate'))`,
      )
      await this.#page.locator(`.outcome[data-of^="?scene=${name}&"][data-of$="seed=${seed}"][aria-busy="false"]`).waitFor()
      await this.watch(5000)
    }
  }

  /** @param length - milliseconds */
  async watch(length: number): Promise<void> {
    await this.#page.evaluate(`watch(${length})`)
  }

  async held(): Promise<Held> {
    for (let again = 0; again < 2; again++) {
      await this.#session.send('HeapProfiler.collectGarbage')
      for (const worker of this.#workers) await this.#ask(worker, 'HeapProfiler.collectGarbage')
    }
    const { metrics } = await this.#session.send('Performance.getMetrics')
    const metric = (wanted: string) => metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN
    let worker = 0
    for (const one of this.#workers) worker += bytesOf(await this.#ask(one, 'Runtime.getHeapUsage'))
    return {
      page: bytesOf(await this.#session.send('Runtime.getHeapUsage')),
      worker,
      workers: this.#workers.size,
      nodes: metric('Nodes'),
      listeners: metric('JSEventListeners'),
    }
  }

  async start(): Promise<void> {
    await this.#session.send('Performance.enable')
    await this.#session.send('HeapProfiler.enable')
  }

  #ask(sessionId: string, method: string): Promise<unknown> {
    const id = ++this.#asked
    const answer = new Promise((resolve) => this.#answers.set(id, resolve))
    return this.#session
      .send('Target.sendMessageToTarget', { sessionId, message: JSON.stringify({ id, method, params: {} }) })
      .then(() => answer)
      .finally(() => this.#answers.delete(id))
  }
}

function bytesOf(usage: unknown): number {
  const { usedSize, backingStorageSize = 0 } = usage as { usedSize: number; backingStorageSize?: number }
  return usedSize + backingStorageSize
}
