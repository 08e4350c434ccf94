/** The most texts about rules that are stored and returned, and how long they are stored, in milliseconds. */
const MOST_RULES = 64
const RULES_KEPT = 60_000
/** The most statuses in one reply: more processes than any cluster has. */
const MOST_STATUSES = 4096
/** The most keys near their limit that a starting process receives. */
const MOST_HOT = 10_000
/** The most changed blocks in one reply. */
export const PAGE = 5_000

/** The heartbeat of a process. The sync writes its part of `meta` first, before it locks anything else. */
export const HEARTBEAT: string = `CREATE OR REPLACE FUNCTION @.beat_1(
  me text, shown float8, t float8, beat jsonb,
  p_id text[], p_width float8[], p_cells int[], p_limit float8[], p_hot float8[], p_ttl float8[], p_drain float8[], p_debt float8[]
) RETURNS json LANGUAGE plpgsql AS $body$
DECLARE
  m @.meta;
  ids text[] := ARRAY(SELECT jsonb_array_elements_text(beat->'policies'));
  since bigint := (beat->>'cursor')::bigint;
  upto bigint;
  changed json; hot json; statuses json; others json; news json; amount int;
BEGIN
  UPDATE @.nodes SET live_until = t + (beat->>'ttl')::float8, status = coalesce(beat->>'status', status),
    status_at = CASE WHEN beat ? 'status' THEN t ELSE status_at END
  WHERE node = me;
  SELECT * INTO m FROM @.meta WHERE id = 1;
  SELECT json_agg(json_build_array(p, k, left_of, manual, e) ORDER BY v), max(v), count(*) INTO changed, upto, amount FROM (
    SELECT policy AS p, coalesce(label, key) AS k, greatest(0, ends - t) AS left_of, ends > t AND manual AS manual,
      CASE WHEN epoch_until > t THEN epoch ELSE 0 END AS e, version AS v
    FROM @.blocks
    WHERE version > coalesce(since, -1) AND version <= coalesce(m.version, 0) AND policy = ANY (ids) AND (since IS NOT NULL OR ends > t OR epoch_until > t)
    ORDER BY version LIMIT ${PAGE}
  ) b;
  IF beat ? 'starts' THEN
    -- Keys near their limit, without counts from before a reset.
    SELECT json_agg(h.found) INTO hot FROM (
      (SELECT json_build_array(c.policy, coalesce(c.label, c.key), json_build_array(json_build_array(ordinal, taken, given)), coalesce(b.epoch, 0)) AS found
        FROM unnest(p_id, p_width, p_cells, p_drain) p(id, width, cells, drain) JOIN @.cells c ON c.policy = p.id AND c.ordinal >= floor(t / p.width)
        LEFT JOIN @.blocks b ON b.policy = c.policy AND b.key = c.key AND b.epoch_until > t AND c.ordinal <= floor(b.epoch / p.width) + 1
        WHERE p.id = ANY (ids) AND p.cells = 1 AND p.drain IS NULL AND c.hot AND c.epoch >= coalesce(b.epoch, 0) LIMIT ${MOST_HOT})
      UNION ALL
      (SELECT json_build_array(w.policy, coalesce(w.label, w.key), s.cells, CASE WHEN (s.cells->0->>0)::bigint <= floor(b.epoch / p.width) + 1 THEN b.epoch ELSE 0 END)
        FROM unnest(p_id, p_width, p_cells) p(id, width, cells) JOIN @.windows w ON w.policy = p.id AND w.hot_until > t
        LEFT JOIN @.blocks b ON b.policy = w.policy AND b.key = w.key AND b.epoch_until > t
        CROSS JOIN LATERAL (SELECT json_agg(json_build_array(ordinal, taken, given) ORDER BY ordinal) AS cells FROM @.cells c
          WHERE c.policy = w.policy AND c.key = w.key AND ordinal > floor(t / p.width) - p.cells AND ordinal <= floor(t / p.width)
            AND c.epoch >= w.epoch AND (taken > 0 OR given > 0)) s
        WHERE p.id = ANY (ids) AND w.epoch >= coalesce(b.epoch, 0) AND s.cells IS NOT NULL LIMIT ${MOST_HOT})
      UNION ALL
      (SELECT json_build_array(b.policy, coalesce(b.label, b.key), l.cell, CASE WHEN (l.cell->>0)::bigint <= floor(x.epoch / p.width) + 1 THEN x.epoch ELSE 0 END, true)
        FROM unnest(p_id, p_width, p_cells, p_limit, p_hot, p_ttl, p_drain, p_debt) p(id, width, cells, "limit", hot, ttl, drain, debt)
        JOIN @.buckets b ON b.policy = p.id AND b.hot AND b.expires > t
        LEFT JOIN @.blocks x ON x.policy = b.policy AND x.key = b.key AND x.epoch_until > t
        CROSS JOIN LATERAL @.bucket_1(me, t, p.id, p.width, p.cells, p."limit", p.hot, p.ttl, p.drain, p.debt, b.key, b.label, '[]', b.epoch) l
        WHERE p.id = ANY (ids) AND p.drain IS NOT NULL AND b.epoch >= coalesce(x.epoch, 0) AND (l.cell->>3)::float8 >= p.hot / 2 LIMIT ${MOST_HOT})
    ) h;
  END IF;
  IF beat ? 'leases' THEN
    SELECT json_agg(json_build_array(l.policy, coalesce(l.label, l.key), l.ordinal, greatest(0, l.most - l.held), l.tail, l.lost)) INTO news FROM (
      SELECT l.*, p.most FROM unnest(p_id, p_limit) p(id, most) JOIN @.leases l ON l.policy = p.id
      WHERE p.id = ANY (ids) AND l.news_until > t LIMIT ${MOST_HOT}
    ) l;
  END IF;
  IF beat ? 'watch' THEN
    SELECT json_agg(json_build_array(node, greatest(0, t - status_at), status)) INTO statuses FROM (
      SELECT node, status_at, status FROM @.nodes WHERE live_until > t AND status IS NOT NULL LIMIT ${MOST_STATUSES}
    ) s;
  END IF;
  IF beat ? 'rules' THEN
    SELECT json_agg(json_build_array(r.node, r.rules)), count(*) INTO others, amount FROM (
      SELECT node, rules FROM @.rules WHERE expires > t AND rules <> beat->>'rules' LIMIT ${MOST_RULES - 1}
    ) r;
    IF amount < ${MOST_RULES - 1} THEN
      INSERT INTO @.rules AS r (hash, rules, node, expires) VALUES (md5(beat->>'rules'), beat->>'rules', me, t + ${RULES_KEPT})
      ON CONFLICT (hash) DO UPDATE SET rules = excluded.rules, node = excluded.node, expires = excluded.expires;
    END IF;
  END IF;
  RETURN json_build_object('nodes', (SELECT count(*) FROM @.nodes WHERE live_until > t),
    'cursor', CASE WHEN json_array_length(changed) = ${PAGE} THEN upto ELSE coalesce(m.version, 0) END, 'more', json_array_length(changed) = ${PAGE},
    'blocks', changed, 'hot', hot, 'watched', coalesce(m.watched_until, 0) > t,
    'ahead', CASE WHEN m.ahead_until > shown THEN m.ahead END, 'statuses', statuses, 'rules', others, 'leases', news);
END
$body$;
`
