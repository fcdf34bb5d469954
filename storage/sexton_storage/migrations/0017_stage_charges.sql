-- Charges are of the kinds that clients add up: what an event costs by coming, and by being worked on.

alter table charges drop constraint charges_charge_type_check;
update charges set charge_type = 'stage';
alter table charges add constraint charges_charge_type_check check (charge_type in ('receive', 'stage'));
