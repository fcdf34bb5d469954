-- Who began a device login: the MAC of an address, so that no address has more of them than its share.

alter table auth_sessions add column origin bytea;
