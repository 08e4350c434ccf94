import { BLOCK } from './blocks.ts'
import { BUCKETS } from './buckets.ts'
import { DECIDE } from './decide.ts'
import { EXCHANGE, HELPERS } from './exchange.ts'
import { HEARTBEAT } from './heartbeat.ts'
import { LEASES } from './leases.ts'
import { TABLES, tables } from './tables.ts'

/** A schema's name. It is short enough for the channel's name, and the same with and without quotes. */
export const SCHEMA_NAME: RegExp = /^[a-z_][a-z0-9_]{0,49}$/

/**
 * The statements that make the schema. Existing objects and their data stay. In the texts of functions and tables `@.` stands for the
 * schema.
 */
export function statements(schema: string, unlogged: boolean): string {
  const made = `-- One migration at a time.
SELECT pg_advisory_xact_lock(7310866118);
DO $body$ BEGIN
  IF to_regnamespace('${schema}') IS NULL THEN CREATE SCHEMA ${schema}; END IF;
END $body$;

${[tables(unlogged), BLOCK, HELPERS, BUCKETS, LEASES, HEARTBEAT, EXCHANGE, DECIDE].join('\n')}`
  return made.replaceAll('@.', `${schema}.`)
}

/**
 * The statements for a schema that may exist. If processes start together, the first one creates it. The others need no lock on tables that
 * are in use.
 */
export function statementsIfMissing(schema: string, unlogged: boolean): string {
  return `DO $do$ BEGIN
  PERFORM pg_advisory_xact_lock(7310866118);
  IF to_regproc('${schema}.exchange_1') IS NULL OR to_regproc('${schema}.decide_1') IS NULL
    OR EXISTS (SELECT 1 FROM unnest('{${TABLES.join()}}'::text[]) t WHERE to_regclass('${schema}.' || t) IS NULL)
  THEN EXECUTE $statements$${statements(schema, unlogged)}$statements$;
  END IF;
END $do$`
}

/** The permissions that a role needs to use the schema, and no others. */
export function grants(schema: string, role: string): string {
  const to = `"${role.replaceAll('"', '""')}"`
  return `GRANT USAGE ON SCHEMA ${schema} TO ${to};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${to};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schema} TO ${to};
`
}
