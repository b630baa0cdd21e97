"""The contract: OpenAPI document, requirement catalogue, validators of bodies. Imports nothing of ours."""
