// The parts of SQLite that this example uses. This repository is checked with the types of Node.js 20, which have no SQLite.
declare module 'node:sqlite' {
  type Value = string | number | null
  interface Statement {
    run(...values: readonly Value[]): unknown
    get(...values: readonly Value[]): Record<string, Value> | undefined
    all(...values: readonly Value[]): Record<string, Value>[]
  }
  export class DatabaseSync {
    constructor(file: string)
    exec(sql: string): void
    prepare(sql: string): Statement
    close(): void
  }
}
