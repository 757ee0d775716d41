"""A conformance suite for servers of the TamTam binary protocol, based on Tambour's specification."""
