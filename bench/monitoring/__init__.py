"""What it costs a worker to be scraped and watched, as part of `hb bench pipeline`."""
