"""The processors' side of the ledger; one file for each, registered in the settings."""
