"""A conformance suite for servers of the TamTam binary protocol, made from Tambour's specification."""
