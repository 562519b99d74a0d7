"""An HTTP API over any store, for agents in other languages and on other machines."""
