export type { PostgresStoreOptions } from './connection/options.ts'
export type { ConnectionSettings, PoolTemplate, PostgresTarget } from './connection/template.ts'
export { postgresStore, type SchemaOptions, schemaSql } from './postgres-store.ts'
