"""The checks, a module or a folder of them for each part of the contract; plain pytest tests tied to requirements.

pytest -p conformance.plugin --pyargs conformance.checks --target staging
"""
