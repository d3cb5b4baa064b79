"""Everything that depends on Faust: the application, its transport, its web server."""
