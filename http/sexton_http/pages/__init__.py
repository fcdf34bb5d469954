"""The pages that a server shows to people: small, made on the server, with nothing from elsewhere."""
