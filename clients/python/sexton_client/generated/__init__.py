"""What is made from the OpenAPI document by `make clients`: nothing here is written by hand."""
