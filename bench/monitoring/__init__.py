"""What scraping and watching cost a worker; part of `hb bench pipeline`."""
