"""Everything that leans on private parts of aiokafka."""
