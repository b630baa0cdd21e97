"""The contract: the OpenAPI document, the requirement catalogue, and the validators of bodies. Imports nothing of ours."""
