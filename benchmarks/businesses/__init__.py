"""Tables of made-up businesses with planted errors, and what the command finds of them."""
