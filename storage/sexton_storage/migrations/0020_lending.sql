-- Which credentials each agent may be lent, who wrote its files, and whether its approval token may approve.

alter table zombies add column lending json not null default '{}';
alter table zombies add column decides_by_token boolean not null default true;
alter table config_versions add column author text not null default '';
-- Nobody noted who installed the agents that are there, so all of them keep what they have: each credential that their
-- files name, towards the hosts and with the tools that their files name. `system:upgrade` tells which those are.
update zombies z
   set lending = g.granted
  from (
    select c.id, json_object_agg(n.name, json_build_object(
               'credential', n.name,
               'status', 'approved',
               'reach', json_build_object('hosts', coalesce(c.compiled -> 'network_allow', '[]'::json),
                                          'tools', coalesce(c.compiled -> 'tools', '[]'::json)),
               'requested_at', c.created_at, 'requested_by', 'system:upgrade',
               'decided_at', c.created_at, 'decided_by', 'system:upgrade')) as granted
      from config_versions c
     cross join lateral json_array_elements_text(
           case json_typeof(c.compiled -> 'credentials') when 'array' then c.compiled -> 'credentials'
           else '[]'::json end) n (name)
     where n.name not in (select i.name from json_array_elements_text(
           case json_typeof(c.compiled -> 'integrations') when 'array' then c.compiled -> 'integrations'
           else '[]'::json end) i (name))
     group by c.id
  ) g
 where g.id = z.config_version_id;
