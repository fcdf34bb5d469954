"""The archive: what goes by age is kept in a folder or an object store, with manifests of hashes."""
