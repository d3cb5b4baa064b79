"""An ensemble tried on a file before there is a broker: each patient once, before its label."""
