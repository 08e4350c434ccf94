import { RESET_CELLS } from '@weir/core/sync'

/**
 * One sync, in one call. It takes all locks in one order, so that syncs of many processes never wait in a circle: `meta`, then windows,
 * cells, buckets and leases, each by policy, key and ordinal. The rows are sent in this order, without duplicates.
 *
 *     request  node, sequence, kept (milliseconds until the process may be forgotten), now (the processes' time or nothing), channel (or
 *              nothing), blocks, asks, buckets (cells of each row of b_), leases, beat
 *     p_       policies
 *     x_       cells that are written: of fixed and of sliding windows. x_window: the index of its window in w_, or 0
 *     y_       cells of fixed windows that are only read
 *     w_       sliding windows. w_writes: whether any of its cells is written
 *     b_       buckets
 *     e_       keys without any cell, of which only blocks are read
 *     _epoch   the key's last reset that the process has received, or 0
 *     _first   the first cell that the process sent of the key
 *
 * Reply, JSON: time, before (the number of the process's previous sync), tables (changes if one was emptied), block changes; for each x, y,
 * w, b and e the remaining time of the key's block (absent: 0 for all), manual blocks, newer resets; totals.
 */
export const EXCHANGE: string = `CREATE OR REPLACE FUNCTION @.exchange_1(
  request jsonb,
  p_id text[], p_width float8[], p_cells int[], p_limit float8[], p_hot float8[], p_ttl float8[], p_drain float8[], p_debt float8[],
  x_policy int[], x_key text[], x_label text[], x_ordinal bigint[], x_taken float8[], x_given float8[], x_epoch float8[], x_first bigint[], x_window int[],
  y_policy int[], y_key text[], y_ordinal bigint[], y_epoch float8[], y_first bigint[],
  w_policy int[], w_key text[], w_label text[], w_newest bigint[], w_epoch float8[], w_first bigint[], w_writes boolean[],
  b_policy int[], b_key text[], b_label text[], b_epoch float8[], b_first bigint[],
  e_policy int[], e_key text[], e_epoch float8[]
) RETURNS json LANGUAGE plpgsql
SET lock_timeout = '900ms' SET enable_seqscan = off SET enable_nestloop = off SET enable_mergejoin = off SET jit = off AS $body$
DECLARE
  me text := request->>'node';
  channel text := request->>'channel';
  shown float8 := extract(epoch FROM clock_timestamp()) * 1000;
  t float8;
  seq bigint := (request->>'sequence')::bigint;
  seq_before bigint;
  beat jsonb := request->'beat';
  m @.meta;
  now_given boolean := request ? 'now';
  stepped boolean;
  first_version bigint;
  news text[] := '{}';
  one record;
  changed record;
  left_of_blocks float8[] := '{}';
  x_known json; y_known json; w_known json; b_known json; e_known json;
  x_now float8[]; x_newer boolean[]; w_now float8[]; w_newer boolean[]; y_now float8[]; b_now float8[]; b_newer boolean[];
  r_taken float8[]; r_given float8[]; h_taken float8[]; h_given float8[]; r_hot boolean[];
  v_announced float8[]; v_hot float8[]; v_fresh boolean[];
  w_end bigint[]; w_net float8[]; w_grown float8[]; w_units float8[]; w_opened boolean[];
  w_text json[]; y_taken float8[]; y_given float8[]; b_text json[] := '{}'; l_text json[] := '{}';
  announced boolean; became boolean; span float8;
  beaten json;
BEGIN
  SELECT * INTO m FROM @.meta WHERE id = 1;
  t := CASE WHEN now_given THEN (request->>'now')::float8 ELSE shown + CASE WHEN m.ahead_until > shown THEN m.ahead ELSE 0 END END;

  INSERT INTO @.nodes AS n (node, sequence, expires) VALUES (me, seq, t + (request->>'kept')::float8)
  ON CONFLICT (node) DO UPDATE SET before = n.sequence, sequence = greatest(n.sequence, excluded.sequence), expires = excluded.expires
  RETURNING n.before INTO seq_before;

  stepped := beat IS NOT NULL AND now_given AND (abs(t - shown) > 1000 OR coalesce(m.ahead_until > shown, false));
  IF request ? 'blocks' OR stepped OR beat ? 'watch' THEN
    -- The version follows the clock, so that cursors from before a loss are older than all later versions.
    INSERT INTO @.meta AS one (id, version) VALUES (1, floor(shown)) ON CONFLICT (id) DO UPDATE SET id = 1 RETURNING * INTO m;
    first_version := m.version;
    FOR one IN SELECT * FROM jsonb_to_recordset(request->'blocks')
      AS (p int, k text, l text, kind text, remaining float8, epoch float8, manual boolean, factor float8, max float8, memory float8, told boolean)
    LOOP
      SELECT * INTO changed FROM @.block_1(t, p_id[one.p], p_width[one.p], p_cells[one.p], p_ttl[one.p], one.k, one.l, one.kind, one.remaining,
        coalesce(one.epoch, 0), coalesce(one.manual, false), one.factor, one.max, one.memory, m.version + 1);
      IF changed.news IS NOT NULL THEN
        m.version := m.version + 1;
        news := news || changed.news;
      END IF;
      IF one.told THEN left_of_blocks := left_of_blocks || changed.remaining; END IF;
    END LOOP;
    IF stepped THEN
      m.ahead := t - shown;
      m.ahead_until := CASE WHEN abs(t - shown) > 1000 THEN shown + (beat->>'ttl')::float8 ELSE 0 END;
    END IF;
    IF beat ? 'watch' THEN m.watched_until := t + 10000; END IF;
    UPDATE @.meta SET version = m.version, ahead = m.ahead, ahead_until = m.ahead_until, watched_until = m.watched_until WHERE id = 1;
  END IF;

  -- Blocks and resets of the keys. Usually there are none.
  IF EXISTS (SELECT 1 FROM @.blocks) THEN
    SELECT * INTO x_now, x_newer, x_known FROM @.known_1(t, p_id, p_width, x_policy, x_key, x_epoch, x_first);
    SELECT * INTO w_now, w_newer, w_known FROM @.known_1(t, p_id, p_width, w_policy, w_key, w_epoch, w_first);
    SELECT * INTO b_now, b_newer, b_known FROM @.known_1(t, p_id, p_width, b_policy, b_key, b_epoch, b_first);
    SELECT k.epochs, k.told INTO y_now, y_known FROM @.known_1(t, p_id, p_width, y_policy, y_key, y_epoch, y_first) k;
    SELECT k.told INTO e_known FROM @.known_1(t, p_id, p_width, e_policy, e_key, e_epoch, array_fill(NULL::bigint, ARRAY[cardinality(e_policy)])) k;
  END IF;

  IF cardinality(w_policy) > 0 THEN
    WITH locked AS (
      INSERT INTO @.windows AS w (policy, key, label, epoch, expires)
      SELECT p_id[p], k, l, coalesce(x_epoch_of, 0), ceil((t + p_ttl[p] + 2 * p_width[p] * p_cells[p]) / (p_width[p] * p_cells[p])) * p_width[p] * p_cells[p]
      FROM unnest(w_policy, w_key, w_label, w_writes, coalesce(w_now, w_epoch)) WITH ORDINALITY x(p, k, l, writes, x_epoch_of, i)
      WHERE writes ORDER BY i
      ON CONFLICT (policy, key) DO UPDATE SET
        announced_at = CASE WHEN w.epoch < excluded.epoch THEN 0 ELSE w.announced_at END,
        hot_until = CASE WHEN w.epoch < excluded.epoch THEN 0 ELSE w.hot_until END,
        epoch = greatest(w.epoch, excluded.epoch), expires = greatest(w.expires, excluded.expires)
      RETURNING w.announced_at, w.hot_until
    ) SELECT array_agg(announced_at), array_agg(hot_until) INTO v_announced, v_hot FROM locked;
  END IF;

  IF cardinality(x_policy) > 0 THEN
    WITH written AS (
      INSERT INTO @.cells AS c (policy, key, ordinal, label, taken, given, nodes, epoch, expires)
      SELECT p_id[p], k, o, l, CASE WHEN newer THEN 0 ELSE taken END, CASE WHEN newer THEN 0 ELSE given END,
        CASE WHEN newer THEN '{}' ELSE jsonb_build_object(me, jsonb_build_array(taken, given)) END,
        CASE WHEN @.concerns_1(epoch, p_width[p], p_cells[p], o) THEN epoch ELSE 0 END,
        -- Counts from the cell's end, or from now if it is not the running one (late counts, a wrong clock).
        p_ttl[p] + CASE WHEN (o + 1) * p_width[p] > t AND (o + 1) * p_width[p] <= t + p_width[p] THEN (o + 1) * p_width[p] ELSE t + p_width[p] END
      FROM unnest(x_policy, x_key, x_label, x_ordinal, x_taken, x_given, coalesce(x_now, x_epoch), x_newer)
        WITH ORDINALITY x(p, k, l, o, taken, given, epoch, newer, i)
      ORDER BY i
      ON CONFLICT (policy, key, ordinal) DO UPDATE SET
        had_taken = CASE WHEN c.epoch < excluded.epoch THEN 0 ELSE c.taken END,
        had_given = CASE WHEN c.epoch < excluded.epoch THEN 0 ELSE c.given END,
        taken = CASE WHEN c.epoch < excluded.epoch THEN excluded.taken
          ELSE c.taken + greatest(0, excluded.taken - coalesce((c.nodes->me->>0)::float8, 0)) END,
        given = CASE WHEN c.epoch < excluded.epoch THEN excluded.given
          ELSE c.given + greatest(0, excluded.given - coalesce((c.nodes->me->>1)::float8, 0)) END,
        nodes = CASE WHEN c.epoch < excluded.epoch THEN excluded.nodes WHEN excluded.nodes = '{}' THEN c.nodes
          ELSE c.nodes || jsonb_build_object(me, jsonb_build_array(
            greatest(excluded.taken, coalesce((c.nodes->me->>0)::float8, 0)), greatest(excluded.given, coalesce((c.nodes->me->>1)::float8, 0)))) END,
        hot = c.hot AND c.epoch >= excluded.epoch,
        epoch = greatest(c.epoch, excluded.epoch), expires = greatest(c.expires, excluded.expires)
      RETURNING c.taken, c.given, c.had_taken, c.had_given, c.hot
    ) SELECT array_agg(taken), array_agg(given), array_agg(had_taken), array_agg(had_given), array_agg(hot)
      INTO r_taken, r_given, h_taken, h_given, r_hot FROM written;

    -- Fixed windows: keys that passed a mark, or have grown by much at once (see store/shapes/window.ts of core).
    FOR one IN
      SELECT x.*, x.taken - x.given AS net, x.had_t - x.had_g AS had, (x.o + 1) * p_width[x.p] > t AS runs, p_limit[x.p] AS most, p_hot[x.p] AS mark
      FROM unnest(x_policy, x_key, x_label, x_ordinal, x_window, r_taken, r_given, h_taken, h_given, r_hot, x_epoch)
        AS x(p, k, l, o, w, taken, given, had_t, had_g, hot, known)
      WHERE x.w = 0 AND x.taken - x.given >= least(p_limit[x.p], p_hot[x.p])
    LOOP
      announced := one.had < one.most AND one.net >= one.most
        OR one.net >= one.mark AND one.net - one.had >= greatest(2, one.most / 20) AND one.runs;
      IF one.had < one.mark AND one.net >= one.mark AND one.runs AND NOT one.hot THEN
        UPDATE @.cells SET hot = true WHERE policy = p_id[one.p] AND key = one.k AND ordinal = one.o;
        announced := true;
      END IF;
      IF announced THEN
        news := news || json_build_array('t', p_id[one.p], coalesce(one.l, one.k), json_build_array(json_build_array(one.o, one.taken, one.given)),
          one.known)::text;
      END IF;
    END LOOP;
  END IF;

  IF cardinality(y_policy) > 0 THEN
    SELECT array_agg(coalesce(c.taken, 0) ORDER BY y.i), array_agg(coalesce(c.given, 0) ORDER BY y.i) INTO y_taken, y_given
    FROM unnest(y_policy, y_key, y_ordinal, coalesce(y_now, y_epoch)) WITH ORDINALITY y(p, k, o, epoch, i)
    LEFT JOIN LATERAL (
      SELECT taken, given FROM @.cells WHERE policy = p_id[y.p] AND key = y.k AND ordinal = y.o
        AND (cells.epoch >= y.epoch OR NOT @.concerns_1(y.epoch, p_width[y.p], p_cells[y.p], y.o)) LIMIT 1
    ) c ON true;
  END IF;

  IF cardinality(w_policy) > 0 THEN
    -- Cells beyond both the process's newest and the store's own time come from a wrong clock, and no process receives them. The window ends
    -- with the newest visible cell, so that late counts of an older one meet it too.
    SELECT array_agg(greatest(w.newest, top.o) ORDER BY w.i), array_agg(coalesce(s.net, 0) ORDER BY w.i), array_agg(coalesce(s.cells, '[]') ORDER BY w.i)
    INTO w_end, w_net, w_text
    FROM unnest(w_policy, w_key, w_newest, coalesce(w_now, w_epoch)) WITH ORDINALITY w(p, k, newest, epoch, i)
    LEFT JOIN LATERAL (
      SELECT max(ordinal) AS o FROM @.cells
      WHERE policy = p_id[w.p] AND key = w.k AND ordinal <= greatest(w.newest, floor(t / p_width[w.p])::bigint)
        AND ordinal > w.newest AND cells.epoch >= w.epoch
    ) top ON true
    LEFT JOIN LATERAL (
      SELECT sum(taken - given) FILTER (WHERE ordinal > greatest(w.newest, top.o) - p_cells[w.p] AND ordinal <= greatest(w.newest, top.o)) AS net,
        json_agg(json_build_array(ordinal, taken, given) ORDER BY ordinal) AS cells
      FROM @.cells
      WHERE policy = p_id[w.p] AND key = w.k AND ordinal > w.newest - p_cells[w.p] AND ordinal <= greatest(w.newest, floor(t / p_width[w.p])::bigint)
        AND cells.epoch >= w.epoch AND (taken > 0 OR given > 0)
    ) s ON true;
    IF v_announced IS NOT NULL THEN
      SELECT array_agg(coalesce(g.grown, 0) ORDER BY i), array_agg(coalesce(g.units, 0) ORDER BY i), array_agg(coalesce(g.opened, false) ORDER BY i)
      INTO w_grown, w_units, w_opened
      FROM generate_series(1, cardinality(w_policy)) i
      LEFT JOIN (
        SELECT x.w, sum(taken - had_t - given + had_g) FILTER (WHERE x.o > w_end[x.w] - p_cells[x.p]) AS grown, sum(taken - had_t) AS units,
          bool_or(had_t = 0 AND had_g = 0) AS opened
        FROM unnest(x_policy, x_ordinal, x_window, r_taken, r_given, h_taken, h_given) AS x(p, o, w, taken, given, had_t, had_g)
        WHERE x.w > 0 GROUP BY x.w
      ) g ON g.w = i;
      FOR one IN
        SELECT w.*, w.net - w.grown AS had, p_limit[w.p] AS most, p_hot[w.p] AS mark, p_width[w.p] * p_cells[w.p] AS span,
          (sum(w.writes::int) OVER (ORDER BY w.i))::int AS v
        FROM unnest(w_policy, w_key, w_label, w_writes, w_net, w_grown, w_units, w_opened, w_epoch)
          WITH ORDINALITY w(p, k, l, writes, net, grown, units, opened, known, i)
      LOOP
        -- See store/shapes/sliding.ts of core.
        CONTINUE WHEN NOT one.writes OR one.units <= 0 OR one.net < least(0.98 * one.most, one.mark);
        announced := one.had < 0.98 * one.most AND one.net >= 0.98 * one.most OR one.net >= one.mark AND one.units >= greatest(2, one.most / 20)
          OR one.net >= one.most AND (one.had < one.most OR t - v_announced[one.v] NOT BETWEEN 0 AND 10);
        became := one.net >= one.mark AND (one.had < one.mark OR one.opened) AND v_hot[one.v] <= t + one.span;
        CONTINUE WHEN NOT (announced OR became);
        UPDATE @.windows SET hot_until = CASE WHEN became THEN t + 2 * one.span ELSE hot_until END,
          announced_at = CASE WHEN one.net >= one.most THEN t ELSE announced_at END
        WHERE policy = p_id[one.p] AND key = one.k;
        news := news || json_build_array('t', p_id[one.p], coalesce(one.l, one.k), w_text[one.i], one.known)::text;
      END LOOP;
    END IF;
  END IF;

  FOR one IN
    SELECT b.* FROM unnest(b_policy, b_key, b_label, coalesce(b_now, b_epoch), b_newer, b_epoch) WITH ORDINALITY b(p, k, l, epoch, newer, known, i) ORDER BY i
  LOOP
    SELECT * INTO changed FROM @.bucket_1(me, t, p_id[one.p], p_width[one.p], p_cells[one.p], p_limit[one.p], p_hot[one.p], p_ttl[one.p], p_drain[one.p],
      p_debt[one.p], one.k, one.l, CASE WHEN one.newer THEN '[]' ELSE request->'buckets'->(one.i::int - 1) END, one.epoch);
    b_text := b_text || changed.cell;
    IF changed.announces THEN
      news := news || json_build_array('u', p_id[one.p], coalesce(one.l, one.k), changed.cell, one.known)::text;
    END IF;
  END LOOP;

  FOR one IN SELECT * FROM jsonb_to_recordset(request->'leases') AS (p int, k text, l text, ask jsonb) LOOP
    SELECT * INTO changed FROM @.grant_1(me, t, p_id[one.p], p_width[one.p], one.k, one.l, one.ask);
    l_text := l_text || changed.reply;
    IF changed.news IS NOT NULL THEN news := news || changed.news; END IF;
  END LOOP;

  IF beat IS NOT NULL THEN
    beaten := @.beat_1(me, shown, t, beat, p_id, p_width, p_cells, p_limit, p_hot, p_ttl, p_drain, p_debt);
  END IF;
  IF beat IS NOT NULL OR random() < 0.125 THEN
    PERFORM @.clean_1(t, 16 * (cardinality(x_policy) + cardinality(w_policy) + cardinality(b_policy)) + 200);
  END IF;
  IF channel IS NOT NULL THEN
    PERFORM @.tell_1(channel, me, news || ARRAY(SELECT jsonb_array_elements(request->'asks')::text));
  END IF;
  RETURN json_build_object('t', shown, 'before', seq_before,
    'tables', (SELECT string_agg(pg_relation_filenode(c)::text, ' ')
      FROM unnest(ARRAY['@.nodes', '@.meta', '@.blocks', '@.cells', '@.windows', '@.buckets', '@.leases']::regclass[]) c),
    'blocks', left_of_blocks, 'x', x_known, 'y', y_known, 'w', w_known, 'b', b_known, 'e', e_known,
    'xt', r_taken, 'xg', r_given, 'yt', y_taken, 'yg', y_given, 'wc', w_text, 'bc', b_text, 'l', l_text, 'beat', beaten);
END
$body$;
`

