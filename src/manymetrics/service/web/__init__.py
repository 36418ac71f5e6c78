"""Web pages: rendered on the server, usable without a script; they call the same verbs as the HTTP API."""
