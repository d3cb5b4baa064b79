"""Everything that leans on Faust: the application, its transport, its web server."""