/** Functions for the blocks and resets of keys, for announcements, and for the removal of old data. */
export const HELPERS: string = `-- Whether a reset applies to a cell: to all of a sliding window. For fixed windows, to the cells up to the one
-- after its moment that may still count.
CREATE OR REPLACE FUNCTION @.concerns_1(epoch float8, width float8, cells int, ordinal bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $body$
  SELECT cells > 1 OR ordinal <= floor(epoch / width) + 1 AND ordinal > floor(epoch / width) + 1 - ${RESET_CELLS}
$body$;

-- For keys in their order: the reset after which counts count, and whether the sender has not received it. "told": the remaining times of blocks,
-- manual blocks, and resets that the sender has not received.
CREATE OR REPLACE FUNCTION @.known_1(
  t float8, p_id text[], p_width float8[], policies int[], keys text[], known float8[], firsts bigint[],
  OUT epochs float8[], OUT newer boolean[], OUT told json
) LANGUAGE sql AS $body$
  SELECT array_agg(now.epoch ORDER BY x.i), array_agg(now.newer ORDER BY x.i), json_build_object(
    'left', array_agg(CASE WHEN b.ends > t THEN b.ends - t ELSE 0 END ORDER BY x.i),
    'manual', array_agg(x.i ORDER BY x.i) FILTER (WHERE b.ends > t AND b.manual),
    'newer', json_object_agg(x.i, now.epoch) FILTER (WHERE now.newer))
  FROM unnest(policies, keys, known, firsts) WITH ORDINALITY x(p, k, known, first, i)
  LEFT JOIN LATERAL (SELECT ends, manual, epoch, epoch_until FROM @.blocks WHERE policy = p_id[x.p] AND key = x.k LIMIT 1) b ON true
  CROSS JOIN LATERAL (SELECT CASE WHEN b.epoch_until > t THEN b.epoch ELSE 0 END AS epoch OFFSET 0) r
  -- A reset applies to cells up to the one after its moment.
  CROSS JOIN LATERAL (
    SELECT greatest(r.epoch, x.known) AS epoch, r.epoch > x.known AND (x.first IS NULL OR x.first <= floor(r.epoch / p_width[x.p]) + 1) AS newer OFFSET 0
  ) now
$body$;

-- Announces in as few messages as their length allows. News that fit into no message are not announced.
CREATE OR REPLACE FUNCTION @.tell_1(channel text, me text, news text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  begun text := '[' || to_json(me)::text;
  message text := begun;
  one text;
BEGIN
  FOREACH one IN ARRAY news LOOP
    CONTINUE WHEN length(begun) + length(one) > 7990;
    IF length(message) + length(one) > 7990 THEN
      PERFORM pg_notify(channel, message || ']');
      message := begun;
    END IF;
    message := message || ',' || one;
  END LOOP;
  IF message <> begun THEN PERFORM pg_notify(channel, message || ']'); END IF;
END
$body$;

-- Removes expired rows, some of each kind, and never a row that another call has locked.
CREATE OR REPLACE FUNCTION @.clean_1(t float8, most int) RETURNS void LANGUAGE sql AS $body$
  DELETE FROM @.cells WHERE ctid = ANY (ARRAY(SELECT ctid FROM @.cells WHERE expires <= t ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED));
  DELETE FROM @.windows WHERE ctid = ANY (ARRAY(SELECT ctid FROM @.windows WHERE expires <= t ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED));
  DELETE FROM @.buckets WHERE ctid = ANY (ARRAY(SELECT ctid FROM @.buckets WHERE expires <= t ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED));
  DELETE FROM @.leases WHERE ctid = ANY (ARRAY(SELECT ctid FROM @.leases WHERE expires <= t ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED));
  DELETE FROM @.blocks WHERE ctid = ANY (ARRAY(SELECT ctid FROM @.blocks WHERE expires <= t ORDER BY expires LIMIT most FOR UPDATE SKIP LOCKED));
  DELETE FROM @.nodes WHERE ctid = ANY (ARRAY(SELECT ctid FROM @.nodes WHERE expires <= t FOR UPDATE SKIP LOCKED));
  DELETE FROM @.rules WHERE ctid = ANY (ARRAY(SELECT ctid FROM @.rules WHERE expires <= t FOR UPDATE SKIP LOCKED));
$body$;
`
