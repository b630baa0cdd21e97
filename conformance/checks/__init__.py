"""The checks, one module for each part of the contract; plain pytest tests tied to requirements.

pytest -p conformance.plugin --pyargs conformance.checks --target staging
"""
