"""What every client of a test trusts: to read the certificates again takes longer than most tests."""

import httpx2

TRUST = httpx2.create_ssl_context()
