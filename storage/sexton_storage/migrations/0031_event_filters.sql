-- What filters of events ask of their texts. Functions only: no row is written, and no index is made for them, so an
-- event that arrives or ends costs what it cost before.

-- The words of the beginning of a text, each between spaces. A word is a run of ASCII letters, digits, underscores and
-- whatever is not ASCII, so that no collation has a say; the escapes of JSON are no part of a word.
create function sexton_words(doc text) returns text language sql immutable parallel safe
    return ' ' || regexp_replace(
        lower(regexp_replace(left(doc, 65536), '\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})', ' ', 'g') collate "C"),
        '[^a-z0-9_\u0080-\U0010ffff]+', ' ', 'g') || ' ';

-- Of all texts of an event; no phrase goes from one into the next.
create function sexton_event_words(request text, response text, evidence text) returns text
    language sql immutable parallel safe
    return coalesce(sexton_words(request), '') || '|' || coalesce(sexton_words(response), '') || '|'
        || coalesce(sexton_words(evidence), '');

-- The plain value at a path of a JSON document, or those of the array there, each behind a letter for its kind: s, n, c.
-- None of a document that cannot be taken apart: of events that were sent by anybody, one must not end a search.
create function sexton_json_scalars(doc text, path text[]) returns text[] language plpgsql immutable as $$
declare found json;
begin
    found := doc::json #> path;
    return array(
        select case json_typeof(v) when 'string' then 's' || (v #>> '{}') when 'number' then 'n' || (v #>> '{}')
               else 'c' || (v::text) end
          from (select v from json_array_elements(case json_typeof(found) when 'array' then found else json_build_array(found) end)
                  with ordinality a(v, n) where n <= 256) elements
         where json_typeof(v) in ('string', 'boolean', 'null')
            or v::text ~ '^-?[0-9]{1,64}(\.[0-9]{1,64})?([eE][+-]?[0-9]{1,3})?$');
exception when others then
    return '{}';
end $$;

-- Which leases an event had. An event never changes its id, so a renewal still writes its row in place.
create index leases_of_event on leases (event_id);
