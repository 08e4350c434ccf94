/** The names of all tables. */
export const TABLES: readonly string[] = ['nodes', 'meta', 'rules', 'blocks', 'cells', 'windows', 'buckets', 'leases', 'states', 'audit']

/**
 * The tables. Times are milliseconds since the Unix epoch, by the time that the processes use. `key` identifies a row, and `label` is the
 * whole key if that is longer. Process ids, policies and keys are printable ASCII.
 */
export function tables(unlogged: boolean): string {
  const table = unlogged ? 'CREATE UNLOGGED TABLE IF NOT EXISTS' : 'CREATE TABLE IF NOT EXISTS'
  const key = `policy text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,`
  return `-- Processes, each with the number of its last sync, by which it notices that data was lost.
${table} @.nodes (
  node text COLLATE "C" PRIMARY KEY,
  sequence bigint NOT NULL,
  before bigint NOT NULL DEFAULT 0,
  live_until float8 NOT NULL DEFAULT 0,
  status text,
  status_at float8,
  expires float8 NOT NULL
) WITH (fillfactor = 50);

-- One row: the version of the list of blocks, and values for all processes. A call that changes blocks locks it first.
${table} @.meta (
  id int PRIMARY KEY,
  version bigint NOT NULL,
  ahead float8 NOT NULL DEFAULT 0,
  ahead_until float8 NOT NULL DEFAULT 0,
  watched_until float8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The rules of the processes, each text once.
${table} @.rules (
  hash text COLLATE "C" PRIMARY KEY,
  rules text NOT NULL,
  node text NOT NULL,
  expires float8 NOT NULL
);

-- Blocks and resets of keys.
${table} @.blocks (
  ${key}
  label text,
  ends float8 NOT NULL,
  keep float8 NOT NULL,
  version bigint NOT NULL,
  manual boolean NOT NULL,
  epoch float8 NOT NULL,
  epoch_until float8 NOT NULL,
  offences int NOT NULL,
  offences_until float8 NOT NULL,
  expires float8 NOT NULL,
  PRIMARY KEY (policy, key)
);
CREATE INDEX IF NOT EXISTS blocks_version ON @.blocks (version);
CREATE INDEX IF NOT EXISTS blocks_expires ON @.blocks (expires);

-- Units of one cell (an interval, or a part of a sliding window): the sums, the sums before the last write, and [taken, given] of each process.
${table} @.cells (
  ${key}
  ordinal bigint NOT NULL,
  label text,
  taken float8 NOT NULL,
  given float8 NOT NULL,
  had_taken float8 NOT NULL DEFAULT 0,
  had_given float8 NOT NULL DEFAULT 0,
  nodes jsonb NOT NULL,
  epoch float8 NOT NULL,
  hot boolean NOT NULL DEFAULT false,
  expires float8 NOT NULL,
  PRIMARY KEY (policy, key, ordinal)
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS cells_expires ON @.cells (expires);
CREATE INDEX IF NOT EXISTS cells_hot ON @.cells (policy, ordinal) WHERE hot;

-- Sliding windows: the time of the last announcement, and until when the key is near its limit.
${table} @.windows (
  ${key}
  label text,
  announced_at float8 NOT NULL DEFAULT 0,
  hot_until float8 NOT NULL DEFAULT 0,
  epoch float8 NOT NULL,
  expires float8 NOT NULL,
  PRIMARY KEY (policy, key)
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS windows_expires ON @.windows (expires);
CREATE INDEX IF NOT EXISTS windows_hot ON @.windows (hot_until) WHERE hot_until > 0;

-- Buckets: the level at a cell, the units of later cells in groups, and [taken, given, rejected] of each process and cell.
${table} @.buckets (
  ${key}
  label text,
  base_ordinal bigint,
  base_level float8 NOT NULL DEFAULT 0,
  floor_ordinal bigint,
  floor_level float8,
  group_ordinals bigint[] NOT NULL DEFAULT '{}',
  group_taken float8[] NOT NULL DEFAULT '{}',
  group_given float8[] NOT NULL DEFAULT '{}',
  nodes jsonb NOT NULL DEFAULT '{}',
  taken float8 NOT NULL DEFAULT 0,
  given float8 NOT NULL DEFAULT 0,
  rejected float8 NOT NULL DEFAULT 0,
  written_in bigint,
  held_until bigint,
  announced_at float8 NOT NULL DEFAULT 0,
  hot boolean NOT NULL DEFAULT false,
  epoch float8 NOT NULL DEFAULT 0,
  expires float8 NOT NULL,
  PRIMARY KEY (policy, key)
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS buckets_expires ON @.buckets (expires);
CREATE INDEX IF NOT EXISTS buckets_hot ON @.buckets (policy) WHERE hot;

-- Quota that processes have taken ahead of a key's limit in one interval: "held" is the sum, and for each process and incarnation [granted,
-- returned, taken, given, cleared, number of the last ask, until when, units returned and charged at the end of reservations, and then (when, back)
-- of each open reservation].
${table} @.leases (
  ${key}
  ordinal bigint NOT NULL,
  label text,
  held float8 NOT NULL DEFAULT 0,
  used float8 NOT NULL DEFAULT 0,
  tail boolean NOT NULL DEFAULT false,
  quiet_until float8 NOT NULL DEFAULT 0,
  epoch float8 NOT NULL DEFAULT 0,
  earliest float8,
  rows jsonb NOT NULL DEFAULT '{}',
  news_until float8 NOT NULL DEFAULT 0,
  lost boolean NOT NULL DEFAULT false,
  expires float8 NOT NULL,
  PRIMARY KEY (policy, key, ordinal)
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS leases_expires ON @.leases (expires);
CREATE INDEX IF NOT EXISTS leases_news ON @.leases (news_until) WHERE news_until > 0;

-- States of keys of policies with coordination 'central': the numbers of the algorithm, and the last request of each process that changed them.
${table} @.states (
  ${key}
  version bigint NOT NULL,
  state float8[] NOT NULL DEFAULT '{}',
  sequences jsonb NOT NULL DEFAULT '{}',
  expires float8 NOT NULL,
  PRIMARY KEY (policy, key)
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS states_expires ON @.states (expires);

-- The newest manual actions. Always logged, because no process can send them again.
CREATE TABLE IF NOT EXISTS @.audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  entry text NOT NULL,
  expires float8 NOT NULL
);
`
}
