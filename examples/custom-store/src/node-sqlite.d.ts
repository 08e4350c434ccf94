// What is used of it: the types of Node.js 20, which this repository is checked with, have no SQLite yet.
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
