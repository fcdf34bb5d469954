-- As before, but a document without the path has no value there: it was taken for one with null.
create or replace function sexton_json_scalars(doc text, path text[]) returns text[] language plpgsql immutable as $$
declare found json;
begin
    found := doc::json #> path;
    if found is null then
        return '{}';
    end if;
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
