import { mkdtempSync, rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeContract } from '@weir/testing'
import { describe, test } from 'vitest'

// Node.js has SQLite from 22.13 on, and from 22.5 on with --experimental-sqlite.
if (isBuiltin('node:sqlite')) {
  const { DatabaseSync } = await import('node:sqlite')
  const { sqliteStore } = await import('../src/sqlite-store.ts')
  storeContract(
    'a store in SQLite',
    () => {
      const directory = mkdtempSync(join(tmpdir(), 'weir-sqlite-'))
      const file = join(directory, 'counts')
      const store = sqliteStore(file)
      const all = (sql: string) => {
        const database = new DatabaseSync(file)
        const rows = database.prepare(sql).all()
        database.close()
        return rows
      }
      return {
        connect: (node) => store.open(node),
        lose: () => void all('DELETE FROM kept RETURNING name'),
        leftovers: () => {
          const now = Date.now()
          return all(`SELECT name, until FROM kept WHERE name NOT LIKE '["generation",%' AND until > ${now + 200_000}`).map(({ name }) =>
            String(name),
          )
        },
        close: () => rmSync(directory, { recursive: true, force: true }),
      }
    },
    {
      describe,
      test,
      without: {
        goAway: 'a file is always there',
        announcements: 'SQLite has none',
        statuses: 'left out here',
        rules: 'left out here',
        leases: 'left out here',
        decisions: 'left out here',
        audit: 'left out here',
      },
    },
  )
} else test.skip(`a store in SQLite (Node.js ${process.versions.node} has no node:sqlite)`)
