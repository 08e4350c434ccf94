/** The most processes whose last requests a key keeps. At this number, the next change replaces all of them. */
const MOST_NODES = 256

/**
 * The function that decides requests of policies with coordination 'central'. The algorithm's step runs in the process, on the numbers that
 * it last received. The function replaces them if they haven't changed. The reply contains the current numbers of each key, so that a
 * process that was late needs no further query.
 */
export const DECIDE: string = `-- "versions" are the versions that the process has received of the keys. "writes" has for each key null,
-- or the new numbers, their lifetime, and the numbers of the process's last requests, by lane (nothing for a reset). Keys are sorted, and
-- each comes once. With "together" all are written or none. Otherwise each is written separately.
CREATE OR REPLACE FUNCTION @.decide_1(me text, policies text[], keys text[], versions bigint[], writes jsonb, together boolean) RETURNS json LANGUAGE plpgsql
SET lock_timeout = '900ms' SET enable_seqscan = off SET jit = off AS $body$
DECLARE
  t float8 := extract(epoch FROM clock_timestamp()) * 1000;
  s @.states;
  held @.states[] := '{}';
  same boolean[] := '{}';
  all_same boolean := true;
  one jsonb;
  told json[] := '{}';
BEGIN
  FOR i IN 1 .. cardinality(keys) LOOP
    one := writes->(i - 1);
    IF one = 'null' THEN
      SELECT * INTO s FROM @.states WHERE policy = policies[i] AND key = keys[i];
    ELSE
      SELECT * INTO s FROM @.states WHERE policy = policies[i] AND key = keys[i] FOR UPDATE;
      IF NOT FOUND AND versions[i] = 0 THEN
        INSERT INTO @.states (policy, key, version, expires) VALUES (policies[i], keys[i], 0, t) ON CONFLICT (policy, key) DO NOTHING;
        SELECT * INTO s FROM @.states WHERE policy = policies[i] AND key = keys[i] FOR UPDATE;
      END IF;
    END IF;
    IF s.key IS NULL THEN s := ROW(policies[i], keys[i], 0, '{}'::float8[], '{}'::jsonb, t); END IF;
    held := held || s;
    same := same || (s.version = versions[i]);
    all_same := all_same AND s.version = versions[i];
  END LOOP;
  FOR i IN 1 .. cardinality(keys) LOOP
    one := writes->(i - 1);
    s := held[i];
    IF s.expires <= t THEN
      s.state := '{}';
      s.sequences := '{}';
    END IF;
    IF one <> 'null' AND same[i] AND (all_same OR NOT together) THEN
      -- Versions follow the clock, so that none repeats after its row was removed.
      s.version := greatest(s.version + 1, floor(t * 1000));
      s.state := (one->>0)::float8[];
      s.sequences := CASE WHEN one->2 IS NULL THEN '{}' WHEN (SELECT count(*) FROM jsonb_object_keys(s.sequences)) >= ${MOST_NODES} THEN jsonb_build_object(me, one->2)
        ELSE s.sequences || jsonb_build_object(me, one->2) END;
      -- Rounded up, so that only few writes change it.
      UPDATE @.states SET version = s.version, state = s.state, sequences = s.sequences, expires = ceil((t + (one->>1)::float8) / 60000) * 60000
      WHERE policy = policies[i] AND key = keys[i];
    END IF;
    told := told || json_build_array(same[i] AND (all_same OR NOT together), s.version, s.state, coalesce(s.sequences->me, '[]'));
  END LOOP;
  IF random() < 0.125 THEN
    DELETE FROM @.states WHERE ctid = ANY (ARRAY(SELECT ctid FROM @.states WHERE expires <= t ORDER BY expires LIMIT 200 FOR UPDATE SKIP LOCKED));
  END IF;
  RETURN json_build_object('t', t, 'keys', array_to_json(told));
END
$body$;
`
