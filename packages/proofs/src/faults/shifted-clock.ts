import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const LIBRARIES = '/usr/lib'

/** The library that gives a process another system time (Debian: `apt-get install libfaketime`), if it is installed. */
export function faketimeLibrary(): string | undefined {
  if (!existsSync(LIBRARIES)) return undefined
  return readdirSync(LIBRARIES)
    .map((architecture) => join(LIBRARIES, architecture, 'faketime', 'libfaketimeMT.so.1'))
    .find((file) => existsSync(file))
}

/** The system time of one process. Its monotonic clock stays correct, as it does when a real clock is stepped. */
export class ShiftedClock {
  readonly #directory = mkdtempSync(join(tmpdir(), 'weir-clock-'))
  readonly #library: string

  constructor(library: string, seconds = 0) {
    this.#library = library
    this.set(seconds)
  }

  /** The environment with which the process must start. */
  get env(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // The name of the same option in older versions.
      DONT_FAKE_MONOTONIC: '1',
    }
  }

  /** Steps the clock to `seconds` ahead of the real time. A negative number is behind it. */
  set(seconds: number): void {
    writeFileSync(this.#file, `${seconds < 0 ? '' : '+'}${seconds}s\n`)
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }

  get #file(): string {
    return join(this.#directory, 'offset')
  }
}
