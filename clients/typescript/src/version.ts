/** The version of the server that this library was made for. */
// Made by `make clients ARGS=--write`: change the routes, not this file.

export const VERSION = "0.1.0";
