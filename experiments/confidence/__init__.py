"""How far a diagnosis can be trusted: chance, track record and referral, measured on data sets."""
